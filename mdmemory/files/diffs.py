"""Two contents of a file as a diff. Floor 1, pure."""

from __future__ import annotations

import difflib


def unified(path: str, before: bytes | None, after: bytes | None, old: str | None = None) -> str:
    """Two contents of a file as `diff -u` shows them; None for absent."""
    names = "/dev/null" if before is None else f"a/{old or path}", "/dev/null" if after is None else f"b/{path}"
    try:
        one, two = (split_lines((data or b"").decode()) for data in (before, after))
    except UnicodeDecodeError:
        return f"{path} is no text, and differs.\n" * (before != after)
    found = difflib.unified_diff(one, two, *names)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in found)


def split_lines(text: str) -> list[str]:
    """The lines with their ends."""
    lines = text.split("\n")  # not splitlines: it also splits at U+2028 and form feeds
    return [*(f"{line}\n" for line in lines[:-1]), *filter(None, lines[-1:])]
