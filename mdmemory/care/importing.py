"""An import meets the folder: what is new comes, what is the same stays, what people changed is never overwritten. Floor 4.

The *base* is what the last import of a kind wrote: by key, the path and the etag. It tells a person's change from the source's, and
what was deleted here since from what never came. Without it (the history was thrown away), a file is known by its `source`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal

from mdmemory.backends.paths import collision_key
from mdmemory.backends.protocol import MAX_FILE_BYTES, File, FileProblem, Put, etag_of
from mdmemory.care.importers.plan import Conversation, Left, Plan
from mdmemory.care.importers.secret import named_by, names_its_source, without_secrets
from mdmemory.care.progress import Progress, unseen
from mdmemory.errors import ConfigError, Conflict, InvalidMemoryFile, InvalidPath, PermissionDenied, UnsafeFile
from mdmemory.files.changes import Create, Replace
from mdmemory.files.memory_file import decode
from mdmemory.folder.any_folder import Folder, backends_of, home_only
from mdmemory.folder.known import INDEX

AUTHOR = "import"
BASE_BYTES = MAX_FILE_BYTES // 2
BASE_FILES = 32
Action = Literal["create", "replace", "merge", "same", "kept", "conflict"]


@dataclass(frozen=True, slots=True)
class Step:
    """What an import does with one file.

    Args:
        action: `kept` when only a person changed or deleted it since the last import, `conflict` when nothing can be done without
            losing something; `reason` then says why.
    """

    path: str
    action: Action
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Heard:
    """What an import does with one conversation.

    Args:
        new, known: how many of its messages come, and are in the journal already.
    """

    session: str
    title: str
    new: int
    known: int


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did, or would do."""

    steps: tuple[Step, ...]
    conversations: tuple[Heard, ...]
    left: tuple[Left, ...]


@dataclass(frozen=True, slots=True)
class _Was:
    """A file as the last import wrote it."""

    path: str
    etag: str


_Base = Mapping[str, _Was]
_Change = Create | Replace


async def import_plan(folder: Folder, kind: str, plan: Plan, *, dry_run: bool = False, progress: Progress = unseen) -> Imported:
    """Bring what a plan holds into the folder; doing it again changes nothing.

    Args:
        kind: of the source, as the command knows it; each kind has its own base.
        dry_run: only say what would be done.
        progress: is told how many of the conversations are in the journal.

    Raises:
        ConfigError: conversations are to come, and the settings keep no journal; or the scanner for secrets is not installed.
        PermissionDenied: the folder was opened read-only; nothing was written.
        Unavailable: the folder can't be looked at.
    """
    home = home_only(folder)
    if home.is_read_only and not dry_run:
        raise PermissionDenied("The folder was opened read-only, so nothing can be imported into it.")
    if plan.conversations and not home.config.journal:
        raise ConfigError("Conversations go into the journal, which the settings switch off: set journal to true for the import.")
    await home.refresh()
    place = f".mdmemory/import/{sha256(kind.encode()).hexdigest()[:16]}"
    base = await _read_base(home, place)
    wanted, left = without_secrets(plan, home.config.secrets)
    decided = await _Decisions.of(home, base, wanted)
    steps = [*decided.steps, *await _apply(home, decided.changes, kind, dry_run)]
    failed = {step.path for step in steps if step.action == "conflict"}
    heard, unheard = await _hear(home, plan.conversations, dry_run, progress)
    if not dry_run:
        known = {key: was for key, was in decided.base.items() if was.path not in failed or base.get(key) == was}
        await _write_base(home, place, base, {**base, **known})
    return Imported(tuple(sorted(steps, key=lambda step: step.path)), heard, (*plan.left, *left, *unheard))


@dataclass(slots=True)
class _Decisions:
    """What is to become of each file; made by `of`."""

    steps: list[Step]
    changes: list[tuple[Step, _Change]]
    base: dict[str, _Was]

    @classmethod
    async def of(cls, home: Folder, base: _Base, wanted: Mapping[str, tuple[Create, str]]) -> _Decisions:
        """Decide by what is there now."""
        decisions = cls([], [], {})
        owners = {entry: path for path, known in home.files.items() if known.header for entry in known.header.source}
        alike = {collision_key(path): path for path in (*home.files, INDEX)}
        paths = {key: _path(key, change, base, owners, home.files, alike) for key, (change, _) in wanted.items()}
        there = await home.read_many([path for path in paths.values() if path in home.files or path == INDEX]) if paths else {}
        for key, (change, found) in wanted.items():
            path, was, now = paths[key], base.get(key), there.get(paths[key])
            if isinstance(now, FileProblem) and now.kind != "absent":
                step, made = Step(path, "conflict", f"what is there can't be read: {now.reason}"), None
            elif path == INDEX:
                step, made = _index(change, was, now.data if isinstance(now, File) else None)
            elif isinstance(now, File):
                step, made = _there(Create(path, change.data), was, now)
            elif was is not None:
                step, made = Step(path, "kept", "deleted here since it was imported"), None
            elif twin := alike.get(collision_key(path)):
                step, made = Step(path, "conflict", f"it would be taken for {twin}, which is there"), None
            else:
                step, made = Step(path, "create", found), Create(path, change.data)
            if made is None:
                decisions.steps.append(step)
            else:
                decisions.changes.append((replace(step, reason=step.reason or found), made))
            if step.action not in ("kept", "conflict"):
                decisions.base[key] = _Was(path, etag_of(change.data))
                alike[collision_key(path)] = path
        return decisions


