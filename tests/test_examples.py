"""The examples run as they are, offline, and do what they say."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from command import REPOSITORY, environment
from e2b_server import E2BServer
from engine import why_not
from openai_server import Answer, OpenAIServer

EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))
NOTE = "---\nname: Home\ndescription: where the user lives, walks nearby\ntype: user\n---\n\nLives in Hangzhou.\n"


def run(name: str, *arguments: str, cwd: Path) -> str:
    """What an example prints; it must succeed."""
    command = [sys.executable, str(REPOSITORY / "examples" / name), *arguments]
    env = environment(OPENAI_API_KEY="none")
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_an_example_can_be_taken_in_at_a_glance(example: Path) -> None:
    """An example has at most 40 lines."""
    assert len(example.read_text(encoding="utf-8").splitlines()) <= 40


def test_first_steps(tmp_path: Path) -> None:
    """AM1, AM2, AM5: what one conversation saves stands in the next one's prompt, its body in the first call's hint."""
    printed = run("first_steps.py", "memory", cwd=tmp_path)
    line = "- [Where the user lives](user/home.md) — home city, time zone, local recommendations\n"
    assert (tmp_path / "memory/MEMORY.md").read_text() == line and printed.count(line) == 2
    assert "Chosen because: a walk starts from home\n> Lives in Hangzhou, China (UTC+8).\n" in printed
    assert printed.index("## Index") < printed.index("> Lives in Hangzhou") and "source='model'" in printed


def test_own_loop_openai(tmp_path: Path) -> None:
    """AM3: a plain loop on the OpenAI SDK saves through the tools; another process on the folder has the hint in its request."""
    save = Answer(calls=[("Write", {"file_path": "user/home.md", "content": NOTE})])
    with OpenAIServer([save, "Saved.", "Around West Lake.", "You are welcome."]) as server:
        assert run("own_loop_openai.py", server.base_url, "m", "memory", "Remember where I live.", cwd=tmp_path) == "Saved.\n"
        texts = ["Any walks near where I live?", "Thanks!"]
        printed = run("own_loop_openai.py", server.base_url, "m", "memory", *texts, cwd=tmp_path)
    assert printed == "Around West Lake.\nYou are welcome.\n" and (tmp_path / "memory/user/home.md").read_text() == NOTE
    told = server.requests[2].json["messages"]
    assert [message["role"] for message in told] == ["system", "user", "user"] and "> Lives in Hangzhou." in told[-1]["content"]
    assert [message["role"] for message in server.requests[3].json["messages"]].count("system") == 1


def test_person_and_agent(tmp_path: Path) -> None:
    """E4: edits of different lines are both kept; of the same line, the agent's is refused with the text as it is now."""
    printed = run("person_and_agent.py", "memory", cwd=tmp_path)
    assert "Freeze: June 5\nRelease: June 10\n\nOwner: Priya, with Sam\n" in printed
    assert "Nothing was written" in printed and printed.rstrip().endswith("Owner: Priya, with Sam")
    text = (tmp_path / "memory/plan.md").read_text()
    assert text.endswith("Freeze: June 5\nRelease: June 12\n\nOwner: Priya, with Sam\n")


def test_sandboxed_agent_in_e2b(server: E2BServer, tmp_path: Path) -> None:
    """AM3, AM6: what one process saves in a sandbox, another has in its index and in its hint."""
    printed = run("sandboxed_agent.py", "e2b://base?memory=notes", cwd=tmp_path)
    assert "- [Where the user lives](user/home.md) — home city, walks, food\n<memory-hint>" in printed
    assert "> Lives in Hangzhou." in printed and (server.sandbox.home / "memory/user/home.md").exists()


def test_sandboxed_agent_in_docker(tmp_path: Path) -> None:
    """AM3, AM6: the same on a volume behind a hardened container."""
    image, volume = "mdmemory-test:busybox", f"mdmemory-test-{uuid.uuid4().hex}"
    if reason := why_not():
        pytest.skip(reason)
    try:
        printed = run("sandboxed_agent.py", f"docker://{image}?volume={volume}", cwd=tmp_path)
    finally:
        subprocess.run(["docker", "rm", "--force", f"mdmemory-{volume}"], capture_output=True, check=True)
        subprocess.run(["docker", "volume", "rm", volume], capture_output=True, check=True)
    assert "- [Where the user lives](user/home.md)" in printed and "> Lives in Hangzhou." in printed
