"""Moving what changed between two folders: a sandbox's and the one people keep. Floor 4.

The *base* is what each side had taken from the other after the last time. It tells who changed what since: only the source's
changes travel, a file changed on both sides is merged by lines or left and reported, and what was deleted on one side does not come
back from the other. The base lies with the people's folder, a marker with the sandbox's: one that was wiped or made anew lacks it,
and nothing is deleted after it.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mdmemory.backends.protocol import ABSENT, File, FileProblem, Op, Put
from mdmemory.errors import Conflict, InvalidArguments, InvalidMemoryFile, InvalidPath, PermissionDenied, UnsafeFile
from mdmemory.files import history
from mdmemory.files.changes import Change, Create, Delete, Replace, merge
from mdmemory.files.history import object_path
from mdmemory.files.memory_file import decode, parse
from mdmemory.folder.any_folder import Folder
from mdmemory.folder.known import INDEX, etag_in
from mdmemory.folder.memory_folder import MemoryFolder

MARKER = ".mdmemory/sync-"  # and the id: each folder that is kept in step with this one has its own
MAX_DELETED = 5  # so many may always go, but not all; beyond it, at most this share of what was there
MAX_DELETED_SHARE = 0.2
_AT_ONCE = 50
BOTH_CHANGED = "the same lines were changed on both sides"
GONE_THERE, GONE_HERE = "deleted there and changed here", "changed there and deleted here"


@dataclass(frozen=True, slots=True)
class Step:
    """What a sync does with one file.

    Args:
        action: `left` when nothing can be done; `reason` then says why.
    """

    path: str
    action: Literal["create", "update", "merge", "delete", "left"]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Base:
    """What both folders had of each other after the last sync.

    Args:
        id: of the marker in the other folder; "" before the first sync.
        etags: of the version of each file that both had taken in.
        index: the text of MEMORY.md that both had taken in.
    """

    id: str = ""
    etags: Mapping[str, str] = field(default_factory=dict)
    index: str = ""


@dataclass(frozen=True, slots=True)
class _Side:
    folder: MemoryFolder
    etags: Mapping[str, str]
    data: Mapping[str, File | FileProblem]

    def bytes_of(self, path: str) -> bytes | None:
        file = self.data.get(path)
        return file.data if isinstance(file, File) else None


async def sync(mine: Folder, other: Folder, name: str, *, push: bool, dry_run: bool = False, force: bool = False) -> list[Step]:
    """Bring one folder's changes since the last sync into the other.

    Args:
        mine: the people's folder, which keeps the base.
        other: the sandbox's.
        name: of the other folder; each name has its own base.
        push: from mine to the other; else from the other to mine.
        dry_run: only say what would be done.
        force: the source wins where both changed; much may be deleted; a folder that was wiped is taken for a new one.

    Raises:
        InvalidArguments: other folders are mounted in one of them.
        PermissionDenied: too much would be deleted, or the other folder was wiped; nothing was done.
        Unavailable: a folder can't be looked at.
    """
    if not (isinstance(mine, MemoryFolder) and isinstance(other, MemoryFolder)):
        raise InvalidArguments("A sync is between two folders, and here several are mounted in one. Name the folder itself.")
    place = f".mdmemory/sync/{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"
    base = await _read_base(mine, place)
    for folder in (mine, other):
        await folder.refresh()
    if not (mine if push else other).files and not base.id:
        return []  # there is nothing to bring, perhaps as the place was mistyped: so nothing is made either
    marker = MARKER + (base.id or "none")
    is_known = bool(base.id) and isinstance((await other.backend.read({marker: None}))[marker], File)
    if base.id and not is_known and not push and not force:
        raise PermissionDenied(
            "The other folder was wiped or made anew since the last sync. Nothing was done. "
            "Push to it first, or use --force to take what is there now; nothing is deleted then."
        )
    known = base if is_known else Base()
    source, target = await _sides(*((mine, other) if push else (other, mine)))
    plan = await _plan(source, target, known, force)
    deleted = sum(step.action == "delete" for step, _ in plan)
    if not force and (deleted > max(MAX_DELETED, MAX_DELETED_SHARE * len(known.etags)) or deleted == len(known.etags) > 1):
        raise PermissionDenied(
            f"{deleted} of {len(known.etags)} files would be deleted. Nothing was done. Use --force if they are to go."
        )
    if dry_run:
        return [step for step, _ in plan]
    steps = await _apply(target.folder, plan, f"{'push to' if push else 'pull from'} {name}")
    sync_id = base.id if is_known else await _mark(other)
    await _write_base(mine, place, _taken(source, target, known, steps, sync_id), source)
    return steps


Plan = list[tuple[Step, Change | None]]


async def _apply(target: MemoryFolder, plan: Plan, reason: str) -> list[Step]:
    """Make the changes, many at once; where one of them can't be made, each by itself, so that it alone is left."""
    steps = [step for step, change in plan if change is None]
    waiting = [(step, change) for step, change in plan if change is not None]
    size = 1  # the index goes first, by itself: what follows adds to it
    while waiting:
        part, waiting = waiting[:size], waiting[size:]
        try:
            await target.apply([change for _, change in part], "sync", reason)
            steps += [step for step, _ in part]
            size = _AT_ONCE
        except (Conflict, InvalidMemoryFile, InvalidPath, UnsafeFile) as error:
            if len(part) == 1:
                steps.append(Step(part[0][0].path, "left", str(error)))
            else:
                waiting, size = [*part, *waiting], 1
    return sorted(steps, key=lambda step: step.path)


