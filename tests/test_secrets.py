"""Secrets in a text: what is found, what stays. Tokens are put together here, so that no scanner takes them for real ones."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.files.secrets import find_secrets, redact

GITHUB = "ghp_" + "a1B2" * 9
JWT = ".".join(["eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "eyJzdWIiOiIxMjM0NTY3ODkwIn0", "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV"])
PEM = "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIabc\nxx\n-----END RSA PRIVATE " + "KEY-----"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("My AWS key is AKIA" + "IOSFODNN7EXAMPLQ ok", "AKIA" + "IOSFODNN7EXAMPLQ"),
        (f"the token {GITHUB}.", GITHUB),
        (f"Use `{JWT}` for it", JWT.rsplit(".", 1)[0]),
        (f"Key:\n{PEM}\nand more", PEM),
        ("-----BEGIN OPENSSH PRIVATE " + "KEY-----\nb3BlbnNzaC1rZXk", "b3BlbnNzaC1rZXk"),
        ("Log in at https://bob:s3cretpw@example.com/x", "s3cretpw"),
        ("My wifi password is hunter2! Ask me.", "hunter2"),
        ("**Password:** `pa55-word`", "pa55-word"),
        ("the pin is 4711 9", "4711"),
        ("api key = abc-123-def", "abc-123-def"),
        ("password = 'only letters here'", "only letters here"),
        ("it is q7Rk2ZpX9vLm4TnB8wYc3HdJ6 and so on", "q7Rk2ZpX9vLm4TnB8wYc3HdJ6"),
    ],
)
def test_a_secret_is_taken_out(text: str, secret: str) -> None:
    """M1: tokens of known kinds, keys, passwords that are told, and long random words leave no trace but their kind."""
    assert secret in text
    clean, kinds = redact(text)
    assert secret not in clean and kinds and f"[redacted: {kinds[0]}]" in clean


@pytest.mark.parametrize(
    "text",
    [
        "The password is stored in Vault; ask Ann for the token.",
        "She keeps secret recipes: grandma's",
        "The secret: he loves jazz",
        "We met at 203.0.113.7 on Monday",
        "Commit 3f786850e387550fdab836ed7e6dc881de23001b broke it, see mdmemory/agent/extractor.py",
        'The id is "123e4567-e89b-12d3-a456-426614174000"',
        "他的密码本在家里。Das Passwort kennt Anna.",
        "",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    """M1: hashes of commits, addresses, ids and talk about passwords are facts like others."""
    assert redact(text) == (text, [])


@given(st.text(), st.text())
def test_any_text_can_be_looked_through(before: str, after: str) -> None:
    """M1: places are in order and apart, and a token is found whatever stands on the lines around it."""
    text = f"{before}\n{GITHUB}\n{after}"
    places = find_secrets(text)
    assert all(one.end <= other.start for one, other in pairwise(places))
    assert GITHUB not in redact(text)[0]


def test_without_the_scanner_it_says_what_to_install() -> None:
    """Without its extra, the error names the extra and the setting that does without it."""
    code = (
        "import sys; sys.modules['detect_secrets'] = None\n"
        "from mdmemory.errors import ConfigError\nfrom mdmemory.files.secrets import redact\n"
        "try:\n    redact('x')\nexcept ConfigError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'mdmemory[extract]'" in done.stdout and 'Config(secrets="keep")' in done.stdout
