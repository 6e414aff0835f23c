"""People's lines of MEMORY.md, brought together; our own lines follow the files on each side by themselves. Floor 4."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from mdmemory.backends.protocol import File, etag_of
from mdmemory.care.reconcile.changing import AUTHOR
from mdmemory.care.reconcile.fates import Step, Where
from mdmemory.care.reconcile.side import Side
from mdmemory.errors import BackendError, Conflict, InvalidMemoryFile
from mdmemory.files.changes import Change, Create, Replace, merge
from mdmemory.files.index import own_lines
from mdmemory.folder.commit import index_text
from mdmemory.folder.known import INDEX

BOTH: Final = "both changed the same lines: both are kept"


@dataclass(frozen=True, slots=True)
class _Index:
    """One side's index: as it is, None for absent, and as the next save would leave it."""

    text: str | None
    settled: str
    own: str


@dataclass(frozen=True, slots=True)
class Lines:
    """What came of people's lines.

    Args:
        own: those that both have now, or would have.
        is_again: whether something changed meanwhile, so that it takes another look.
    """

    own: str | None
    steps: tuple[Step, ...] = ()
    is_again: bool = False


async def bring_together(here: Side, there: Side, was: str | None, *, dry_run: bool = False) -> Lines:
    """Merge people's lines of both indexes, and write them where they are not yet.

    Args:
        was: the lines that both had; None when that is not known: then all lines of both are kept.
    """
    try:
        texts = [await _text(side) for side in (here, there)]
        owns = [own_lines(text or "", side.folder.listed) for text, side in zip(texts, (here, there), strict=True)]
        if owns[0] == owns[1]:
            return Lines(owns[0])
        mine, other = [await _settled(side, text) for side, text in zip((here, there), texts, strict=True)]
    except (BackendError, InvalidMemoryFile) as error:
        return Lines(was, (Step(INDEX, "left", "both", str(error)),))
    base = _common(mine.own, other.own) if was is None else was
    if mine.text is None or other.text is None:
        base = mine.own if mine.text is None else other.own  # a whole index that went is no one's edit of its lines
    text, why = merge(base, mine.own, other.own, keep_both_insertions=True), ""
    if text is None:
        text, why = merge(_common(mine.own, other.own), mine.own, other.own, keep_both_insertions=True), BOTH
    together = mine.own + other.own if text is None else text
    steps: list[Step] = []
    is_again = False
    for side, index, where in _sides(here, there, mine, other):
        new = _with(index, together)
        if new == (index.text or ""):
            continue
        if index.own != together:
            steps.append(Step(INDEX, "create" if index.text is None else "merge", where, why))
        if not dry_run:
            try:
                await side.folder.apply([_change(index.text, new)], AUTHOR, f"sync with {side.name}")
            except Conflict:
                is_again = True
            except (BackendError, InvalidMemoryFile) as error:
                return Lines(was, (Step(INDEX, "left", where, str(error)),))
    return Lines(was if is_again else together, tuple(steps), is_again)


def _sides(here: Side, there: Side, mine: _Index, other: _Index) -> tuple[tuple[Side, _Index, Where], ...]:
    return (here, mine, "here"), (there, other, "there")


async def _text(side: Side) -> str | None:
    """The index as it is; None when it is known to be absent."""
    now = side.folder.catalog.index_now or (await side.read([INDEX]))[INDEX]
    return index_text(now) if isinstance(now, File) or now.kind != "absent" else None


async def _settled(side: Side, text: str | None) -> _Index:
    """The index as the next save would leave it, in which no line of ours is out of date, so that none is taken for a person's."""
    applied = await side.folder.apply([_change(text, text or "")], AUTHOR, "look at the index", dry_run=True)
    settled = applied.index.text if applied.index is not None else text or ""
    return _Index(text, settled, own_lines(settled, side.folder.listed))


def _change(before: str | None, after: str) -> Change:
    data = after.encode()
    return Create(INDEX, data) if before is None else Replace(INDEX, data, etag_of(before.encode()))


def _with(index: _Index, together: str) -> str:
    """One side's index with these lines of people."""
    if index.own == together:
        return index.settled
    text = merge(index.own, together, index.settled, keep_both_insertions=True)
    return together if text is None else text


def _common(one: str, two: str) -> str:
    """The lines that both have, in order."""
    some, others = one.splitlines(keepends=True), two.splitlines(keepends=True)
    blocks = SequenceMatcher(None, some, others, autojunk=False).get_matching_blocks()
    return "".join("".join(some[block.a : block.a + block.size]) for block in blocks)
