"""`mdmemory`, and `python -m mdmemory`: the command line.

A hook of a coding agent is answered before click is imported: the agent waits for it at every prompt.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command that was typed."""
    match sys.argv[1:]:
        case ["hook", "session-start" | "user-prompt" | "stop" as event]:
            _hook(event, None)
        case ["hook", "session-start" | "user-prompt" | "stop" as event, "-f" | "--folder", folder]:
            _hook(event, folder)
        case arguments:
            from mdmemory.cli import main as command

            try:
                command(prog_name="mdmemory")
            except SystemExit as end:
                if arguments[:1] == ["hook"] and end.code == 2:  # by which agents are told to stop
                    sys.exit(1)
                raise


def _hook(event: str, folder: str | None) -> None:
    from mdmemory.hooks.events import run_hook

    run_hook(event, folder)


if __name__ == "__main__":
    main()
