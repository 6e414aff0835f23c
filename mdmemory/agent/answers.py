"""What the tools answer: numbered lines, and what a save came to. Floor 4."""

from __future__ import annotations

from collections.abc import Mapping

from mdmemory.files.changes import Change, Create
from mdmemory.files.index import pointers, render_line
from mdmemory.folder.known import Known, listed_as
from mdmemory.folder.settle import Applied

DEFAULT_LINES = 2_000
MAX_LINE_CHARS = 2_000
MAX_CHARS = 60_000  # one answer; about 15,000 tokens


def numbered(text: str, offset: int = 1, limit: int = DEFAULT_LINES) -> str:
    """Lines `offset` to `offset + limit - 1` behind their number and a tab, with a notice when there is more.

    Args:
        offset: from 1; a negative one counts from the end.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return "(The file is empty.)"
    if offset < 0:
        offset = max(1, len(lines) + offset + 1)
    if offset > len(lines):
        return f"(The file has {len(lines)} lines; offset {offset} is past its end.)"
    shown: list[str] = []
    chars = 0
    for number, line in enumerate(lines[offset - 1 : offset - 1 + limit], offset):
        cut = line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]}… (line cut; it has {len(line):,} characters)"
        chars += len(cut) + 8
        if chars > MAX_CHARS and shown:
            break
        shown.append(f"{number:>6}\t{cut}")
    last = offset + len(shown) - 1
    if last < len(lines):
        shown.append(f"(Lines {offset} to {last} of {len(lines)}; for more lines Read again with offset {last + 1}.)")
    return "\n".join(shown)


def saved(change: Change, applied: Applied, known: Known | None) -> str:
    """What a Write or an Edit came to, with the index line and what the model should know."""
    item = next(item for item in applied.files if item.path == change.path)
    if item.before == item.after:
        return f"{change.path} already has this content; nothing had to be written."
    sentences = [f"{'Created' if isinstance(change, Create) else 'Updated'} {change.path}."]
    if item.merged:
        sentences.append("It had been changed meanwhile; both changes are kept. Read it again before you go on with it.")
    if known is not None and known.header is not None:
        sentences += [_about_line(change.path, render_line(change.path, listed_as(change.path, known)), applied)]
        sentences += [f"Note: {warning}." for warning in known.warnings]
    return "\n".join(filter(None, [*sentences, *_notes(applied)]))


def deleted(path: str, applied: Applied) -> str:
    """What a Delete came to."""
    still = applied.index is not None and any(pointer.target == path for pointer in pointers(applied.index.text))
    gone = "" if applied.index is None else "Its line in the index is gone too."
    return "\n".join(
        filter(
            None, [f"Deleted {path}.", "MEMORY.md still mentions it in someone's own words." if still else gone, *_notes(applied)]
        )
    )


def listing(folder: str, files: Mapping[str, Known], offset: int = 1, limit: int = DEFAULT_LINES) -> str | None:
    """The memory files of a folder, the newest first, a numbered line each; None when there are none in it."""
    inside = [path for path in files if not folder or path.startswith(f"{folder}/")]
    inside.sort(key=lambda path: (-files[path].mtime_ns, path))
    lines = [render_line(path, listed_as(path, files[path])) for path in inside]
    return numbered("\n".join(lines), offset, limit) if lines else None


def _about_line(path: str, line: str, applied: Applied) -> str:
    if applied.index is None:
        return ""
    if line in applied.index.text.splitlines():
        return f"Its line in the index: {line}"
    if any(pointer.target == path for pointer in pointers(applied.index.text)):
        return "Its line in the index is in someone's own words, and stays as it is."
    return "The index has no room for its line; hints and Read on its folder still find it."


def _notes(applied: Applied) -> list[str]:
    return [f"Note: {warning}" for warning in applied.warnings]
