"""Conversations of two folders: what one has more is added to the other, and nothing in them is ever replaced or deleted. Floor 4.

A journal is no one's to edit and stands in no history, so what a person changes or deletes in one stays so on that side, and is not
carried over; what is said later is, and brings nothing back that was taken out.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mdmemory.backends.protocol import ABSENT, Append, File, FileProblem, Op, Put, etag_of, to_append
from mdmemory.care.reconcile.fates import Step
from mdmemory.care.reconcile.side import Side, etag_or_none, parted
from mdmemory.errors import Conflict, InvalidPath, UnsafeFile
from mdmemory.files.journal import end_mark, entry_bytes, parse
from mdmemory.folder.sweeping import read_whole

PUT_BYTES: Final = 4 * 1024 * 1024  # what a new file begins with; more is added behind it
COMES_BACK: Final = "deleted on one side, and the conversation went on on the other"
_END: Final = re.compile(rb"(\n<!-- end [^\n]*-->)\r?\n{0,2}")
Pairs = Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Met:
    """What one conversation comes to: what each side is given, and the etags that they then have; "" for absent."""

    here: tuple[Op, ...]
    there: tuple[Op, ...]
    pair: tuple[str, str]
    why: str = ""


async def bring_together(
    here: Side, there: Side, was: Pairs, *, dry_run: bool = False
) -> tuple[dict[str, tuple[str, str]], list[Step]]:
    """Add to each side's conversations what the other's have more.

    Args:
        was: the pair of etags of each conversation when last looked at.

    Returns:
        The pairs of now, and what was done.
    """
    pairs, steps = dict(was), list[Step]()
    sizes = [{path: entry.size for path, entry in side.folder.catalog.journals.items()} for side in (here, there)]
    there_are = sizes[0].keys() | sizes[1].keys()
    for path in was.keys() - there_are:
        del pairs[path]
    news = sorted(path for path in there_are if not _is_known(path, here, there, was))
    for some in parted(news, lambda path: max(size.get(path, 0) for size in sizes)):
        data = await asyncio.gather(*(_contents(side, some) for side in (here, there)))
        ops: tuple[list[Op], list[Op]] = ([], [])
        done: dict[str, tuple[str, str]] = {}
        told: list[Step] = []
        for path in some:
            one, two = (side.get(path) for side in data)
            if isinstance(one, FileProblem) or isinstance(two, FileProblem):
                told.append(Step(path, "left", "both", next(each.reason for each in (one, two) if isinstance(each, FileProblem))))
                continue
            met = meet(path, was.get(path), one, two)
            ops[0].extend(met.here)
            ops[1].extend(met.there)
            done[path] = met.pair
            told += _steps(path, met, one, two)
        if not dry_run:
            try:
                for side, more in ((here, ops[0]), (there, ops[1])):
                    if more:
                        await side.folder.backend.commit(uuid.uuid4().hex, more)
            except Conflict:
                continue  # another sync was first: the next look tells
            except (InvalidPath, UnsafeFile) as error:
                steps += [Step(path, "left", "both", str(error)) for path, pair in done.items() if pair != was.get(path)]
                continue
            pairs |= done
        steps += told
    return pairs, steps


def _is_known(path: str, here: Side, there: Side, was: Pairs) -> bool:
    """Whether the versions alone say that neither has anything to give."""
    one, two = (side.stamped(path) if path in side.folder.catalog.journals else "" for side in (here, there))
    unsure = any(path in side.folder.catalog.journals and not etag for side, etag in ((here, one), (there, two)))
    return not unsure and (one, two) == was.get(path)


async def _contents(side: Side, paths: Sequence[str]) -> dict[str, bytes | FileProblem]:
    """The whole of each conversation that there is."""
    wanted = [path for path in paths if path in side.folder.catalog.journals]
    found: dict[str, bytes | FileProblem] = {}
    for path, file in (await side.read(wanted)).items():
        if isinstance(file, File):
            found[path] = file.data
        elif file.kind == "too_large":
            whole = await read_whole(side.folder.backend, path)
            found |= {} if whole is None else {path: whole}
        elif file.kind != "absent":
            found[path] = file
        if isinstance(data := found.get(path), bytes):
            side.stamp(path, etag_of(data))
    return found


def meet(path: str, was: tuple[str, str] | None, here: bytes | None, there: bytes | None) -> Met:
    """What two versions of a conversation have to give each other.

    Args:
        was: the etags of both when last looked at; what has not changed since has nothing new to give.
    """
    etags = etag_or_none(here) or "", etag_or_none(there) or ""
    if etags[0] == etags[1] or etags == was:
        return Met((), (), etags)
    new_here, new_there = (was is None or now != before for now, before in zip(etags, was or ("", ""), strict=True))
    if here is None or there is None:
        data, is_new = (there, new_there) if here is None else (here, new_here)
        if data is None or not is_new:
            return Met((), (), etags, "deleted on one side: it stays deleted there, and is kept on the other")
        ops = tuple(_whole(path, data))
        pair = etag_of(data), etag_of(data)
        why = COMES_BACK if was is not None else ""
        return Met(ops, (), pair, why) if here is None else Met((), ops, pair, why)
    last_here, last_there = was or ("", "")
    to_here = _more(here, there, last_there) if new_there else b""
    to_there = _more(there, here, last_here) if new_here else b""
    ops_here, ops_there = _append(path, to_here), _append(path, to_there)
    after = tuple(etag_of(data + b"".join(to_append(data[-1:], op) for op in ops))
                  for data, ops in ((here, ops_here), (there, ops_there)))  # fmt: skip
    return Met(ops_here, ops_there, (after[0], after[1]))


def _more(known: bytes, other: bytes, last: str) -> bytes:
    """What another version has more, byte for byte where it goes on from the known one, else its other entries.

    Args:
        last: the etag of the other one when last looked at: what it had then and the known one lacks was taken out there.
    """
    seen = _length(other, last)
    if other.startswith(known) and seen <= len(known):
        rest = other[len(known) :]
        parsed = parse(rest)
        return rest if not parsed.torn else rest[: parsed.end]
    if known.startswith(other):
        return b""
    ids = {message.id for message in parse(known).messages}
    return b"".join(entry_bytes(message) for message in parse(other[seen:]).messages if message.id not in ids)


def _length(data: bytes, etag: str) -> int:
    """How many of the first bytes have this etag, where they end with an entry; else 0."""
    digest, done = hashlib.sha256(), 0
    for found in _END.finditer(data):
        for end in range(found.end(1), found.end() + 1):
            digest.update(data[done:end])
            done = end
            if digest.hexdigest() == etag:
                return end
    return 0


def _append(path: str, data: bytes) -> tuple[Append, ...]:
    messages = parse(data).messages
    return (Append(path, data, end_mark(messages[-1].id)),) if messages else ()


def _whole(path: str, data: bytes) -> Iterator[Op]:
    """A new file, in parts where it is large, each of which ends with an entry."""
    if len(data) <= PUT_BYTES:
        yield Put(path, data, ABSENT)
        return
    first, rest = _cut(data)
    yield Put(path, first, ABSENT)
    yield from _append(path, rest)


def _cut(data: bytes) -> tuple[bytes, bytes]:
    end = parse(data[:PUT_BYTES]).end
    return data[:end], data[end:]


def _steps(path: str, met: Met, here: bytes | None, there: bytes | None) -> Iterator[Step]:
    if met.why and not (met.here or met.there):
        yield Step(path, "left", "here" if here is None else "there", met.why)
    if met.here:
        yield Step(path, "append" if here is not None else "create", "here", met.why)
    if met.there:
        yield Step(path, "append" if there is not None else "create", "there", met.why)
