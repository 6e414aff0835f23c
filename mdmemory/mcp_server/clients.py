"""How the usual MCP clients are told of a memory: a snippet for each, ready to be pasted. Floor 6."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mdmemory.errors import InvalidArguments

_JSON: Final[Mapping[str, tuple[str, str]]] = {  # where the snippet goes, and the key under which that client lists servers
    "claude-desktop": ("claude_desktop_config.json (Settings > Developer > Edit Config)", "mcpServers"),
    "cursor": ("~/.cursor/mcp.json", "mcpServers"),
    "gemini-cli": ("~/.gemini/settings.json", "mcpServers"),
    "vscode": (".vscode/mcp.json", "servers"),
    "zed": ("~/.config/zed/settings.json", "context_servers"),
}
CLIENTS: Final = tuple(sorted(("claude-code", "codex", *_JSON)))


def snippet(client: str, command: Sequence[str]) -> tuple[str, str]:
    """Where a client's configuration is, and what to put there; for one with a command of its own, the shell and that command.

    Args:
        command: what starts the server, the program first.

    Raises:
        InvalidArguments: not a client that is known here.
    """
    program, *arguments = command
    if client == "claude-code":
        return "your shell", f"claude mcp add --scope user memory -- {shlex.join(command)}"
    if client == "codex":
        lines = f"command = {_toml(program)}", f"args = [{', '.join(map(_toml, arguments))}]"
        return "~/.codex/config.toml", "\n".join(("[mcp_servers.memory]", *lines))
    if client not in _JSON:
        raise InvalidArguments(f"{client!r:.60} is neither a file with settings nor a client; there are {', '.join(CLIENTS)}")
    place, key = _JSON[client]
    entry: dict[str, Any] = {"command": program, "args": arguments}
    if client == "vscode":
        entry = {"type": "stdio", **entry}
    return place, json.dumps({key: {"memory": entry}}, indent=2, ensure_ascii=False)


def _toml(text: str) -> str:
    """A basic string of TOML, which escapes as JSON does; DEL must be escaped, too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
