"""Every command: where it is, and what it does in a line. Floor 8."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click

SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Memories": {
        "init": ("file_commands", "Make a memory folder; what is there stays as it is."),
        "ls": ("file_commands", "List the memory files, the newest first."),
        "show": ("file_commands", "Print one memory file, or MEMORY.md, as it is or as it was."),
        "search": ("file_commands", "Find memory files by words, in any language."),
        "edit": ("edit_command", "Open a memory file in your editor, and check what comes back."),
        "remember": ("memory_commands", "Save a text as a new memory file."),
        "forget": ("memory_commands", "Delete a memory file, or with --all a whole folder of them."),
        "fact": ("fact_commands", "Add a fact to a memory file, or end one."),
        "timeline": ("fact_commands", "Show what is known of a person or thing over time."),
        "stats": ("stats_command", "Count what is there, and what it costs in a prompt."),
    },
    "Conversations": {
        "chat": ("agent_commands", "Talk to an agent that has this memory."),
        "journal": ("journal_commands", "List the conversations, or print one."),
        "context": ("journal_commands", "Print what a model would get of conversations."),
        "extract": ("memory_commands", "Draw memories from a conversation."),
        "wake-up": ("fact_commands", "Print what to know before the first message."),
        "prompt": ("agent_commands", "Print what an agent would see: its system prompt, and a hint."),
        "demo": ("agent_commands", "Show the main job: one process is told, the next one knows."),
    },
    "History": {
        "log": ("history_commands", "Show what happened, the latest first."),
        "diff": ("history_commands", "Show what an event changed, or what is different since."),
        "blame": ("history_commands", "Show where each line of a file comes from."),
        "undo": ("history_commands", "Take back an event, a session, or everything since a time."),
        "restore": ("history_commands", "Bring a file back as it was; a deleted one needs no --at."),
        "purge": ("history_commands", "Forget for good: no undo brings it back."),
    },
    "Upkeep": {
        "doctor": ("doctor_command", "Find what is wrong, and with --fix mend what can be mended."),
        "consolidate": (
            "consolidate_commands",
            "Find files that say much the same, and have a model propose what becomes of them.",
        ),
        "review": ("consolidate_commands", "Decide about what was proposed."),
        "import": ("import_command", "Bring in what another memory or app has kept."),
        "export": ("export_command", "Take the memory away as one file."),
        "pull": ("sync_commands", "Bring a sandbox's changes into the folder."),
        "push": ("sync_commands", "Bring the folder's changes into a sandbox."),
        "database": ("database_command", "Set up a PostgreSQL database for many memories, and say who may open which."),
        "sync": ("reconcile_command", "Keep a folder and another one together, both ways."),
        "watch": ("watch_command", "Show what changes in the folder, live, until Ctrl-C."),
        "eval": ("eval_commands", "Measure recall on public conversations, offline."),
        "completion": ("completion_command", "Print what completes commands and paths in your shell."),
    },
    "Doors": {
        "mcp": ("mcp_command", "Serve the memory to MCP clients."),
        "hook": ("hook_command", "Answer a hook of a coding agent."),
        "serve": ("serve_command", "Show the memory in the browser, to read and to edit."),
        "service": ("service_command", "Serve the memories of many users, over MCP and in the browser."),
        "token": ("token_command", "Make a token for a user of the service, or revoke them."),
    },
}
_OTHERWISE_NAMED = {"eval": "evals", "import": "import_"}  # as Python has other uses for these words
_PLACES = {name: place for section in SECTIONS.values() for name, (place, _) in section.items()}


class Commands(click.Group):
    """The commands in their sections, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, section by section."""
        return list(_PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name; None when there is none."""
        if cmd_name not in _PLACES:
            return None
        module = importlib.import_module(f"mdmemory.cli.{_PLACES[cmd_name]}")
        command: click.Command = getattr(module, _OTHERWISE_NAMED.get(cmd_name, cmd_name.replace("-", "_")))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections."""
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, about) for name, (_, about) in commands.items()], col_max=12)
