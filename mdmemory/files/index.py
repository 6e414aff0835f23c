"""The index, `MEMORY.md`: a projection of the headers, plus whatever people wrote there, which is kept byte for byte. Floor 1.

A pointer line that equals our rendering of its file's header is ours; every other line is a person's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from mdmemory.files.index_fit import DEFAULT_LIMITS, Limits, Row, fit_file, fit_prompt, newest_rows, our_row, shown_in
from mdmemory.files.index_lines import (
    BOM,
    Line,
    Listed,
    Names,
    Page,
    Pointer,
    inline_content,
    pointers,
    read,
    render_line,
    retarget,
)

__all__ = [
    "DEFAULT_LIMITS",
    "Limits",
    "Listed",
    "Pointer",
    "Updated",
    "inline_content",
    "own_lines",
    "pointers",
    "render",
    "render_line",
    "together",
    "update",
    "warning",
]

_MORE = re.compile(r"- _\d+ more memory files? (?:is|are) not listed here; list or search the folder to reach (?:it|them)\._")

Headers = Mapping[str, tuple[Listed | None, Listed | None]]


@dataclass(frozen=True, slots=True)
class Updated:
    """An index and its figures: how many memory files it points to, and how many it does not."""

    text: str
    shown: int
    not_shown: int
    lines: int
    bytes: int


def update(
    text: str,
    changed: Headers,
    everything: Mapping[str, Listed],
    limits: Limits = DEFAULT_LIMITS,
    renamed: Mapping[str, str] = {},
) -> Updated:
    """The index file after some memory files changed; a text that is in order comes back as it was.

    Args:
        text: the index file; empty when it is known to be absent.
        changed: old and new header by path; no new one means deleted. A file that should get its line back stands here too.
        everything: the headers of all memory files, after the change.
        limits: what our lines may fill beside people's, which are never dropped: the oldest of ours go first, the pinned last.
        renamed: new path by old path.
    """
    before = (everything.keys() - set(renamed.values())) | changed.keys() | renamed.keys() if "[[" in text else ()
    forgotten = {path for path, (_, new) in changed.items() if new is None} - renamed.keys()
    rows = _settle(read(text, Names(before)), changed, everything, renamed, forgotten)
    there = {target for row in rows for target in row.targets}
    wanted = {path: new for path, (_, new) in changed.items() if new is not None and path not in there}
    rows = _with_missing(rows, newest_rows(wanted, len(wanted), _ending(text, rows)))
    kept, notice = fit_file(rows, everything, _without_bom(limits, text), _more(len(everything)))
    shown = shown_in(kept, everything)
    return _figures(_joined(text, kept, _more(len(everything) - shown) if notice else ""), shown, everything)


def render(text: str | None, everything: Mapping[str, Listed], limits: Limits = DEFAULT_LIMITS, *, rest: bool = True) -> Updated:
    """The index as a prompt shows it: the file, brought up to date in memory and cut to the limits, with a last line that says so.

    The pinned and the newest files are always shown; then people's lines, from the top; then the other files, newest first.

    Args:
        text: the index file; None when it is known to be absent.
        everything: the headers of all memory files.
        rest: whether a last line says what is left out.
    """
    text = text or ""
    page = read(text, Names(everything))
    there = {pointer.target for line in page.lines for pointer in line.pointers}
    rows = _settle(page, {}, everything, {}, there - everything.keys())
    wanted = {path: listed for path, listed in everything.items() if path not in there}
    rows = _with_missing(rows, newest_rows(wanted, limits.max_lines, _ending(text, rows)))
    longest = _not_shown(len(everything), len(rows))
    kept, notice, cut = fit_prompt(rows, everything, _without_bom(limits, text), longest)
    shown = shown_in(kept, everything)
    return _figures(_joined(text, kept, _not_shown(len(everything) - shown, cut) if notice and rest else ""), shown, everything)


def together(parts: Sequence[tuple[str, str, Collection[str]]]) -> str:
    """Several indexes as one text, to be rendered: each under its prefix, with all its pointers led there.

    Args:
        parts: prefix, index and paths of each folder, as they are inside of it.
    """
    closed, unclosed = list[str](), list[str]()
    for prefix, text, known in parts:
        page = read(text, Names(known))
        lines = [_below(prefix, line) + (line.end or "\n") for line in page.lines] if prefix else [text]
        block = (f"## {prefix}\n\n" if prefix else "") + "".join(lines)
        if text.strip():
            (unclosed if page.tail < len(page.lines) else closed).append(block.rstrip() + "\n")
    return "\n".join([*closed, *unclosed])  # in a fence that never closes, what follows would be hidden


def _below(prefix: str, line: Line) -> str:
    text = line.text
    for pointer in reversed(line.pointers):
        text = retarget(text, pointer, prefix + pointer.target, Names(()))
    return text


def own_lines(text: str, everything: Mapping[str, Listed]) -> str:
    """People's lines only: what of the index may enter the history."""
    lines = read(text, Names(everything)).lines
    own = [line.text + line.end for line in lines if not _is_more(line) and not is_ours(line, {}, everything)]
    return BOM * text.startswith(BOM) + "".join(own)


def warning(updated: Updated, limits: Limits = DEFAULT_LIMITS) -> str | None:
    """A sentence with the figures when the index is full, else None."""
    if updated.not_shown == 0 and updated.lines <= limits.max_lines and updated.bytes <= limits.max_bytes:
        return None
    return (
        f"MEMORY.md is full: it lists {updated.shown} of {updated.shown + updated.not_shown} memory files, in {updated.lines} of "
        f"{limits.max_lines} lines and {updated.bytes} of {limits.max_bytes} bytes. "
        "Hints, search and Read on a folder find the others."
    )