def _path(
    key: str, change: Create, base: _Base, owners: Mapping[str, str], files: Mapping[str, object], alike: Mapping[str, str]
) -> str:
    """Where a file is, or is to be: people may have moved it, and one that names its source may give way to another."""
    names_source = names_its_source(key, change)
    if key in base and (base[key].path in files or not (names_source and key in owners)):
        return base[key].path
    if not names_source:
        return change.path
    return owners.get(key) or (named_by(key, change.path) if collision_key(change.path) in alike else change.path)


def _there(change: Create, was: _Was | None, now: File) -> tuple[Step, _Change | None]:
    """What becomes of a file that is there."""
    if now.data == change.data:
        return Step(change.path, "same"), None
    if was is not None and was.etag == etag_of(change.data):
        return Step(change.path, "kept", "changed here since it was imported, and not in the source"), None
    if was is not None and was.etag == now.etag:
        return Step(change.path, "replace"), Replace(change.path, change.data, now.etag, now.data)
    why = "is there with other content" if was is None else "was changed here and in the source"
    return Step(change.path, "conflict", f"it {why}; it stays as it is here"), None


def _index(change: Create, was: _Was | None, now: bytes | None) -> tuple[Step, _Change | None]:
    """The index that is there gets the lines that it lacks; what was taken in once does not come back."""
    if now is None:
        return (Step(INDEX, "create"), change) if was is None else (Step(INDEX, "kept", "deleted here since it was imported"), None)
    if now == change.data or (was is not None and was.etag == etag_of(change.data)):
        return Step(INDEX, "same"), None
    try:
        text = decode(INDEX, now)
    except InvalidMemoryFile as error:
        return Step(INDEX, "conflict", error.reason), None
    known = {line.strip() for line in text.splitlines()} | {"# Memory", ""}
    lines = [line for line in decode(INDEX, change.data).splitlines() if line.strip() not in known]
    if not lines:
        return Step(INDEX, "same"), None
    end = "" if text.endswith("\n") or not text else "\n"
    more = "".join([text, end, *(f"{line}\n" for line in lines)])
    return Step(INDEX, "merge"), Replace(INDEX, more.encode(), etag_of(now), now)


async def _apply(home: Folder, changes: Sequence[tuple[Step, _Change]], kind: str, dry_run: bool) -> list[Step]:
    """Make all changes in one commit; where one of them can't be made, halve them until it alone is left out."""
    if not changes:
        return []
    try:
        await home.apply([change for _, change in changes], AUTHOR, f"import {kind}", dry_run=dry_run)
    except (Conflict, InvalidMemoryFile, InvalidPath, PermissionDenied, UnsafeFile) as error:
        if len(changes) == 1:
            return [Step(changes[0][0].path, "conflict", str(error))]
        half = len(changes) // 2
        return [step for part in (changes[:half], changes[half:]) for step in await _apply(home, part, kind, dry_run)]
    return [step for step, _ in changes]


async def _hear(
    home: Folder, conversations: Mapping[str, Conversation], dry_run: bool, progress: Progress
) -> tuple[tuple[Heard, ...], tuple[Left, ...]]:
    """Add to the journal what it lacks; a commit for each conversation."""
    journals, heard, left = home.journals, [], []
    sessions = set(journals.sessions) if conversations else set()
    for session, conversation in conversations.items():
        known = {message.id: message for message in await journals.messages(session)} if session in sessions else {}
        new = [message for message in conversation.messages if message.id not in known]
        for message in conversation.messages:
            if message.id in known and known[message.id].data != message.data:
                left.append(Left(f"{conversation.source}#{message.id}", "the journal has it in other words, which stay"))
        if new and not dry_run:
            about = {"source": conversation.source, **({"name": conversation.title} if conversation.title else {})}
            await journals.append(session, new, about)
        heard.append(Heard(session, conversation.title, len(new), len(conversation.messages) - len(new)))
        progress(len(heard), len(conversations))
    return tuple(heard), tuple(left)


def _base_files(place: str) -> list[str]:
    """Where a base may be: in so many files, as each has its bounds; the later ones only when there is so much."""
    return [f"{place}{f'-{number}' if number else ''}.json" for number in range(BASE_FILES)]


async def _read_base(home: Folder, place: str) -> _Base:
    base = dict[str, _Was]()
    for found in (await backends_of(home)[""].read(dict.fromkeys(_base_files(place)))).values():
        if isinstance(found, File):
            try:
                base |= {str(key): _Was(str(path), str(etag)) for key, (path, etag) in json.loads(found.data).items()}
            except (ValueError, TypeError, AttributeError):
                continue  # as if this had not been imported: what differs is a conflict
    return base


async def _write_base(home: Folder, place: str, before: _Base, base: _Base) -> None:
    if base == before:
        return
    parts, size = list[dict[str, list[str]]]([{}]), 0
    for key, was in sorted(base.items()):
        more = len(json.dumps({key: [was.path, was.etag]}))
        if size + more > BASE_BYTES:
            parts, size = [*parts, {}], 0
        parts[-1][key], size = [was.path, was.etag], size + more
    data = [json.dumps(part, ensure_ascii=False).encode() for part in parts]
    ops = [Put(path, each) for path, each in zip(_base_files(place), data, strict=False)]
    await backends_of(home)[""].commit(uuid.uuid4().hex, ops)