async def _sides(source: MemoryFolder, target: MemoryFolder) -> tuple[_Side, _Side]:
    """Both folders, with the bytes of every file that may travel."""
    etags = [{path: etag for path, known in folder.files.items() if (etag := etag_in(known))} for folder in (source, target)]
    differing = [path for path in source.files.keys() & target.files.keys() if etags[0].get(path) != etags[1].get(path)]
    new = source.files.keys() - target.files.keys()
    data = [await source.read_many([*differing, *new, INDEX]), await target.read_many([*differing, INDEX])]
    for known, read in zip(etags, data, strict=True):
        known.update({path: file.etag for path, file in read.items() if isinstance(file, File) and file.etag and path != INDEX})
    return _Side(source, etags[0], data[0]), _Side(target, etags[1], data[1])


async def _plan(source: _Side, target: _Side, base: Base, force: bool) -> Plan:
    contested = [
        path for path in source.etags.keys() & target.etags.keys() & base.etags.keys() if source.etags[path] != target.etags[path]
    ]
    places = dict.fromkeys(object_path(base.etags[path]) for path in contested)
    kept = [await side.folder.backend.read(places) if places else {} for side in (source, target)]
    plan: Plan = list(filter(None, [_index(source, target, base, force)]))
    for path in sorted(source.folder.files.keys() | target.folder.files.keys()):
        place = object_path(base.etags[path]) if path in base.etags else ""
        old = next((file.data for read in kept if isinstance(file := read.get(place), File)), None)
        found = _one(path, source, target, base.etags.get(path), old)
        if found and force and found[0].reason in (BOTH_CHANGED, GONE_THERE, GONE_HERE):
            found = _forced(path, source, target)
        plan += [found] if found else []
    return plan


def _one(path: str, source: _Side, target: _Side, was: str | None, old: bytes | None) -> tuple[Step, Change | None] | None:
    """What becomes of one file of the target; None when it has the source's version, or a newer one."""
    theirs, ours = source.etags.get(path), target.etags.get(path)
    data, current = source.bytes_of(path), target.bytes_of(path)
    if any(_is_unseen(side.folder, path) for side in (source, target)):
        return Step(path, "left", "it could not be looked at"), None
    if path not in source.folder.files:
        if was is None:
            return None
        return (Step(path, "delete"), Delete(path, was)) if ours == was else (Step(path, "left", GONE_THERE), None)
    if theirs is not None and theirs in (ours, was):
        return None
    if path not in target.folder.files and was is not None:
        return Step(path, "left", GONE_HERE), None
    if data is None or (path in target.folder.files and (current is None or ours is None)):
        return Step(path, "left", "it can't be read"), None
    try:
        parse(path, data)
    except InvalidMemoryFile as error:
        return Step(path, "left", error.reason), None
    if current is None or ours is None:
        return Step(path, "create"), Create(path, data)
    if ours == was:
        return Step(path, "update"), Replace(path, data, ours, current)
    merged = _merged(path, old, data, current)
    if merged is None:
        return Step(path, "left", BOTH_CHANGED), None
    return Step(path, "merge"), Replace(path, merged, ours, current)


