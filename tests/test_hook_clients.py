"""The snippets that tell coding agents of the hooks: each is what that agent's own configuration looks like."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from command import mdmemory

from mdmemory.errors import InvalidArguments
from mdmemory.hooks.clients import CLIENTS, DIALECTS, snippet

FOLDER = '/srv/my "notes"/ä'


@pytest.mark.parametrize("client", CLIENTS)
def test_a_snippet_calls_each_event(client: str) -> None:
    """Read back as that agent reads it, each hook runs the command, whatever the folder is called."""
    _, text = snippet(client, "/bin/mdmemory", ["-f", FOLDER])
    said, dialect = json.loads(text), DIALECTS[client]
    assert said.get("version") == dialect.version
    for event, name in dialect.events.items():
        [group] = said["hooks"][name]
        hook = group if client == "cursor" else group["hooks"][0]
        assert shlex.split(hook["command"]) == ["/bin/mdmemory", "hook", event, "-f", FOLDER]
        assert client == "cursor" or hook["type"] == "command"


def test_an_agent_that_is_not_known() -> None:
    """The error names those that are."""
    with pytest.raises(InvalidArguments, match="claude-code, codex, cursor, gemini-cli, qwen-code"):
        snippet("emacs", "mdmemory", [])


def test_the_command_prints_them(tmp_path: Path) -> None:
    """The folder is named from the root; where to put the snippet is said beside it, so that it can be piped."""
    done = mdmemory("hook", "--config", "codex", "-f", "notes", cwd=tmp_path)
    [group] = json.loads(done.stdout)["hooks"]["Stop"]
    assert group["hooks"][0]["command"].endswith(f" hook stop -f {tmp_path / 'notes'}")
    assert done.stderr.startswith("For ~/.codex/hooks.json") and not (tmp_path / "notes").exists()
    assert mdmemory("hook", "--config", "list", cwd=tmp_path).stdout.split() == list(CLIENTS)
    told = json.loads(mdmemory("hook", "--config", "cursor", "--json", cwd=tmp_path, MDMEMORY_FOLDER="e2b://b?memory=m").stdout)
    assert told["client"] == "cursor" and "e2b://b?memory=m" in told["text"]
