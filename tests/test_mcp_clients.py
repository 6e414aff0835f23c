"""The snippets that tell MCP clients of a memory: each is what that client's own configuration looks like."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path

import pytest
from command import mdmemory

from mdmemory.errors import InvalidArguments
from mdmemory.mcp_server.clients import CLIENTS, snippet

COMMAND = ["mdmemory", "mcp", "--read-only", '/srv/my "notes"\x7f\\ä']
ENTRY = {"command": "mdmemory", "args": COMMAND[1:]}
KEYS = {"claude-desktop": "mcpServers", "cursor": "mcpServers", "gemini-cli": "mcpServers", "zed": "context_servers"}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_snippet_says_the_command_whatever_is_in_it(client: str) -> None:
    """V8: read back as that client reads it, each snippet starts the same command."""
    _, text = snippet(client, COMMAND)
    if client == "claude-code":
        assert shlex.split(text) == ["claude", "mcp", "add", "--scope", "user", "memory", "--", *COMMAND]
    elif client == "codex":
        assert tomllib.loads(text) == {"mcp_servers": {"memory": ENTRY}}
    elif client == "vscode":
        assert json.loads(text) == {"servers": {"memory": {"type": "stdio", **ENTRY}}}
    else:
        assert json.loads(text) == {KEYS[client]: {"memory": ENTRY}}


def test_a_client_that_is_not_known() -> None:
    """The error names those that are."""
    with pytest.raises(InvalidArguments, match="claude-code, claude-desktop, codex"):
        snippet("emacs", COMMAND)


def test_the_command_prints_them(tmp_path: Path) -> None:
    """The folder is named from the root; where to put the snippet is said beside it, so that it can be piped."""
    done = mdmemory("mcp", "notes", "--config", "codex", cwd=tmp_path)
    assert tomllib.loads(done.stdout)["mcp_servers"]["memory"]["args"] == ["mcp", str(tmp_path / "notes")]
    assert done.stderr == "For ~/.codex/config.toml:\n" and not (tmp_path / "notes").exists()
    assert mdmemory("mcp", "--config", "list", cwd=tmp_path).stdout.split() == list(CLIENTS)
    assert json.loads(mdmemory("mcp", "--config", "list", "--json", cwd=tmp_path).stdout) == list(CLIENTS)
    told = json.loads(mdmemory("mcp", "e2b://base?memory=m", "--config", "zed", "--json", cwd=tmp_path).stdout)
    assert told["client"] == "zed" and "e2b://base?memory=m" in told["text"]