def _is_unseen(folder: MemoryFolder, path: str) -> bool:
    """Whether a path that is not listed was skipped, or lies in a folder that was: then it is not known to be gone."""
    return path not in folder.files and any(path == place or path.startswith(f"{place}/") for place in folder.skipped)


def _forced(path: str, source: _Side, target: _Side) -> tuple[Step, Change | None]:
    """What becomes of a file that both changed when the source is to win; the target's version stays in its history."""
    data, current, ours = source.bytes_of(path), target.bytes_of(path), target.etags.get(path)
    if path not in source.folder.files:
        return Step(path, "delete"), Delete(path, ours)
    if data is None:
        return Step(path, "left", "it can't be read"), None
    if current is None or ours is None:
        return Step(path, "create"), Create(path, data)
    return Step(path, "update"), Replace(path, data, ours, current)


def _merged(path: str, old: bytes | None, one: bytes, two: bytes) -> bytes | None:
    if old is None:
        return None
    try:
        text = merge(*(decode(path, data) for data in (old, one, two)))
    except InvalidMemoryFile:
        return None
    return None if text is None else text.encode()


def _index(source: _Side, target: _Side, base: Base, force: bool) -> tuple[Step, Change | None] | None:
    """People's lines of the index, merged; our own lines follow the files by themselves."""
    theirs, ours = source.bytes_of(INDEX), target.data.get(INDEX)
    if theirs is None or theirs == base.index.encode():
        return None
    if isinstance(ours, FileProblem) and ours.kind == "absent":
        return Step(INDEX, "create"), Create(INDEX, theirs)
    if not isinstance(ours, File) or ours.etag is None:
        return Step(INDEX, "left", "it can't be read"), None
    try:
        text = merge(base.index, decode(INDEX, theirs), decode(INDEX, ours.data), keep_both_insertions=True)
    except InvalidMemoryFile as error:
        return Step(INDEX, "left", error.reason), None
    if text is None and not force:
        return Step(INDEX, "left", BOTH_CHANGED), None
    merged = theirs if text is None else text.encode()
    return None if merged == ours.data else (Step(INDEX, "merge"), Replace(INDEX, merged, ours.etag, ours.data))


async def _read_base(mine: MemoryFolder, place: str) -> Base:
    found = (await mine.backend.read({place: None}))[place]
    if not isinstance(found, File):
        return Base()
    try:
        kept = json.loads(found.data)
        return Base(str(kept["id"]), {str(path): str(etag) for path, etag in kept["etags"].items()}, str(kept["index"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return Base()  # as if it were the first time: nothing is deleted, and what differs is left


def _taken(source: _Side, target: _Side, base: Base, steps: Sequence[Step], sync_id: str) -> Base:
    """The base after a sync: the source's version of every file that the target has taken in."""
    left = {step.path for step in steps if step.action == "left"}
    handled = {step.path for step in steps} - left
    same = {path for path, etag in source.etags.items() if target.etags.get(path) == etag}
    etags = {path: etag for path, etag in base.etags.items() if path in source.etags or path in left}
    etags |= {path: source.etags[path] for path in handled | same if path in source.etags}
    text = source.bytes_of(INDEX)
    index = (
        text.decode("utf-8", "replace") if text is not None and (INDEX in handled or text == target.bytes_of(INDEX)) else base.index
    )
    return Base(sync_id, etags, index)


async def _mark(other: MemoryFolder) -> str:
    sync_id = uuid.uuid4().hex
    await other.backend.commit(uuid.uuid4().hex, [Put(MARKER + sync_id, b"")])
    return sync_id


async def _write_base(mine: MemoryFolder, place: str, base: Base, source: _Side) -> None:
    """Note what both have taken in, with the source's bytes: the next merge begins from them."""
    taken = [path for path, etag in base.etags.items() if source.etags.get(path) == etag]
    objects: list[Op] = [
        Put(path, data, ABSENT, required=False) for path, data in history.objects(map(source.bytes_of, taken)).items()
    ]
    kept = {"id": base.id, "etags": base.etags, "index": base.index}
    await mine.backend.commit(uuid.uuid4().hex, [*objects, Put(place, json.dumps(kept, ensure_ascii=False).encode())])
