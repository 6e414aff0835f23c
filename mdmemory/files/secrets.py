"""Secrets in a text, by the scanner detect-secrets: found, named by kind, and taken out. Floor 1, pure.

Nothing is asked over the network whether a key works. What the scanner leaves to quoted strings in code is looked for in prose too:
long random words, and words that follow "the password is".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmemory.errors import ConfigError

if TYPE_CHECKING:
    from detect_secrets.plugins.base import BasePlugin

# An address on the Internet and the hash of a commit are things to remember.
_LEFT_OUT = frozenset(("IPPublicDetector", "HexHighEntropyString", "Base64HighEntropyString"))
_ENTROPY = "Base64HighEntropyString"
_RANDOM_KIND = "High Entropy String"
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)", re.DOTALL
)
_TOLD = re.compile(
    r"\b(?:pass(?:word|wd|phrase|code)|pin|secret|api[ _-]?key|access[ _-]?key|token)\b[\"'`*]*[ \t]*(?:is|was|to|=|:)[ \t\"'`*]*"
    r"(?P<secret>(?=\S*[\d!@#$%^&*])[^\s\"'`]{3,}[^\s\"'`.,;:!?)])",
    re.IGNORECASE,
)
_RANDOM = re.compile(r"(?<![\w+/=-])(?=[\w+/=-]*\d)(?=[\w+/=-]*[a-z])(?=[\w+/=-]*[A-Z])[\w+/=-]{20,}")
_WORD = re.compile(r"[\w+/=-]+")
_SHORT = 8  # of some tokens the scanner gives no more than how they begin


class Secret(NamedTuple):
    """A place in a text that must not be kept.

    Args:
        kind: what the scanner calls it, such as `AWS Access Key`.
    """

    start: int
    end: int
    kind: str


def find_secrets(text: str) -> list[Secret]:
    """The secrets in a text, in its order, none within another.

    Raises:
        ConfigError: the scanner is not installed.
    """
    found: list[Secret] = []
    for secret in sorted(set(_candidates(text)), key=lambda secret: (secret.start, -secret.end, secret.kind == _RANDOM_KIND)):
        if not found or secret.start >= found[-1].end:
            found.append(secret)
        elif secret.end > found[-1].end:
            found[-1] = found[-1]._replace(end=secret.end)
    return found


def redact(text: str) -> tuple[str, list[str]]:
    """The text with `[redacted: kind]` for each secret, and the kinds.

    Raises:
        ConfigError: the scanner is not installed.
    """
    secrets = find_secrets(text)
    for secret in reversed(secrets):
        text = f"{text[: secret.start]}[redacted: {secret.kind}]{text[secret.end :]}"
    return text, [secret.kind for secret in secrets]


def _candidates(text: str) -> Iterator[Secret]:
    for match in _PRIVATE_KEY.finditer(text):
        yield Secret(match.start(), match.end(), "Private Key")
    for match in _TOLD.finditer(text):
        yield Secret(*match.span("secret"), "Secret Keyword")
    plugins, entropy = _plugins()
    for match in _RANDOM.finditer(text):
        if any(entropy.analyze_string(f'"{match[0]}"')):
            yield Secret(match.start(), match.end(), _RANDOM_KIND)
    start = 0
    for line in text.splitlines(keepends=True):
        for plugin in plugins:
            for value in plugin.analyze_string(line):
                yield from _places(line, value, start, plugin.secret_type)
        start += len(line)


def _places(line: str, value: str, start: int, kind: str) -> Iterator[Secret]:
    place = line.find(value) if value else -1
    while place >= 0:
        end = place + len(value)
        if len(value) < _SHORT:
            word = next(word for word in _WORD.finditer(line) if word.end() > place)
            place, end = min(place, word.start()), max(end, word.end())
        yield Secret(start + place, start + end, kind)
        place = line.find(value, end)


@lru_cache(maxsize=1)
def _plugins() -> tuple[list[BasePlugin], BasePlugin]:
    """The scanner's detectors of tokens, and its measure of randomness."""
    try:
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    except ImportError as error:
        raise ConfigError(
            "Looking for secrets in what is to be remembered needs detect-secrets: pip install 'mdmemory[extract]', "
            'or leave them in with Config(secrets="keep")'
        ) from error
    classes: Mapping[str, Any] = get_mapping_from_secret_type_to_class()  # of no type that could be called
    plugins: Mapping[str, BasePlugin] = {made.__name__: made() for made in classes.values()}
    return [plugin for name, plugin in plugins.items() if name not in _LEFT_OUT], plugins[_ENTROPY]