def is_ours(line: Line, changed: Headers, everything: Mapping[str, Listed], new_path: str = "") -> bool:
    """Whether a line is our rendering of the header that its file has, or had before the change."""
    if not line.pointers or not line.text.startswith("- ["):
        return False
    path = line.pointers[0].target
    headers = [header for place in (path, new_path) for header in (*changed.get(place, ()), everything.get(place))]
    return any(header is not None and render_line(path, header) == line.text for header in headers)


def _settle(
    page: Page,
    changed: Headers,
    everything: Mapping[str, Listed],
    renamed: Mapping[str, str],
    forgotten: Collection[str],
) -> list[Row]:
    """The rows without our notice, lines of forgotten files and duplicates of ours; ours and renamed targets brought up to date."""
    rows: list[Row] = []
    for position, line in enumerate(page.lines):
        if _is_more(line):
            continue
        targets = tuple(renamed.get(pointer.target, pointer.target) for pointer in line.pointers)
        if is_ours(line, changed, everything, *targets[:1]):
            path = targets[0]
            header = changed.get(path, (None, None))[1] or everything.get(path)
            if header is not None and path not in forgotten:
                rows.append(our_row(path, header, line.end))
            continue
        pure = len(targets) == 1 and line.pointers[0].pure
        if not pure or targets[0] not in forgotten:
            text = _renamed(line, targets, everything)
            rows.append(Row(text, line.end, targets, pure, inside=line.inside, sealed=position >= page.tail))
    return _once(rows)


def _once(rows: list[Row]) -> list[Row]:
    """One line a file: ours goes where a person has one, or we have one above."""
    seen = {target for row in rows if not row.ours for target in row.targets}
    kept: list[Row] = []
    for row in rows:
        if row.ours and row.targets[0] in seen:
            continue
        kept.append(row)
        seen.update(row.targets)
    return kept


def _renamed(line: Line, targets: Sequence[str], everything: Mapping[str, Listed]) -> str:
    text = line.text
    for pointer, path in reversed(list(zip(line.pointers, targets, strict=True))):
        if path != pointer.target:
            text = retarget(text, pointer, path, Names(everything))
    return text


def _with_missing(rows: list[Row], missing: list[Row]) -> list[Row]:
    """Our new lines after the last pointer line and what is indented below it, else at the end; never in an open fence."""
    if not missing:
        return rows
    end = next((position for position, row in enumerate(rows) if row.sealed), len(rows))
    at = max((position + 1 for position in range(end) if rows[position].pure), default=0)
    if not at:
        blank = [Row("", missing[0].end, spacer=True)] if end and rows[end - 1].text.strip() else []
        return [*rows[:end], *blank, *missing, *rows[end:]]
    while at < end and (rows[at].inside or (rows[at].text[:1] in (" ", "\t") and rows[at].text.strip())):
        at += 1
    return [*rows[:at], *missing, *rows[at:]]


def _joined(text: str, rows: list[Row], notice: str) -> str:
    """The rows as text, with a last line of ours before any open fence; ours takes no final newline where there was none."""
    ending = _ending(text, rows)
    if not any(row.ours for row in rows):
        rows = [row for row in rows if not row.spacer]
    if notice:
        end = next((position for position, row in enumerate(rows) if row.sealed), len(rows))
        rows = [*rows[:end], Row(notice, ending, ours=True), *rows[end:]]
    rows = [row if row.end else replace(row, end=ending) for row in rows[:-1]] + rows[-1:]
    if rows and rows[-1].ours:
        no_final_newline = text.removeprefix(BOM) and not text.endswith("\n")
        rows[-1] = replace(rows[-1], end="" if no_final_newline else rows[-1].end or ending)
    return BOM * text.startswith(BOM) + "".join(row.text + row.end for row in rows)


def _figures(text: str, shown: int, everything: Mapping[str, Listed]) -> Updated:
    lines = text.count("\n") + (not text.endswith("\n") and text not in ("", BOM))
    return Updated(text, shown, len(everything) - shown, lines, len(text.encode("utf-8", "surrogatepass")))


def _ending(text: str, rows: Sequence[Row]) -> str:
    """The line ending that people's lines have more of, since those stay; where there are none, the text."""
    ends = [row.end for row in rows if row.end and not row.ours]
    crlf, total = (ends.count("\r\n"), len(ends)) if ends else (text.count("\r\n"), text.count("\n"))
    return "\r\n" if 2 * crlf > total else "\n"


def _without_bom(limits: Limits, text: str) -> Limits:
    return replace(limits, max_bytes=limits.max_bytes - len(BOM.encode())) if text.startswith(BOM) else limits


def _is_more(line: Line) -> bool:
    return not line.inside and _MORE.fullmatch(line.text) is not None


def _more(count: int) -> str:
    if count <= 0:
        return ""
    files, them = ("file is", "it") if count == 1 else ("files are", "them")
    return f"- _{count} more memory {files} not listed here; list or search the folder to reach {them}._"


def _not_shown(entries: int, lines: int) -> str:
    parts = [f"{entries} {'entry' if entries == 1 else 'entries'}"] if entries else []
    parts += [f"{lines} {'line' if lines == 1 else 'lines'} of MEMORY.md"] if lines else []
    return f"- _{' and '.join(parts)} not shown; Read . lists every memory file._" if parts else ""
