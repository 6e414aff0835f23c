"""A change meets the file as it is now: checked, merged or refused, and settled to bytes. Floor 3, no input or output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mdmemory.backends.paths import check, collision_key
from mdmemory.backends.protocol import MAX_FILE_BYTES, etag_of
from mdmemory.errors import Conflict, InvalidMemoryFile, InvalidPath
from mdmemory.files import index
from mdmemory.files.changes import Append, Change, Create, Delete, Rename, Replace, merge
from mdmemory.files.index import inline_content
from mdmemory.files.journal import JOURNAL
from mdmemory.files.memory_file import check_typed, decode, parse
from mdmemory.folder.known import INDEX, is_markdown, is_memory_path


@dataclass(frozen=True, slots=True)
class Settled:
    """What a change comes to: one file's bytes before and after; None for absent.

    Args:
        merged: whether an edit made meanwhile was merged in.
        moved_from: the path it had, when it is the new path of a rename.
        restored: whether it was deleted before and comes back.
        absorbed: whether it goes because another file says now what it said.
    """

    path: str
    before: bytes | None
    after: bytes | None
    merged: bool = False
    moved_from: str | None = None
    restored: bool = False
    absorbed: bool = False


@dataclass(frozen=True, slots=True)
class Applied:
    """What an `apply` did, or would do.

    Args:
        commit_id: None for a dry run, or when nothing had to be written.
        files: each file's bytes before and after; of the index, with our lines brought up to date; of an append, what was added.
        index: the index's figures after it; None when the index could not be kept, as `warnings` says, or was not concerned.
        warnings: what the one who proposed the change should know.
    """

    commit_id: str | None
    files: tuple[Settled, ...]
    index: index.Updated | None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """What settling depends on besides the bytes.

    Args:
        types: the allowed memory types.
        typed: whether what is created must have full frontmatter, as for agents.
        lookalike: an existing path that looks like a given one, or None.
        plain: whether that holds only of what has frontmatter at all, and any text file may be made.
    """

    types: Mapping[str, str]
    typed: bool
    lookalike: Callable[[str], str | None]
    plain: bool = False


def check_change(change: Change, plain: bool = False) -> None:
    """Refuse what no change may do, before anything is read.

    Args:
        plain: whether files of any name may be changed.

    Raises:
        InvalidPath, InvalidMemoryFile
    """
    for path in (change.path, change.new_path) if isinstance(change, Rename) else (change.path,):
        check(path)
        if collision_key(f"{path}/").startswith(JOURNAL):
            raise InvalidPath(f"{path} is in the journal, which is written by conversations only")
        if path == INDEX and isinstance(change, (Delete, Rename)):
            raise InvalidPath(f"{INDEX} is the index and stays where it is; its lines follow the memory files")
        if not (plain or isinstance(change, Rename) or is_markdown(path)):
            raise InvalidPath(f"{path} does not end in .md; memory files do, and other files are left alone")
    if isinstance(change, Rename) and f"{change.new_path}/".startswith(f"{change.path}/"):
        raise InvalidPath(f"{change.path} can't be moved into itself; choose another new path")
    if isinstance(change, Append) and not (is_memory_path(path := change.path) and change.data.strip()):
        raise InvalidPath(f"there is nothing to add to {path}: give text, and the path of a memory file")
    if isinstance(change, (Create, Replace, Append)):
        if len(change.data) > MAX_FILE_BYTES:
            raise InvalidMemoryFile(
                change.path, f"it would have {len(change.data):,} bytes; at most {MAX_FILE_BYTES:,}. Split it into several files"
            )
        decode(change.path, change.data)


def moves_of(renames: Iterable[Rename], files: Iterable[str], plain: bool = False) -> dict[str, str]:
    """Each memory file that the renames move, and where to.

    Args:
        files: the memory files; with `plain`, every file.

    Raises:
        InvalidPath: one moves no memory file, or makes one what is none.
    """
    moves: dict[str, str] = {}
    for rename in renames:
        inside = [path for path in files if path.startswith(f"{rename.path}/")]
        if not (inside or plain) and not (is_markdown(rename.path) and is_markdown(rename.new_path)):
            raise InvalidPath(
                f"{rename.path} can't be moved to {rename.new_path}: move a memory file to a path that ends in .md, "
                "or a folder with memory files in it"
            )
        moved = {path: rename.new_path + path.removeprefix(rename.path) for path in inside or [rename.path]}
        if moves.keys() & moved.keys():
            raise InvalidPath("two changes of one commit move the same file; make them one")
        moves |= moved
    return moves


def settle(changes: Sequence[Change], current: Mapping[str, bytes | None], moves: Mapping[str, str], rules: Rules) -> list[Settled]:
    """Settle all changes of one commit against the current bytes.

    Args:
        current: the bytes of every path the changes touch; None for absent.
        moves: old path to new path of every file that the renames move.

    Raises:
        Conflict: the same lines were changed meanwhile, or the file went away, or the path is taken.
        InvalidMemoryFile, InvalidPath
    """
    settled: list[Settled] = []
    for change in changes:
        if isinstance(change, Create):
            settled.append(_create(change, current[change.path], rules))
        elif isinstance(change, Replace):
            settled.append(_replace(change, current[change.path], rules))
        elif isinstance(change, Delete):
            settled.append(_delete(change, current[change.path]))
    for old, new in moves.items():
        if current[old] is None:
            raise Conflict(old, None)
        _refuse_taken(new, current[new], rules, ignore=frozenset(moves))
        if not is_memory_path(old):
            _validate(new, current[old] or b"", None, rules)
        settled += [Settled(old, current[old], None), Settled(new, None, current[old], moved_from=old)]
    if len({item.path for item in settled}) < len(settled):
        raise InvalidPath("two changes of one commit touch the same file; make them one")
    made = [item.path for item in settled if item.before is None and item.after is not None]
    alike = {collision_key(path): path for path in made}
    for path in made:
        if alike[collision_key(path)] != path:
            raise InvalidPath(f"{path} would be taken for {alike[collision_key(path)]}; choose clearly different names")
    return settled


def _create(change: Create, now: bytes | None, rules: Rules) -> Settled:
    if now == change.data:
        return Settled(change.path, now, now)  # a retry after a lost answer
    _refuse_taken(change.path, now, rules)
    if not change.as_is:
        _validate(change.path, change.data, None, rules)
    return Settled(change.path, None, change.data, restored=change.restored)


def _refuse_taken(path: str, now: bytes | None, rules: Rules, ignore: frozenset[str] = frozenset()) -> None:
    if now is not None:
        decode(path, now)  # of what is not text, nobody could read what to repeat the change on
        raise Conflict(path, etag_of(now), now.decode("utf-8", "replace"))
    twin = rules.lookalike(path)
    if twin is not None and twin != path and twin not in ignore:
        raise InvalidPath(
            f"{path} would be taken for {twin}, which exists. Nothing was written: edit {twin}, or choose a clearly different name."
        )


def _replace(change: Replace, now: bytes | None, rules: Rules) -> Settled:
    if now is None:
        raise Conflict(change.path, None)
    data, merged = change.data, False
    if etag_of(now) != change.base and now != data:
        text = None
        if change.base_data is not None:
            base, ours, theirs = (decode(change.path, side) for side in (change.base_data, data, now))
            text = merge(base, ours, theirs, keep_both_insertions=change.path == INDEX)
        if text is None:
            raise Conflict(change.path, etag_of(now), now.decode("utf-8", "replace"))
        data, merged = text.encode(), True
    if data != now and not (change.as_is and data == change.data):
        _validate(change.path, data, now, rules)
    return Settled(change.path, now, data, merged)


def _delete(change: Delete, now: bytes | None) -> Settled:
    if now is None:
        raise Conflict(change.path, None)
    if change.base not in (None, etag_of(now)):
        raise Conflict(change.path, etag_of(now), now.decode("utf-8", "replace"))
    return Settled(change.path, now, None, absorbed=change.absorbed)


def _validate(path: str, data: bytes, before: bytes | None, rules: Rules) -> None:
    """What is written must be readable; what an agent creates must be typed; what was typed stays typed."""
    if path == INDEX:
        old = before.decode("utf-8", "replace") if before is not None else ""
        if rules.typed and len(inline_content(data.decode())) > len(inline_content(old)):
            raise InvalidMemoryFile(
                path,
                "the index holds one line a file, not the memory itself. Write a memory file; its line here appears by itself",
            )
        return
    if not is_memory_path(path):
        return
    file = parse(path, data)
    is_new_plain = before is None and rules.plain and not file.header.fields
    if rules.typed and not is_new_plain and (before is None or _typed(path, before, rules)):
        check_typed(file, rules.types)


def _typed(path: str, data: bytes, rules: Rules) -> bool:
    try:
        return parse(path, data).header.type in rules.types
    except InvalidMemoryFile:
        return False
