"""How coding agents are told of the hooks: their names of the events, and a snippet for each, ready to be pasted. Floor 6."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mdmemory.errors import InvalidArguments


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one agent calls things.

    Args:
        place: where the snippet goes.
        events: its name of each event that it has.
        version: of its file's format, where that says one; then a hook stands in no group.
    """

    place: str
    events: Mapping[str, str]
    version: int | None = None


_CLAUDE: Final = {"session-start": "SessionStart", "user-prompt": "UserPromptSubmit", "stop": "Stop"}
DIALECTS: Final[Mapping[str, Dialect]] = {
    "claude-code": Dialect("~/.claude/settings.json, or .claude/settings.json in a project", _CLAUDE),
    "codex": Dialect("~/.codex/hooks.json, or .codex/hooks.json in a project", _CLAUDE),
    "cursor": Dialect(
        "~/.cursor/hooks.json, or .cursor/hooks.json in a project",
        {"session-start": "sessionStart", "user-prompt": "beforeSubmitPrompt", "stop": "afterAgentResponse"},
        version=1,
    ),
    "gemini-cli": Dialect(
        "~/.gemini/settings.json, or .gemini/settings.json in a project",
        {"session-start": "SessionStart", "user-prompt": "BeforeAgent", "stop": "AfterAgent"},
    ),
    "qwen-code": Dialect(  # whose prompts may be answers of tools, so that they are no journal
        "~/.qwen/settings.json, or .qwen/settings.json in a project",
        {"session-start": "SessionStart", "user-prompt": "UserPromptSubmit"},
    ),
}
CLIENTS: Final = tuple(DIALECTS)


def snippet(client: str, program: str, options: Sequence[str]) -> tuple[str, str]:
    """Where an agent's hooks are configured, and what to put there.

    Args:
        program: `mdmemory`, with its path.
        options: behind the event.

    Raises:
        InvalidArguments: not an agent that is known here.
    """
    if client not in DIALECTS:
        raise InvalidArguments(f"{client!r:.60} is neither a file with settings nor an agent; there are {', '.join(CLIENTS)}")
    dialect = DIALECTS[client]
    hooks: dict[str, Any] = {}
    for event, name in dialect.events.items():
        hook = {"type": "command", "command": shlex.join([program, "hook", event, *options])}
        hooks[name] = [{"command": hook["command"]}] if dialect.version else [{"hooks": [hook]}]
    head = {"version": dialect.version} if dialect.version else {}
    return dialect.place, json.dumps({**head, "hooks": hooks}, indent=2, ensure_ascii=False)
