"""One commit on a local folder, under its lock: check, stage, check again, apply. Floor 1.

All new bytes are written and fsynced below `.mdmemory/tmp` before the first file changes, so that a full disk stops a commit
while nothing has happened yet. Then each operation is one rename, append or unlink, in order. Names are made durable before the
log grows: a line in the log means that what stands before it in the commit is on the disk.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from mdmemory.backends.local_io import OWN, Folder, InTheWay, NotRegular, Tree, open_file, read_bytes, what_is, words, write_bytes
from mdmemory.backends.protocol import (
    LINK,
    LOG,
    TAIL_BYTES,
    Append,
    Delete,
    Move,
    Op,
    Put,
    done_mark,
    etag_of,
    to_append,
    touched,
    unmet,
)
from mdmemory.errors import Conflict, InvalidPath, MdmemoryError, Unavailable, UnsafeFile

TMP: Final = f"{OWN}/tmp"
_FOLDER_ETAG: Final = "folder"  # what a folder has in place of an etag: equal to no file's
_IGNORE: Final = f"{OWN}/.gitignore"


class Commit:
    """A commit under way; the caller holds the lock."""

    def __init__(self, tree: Tree, commit_id: str, ops: Sequence[Op]) -> None:
        self._tree, self._done, self._ops = tree, done_mark(commit_id), ops
        self._left_out: set[int] = set()
        self._staged: dict[int, str] = {}
        self._made: list[str] = []
        self._unsynced: set[str] = set()
        self._applied = False

    def run(self) -> Mapping[str, str]:
        """Do it all, or nothing where that can be known beforehand.

        Raises:
            Conflict, InvalidPath, UnsafeFile, Unavailable: as `Backend.commit`.
        """
        try:
            if self._has_happened():
                return {op.path: etag for op in self._ops if isinstance(op, Put) and (etag := self._etag(op.path))}
            self._check()
            self._stage()
            self._check()  # staging took its time, and an editor takes no lock
            self._apply()
        except OSError as error:
            self._take_back()
            raise not_saved(error, "only a part was written" if self._applied else "nothing was written") from error
        except BaseException:
            self._take_back()
            raise
        kept = [op for position, op in enumerate(self._ops) if position not in self._left_out]
        return {op.path: etag_of(op.data) for op in kept if isinstance(op, Put)}

    def _has_happened(self) -> bool:
        try:
            with self._tree.holder(LOG) as (folder, name):
                fd, found = open_file(folder.place(name))
        except FileNotFoundError:
            return False
        try:
            return self._done.encode() in read_bytes(fd, max(0, found.st_size - TAIL_BYTES), TAIL_BYTES)
        finally:
            os.close(fd)

    def _check(self) -> None:
        for position, op in enumerate(self._ops):
            try:
                self._refuse_unsafe(op)
            except UnsafeFile:
                if getattr(op, "required", True):
                    raise
                self._left_out.add(position)
        checked = [op for position, op in enumerate(self._ops) if position not in self._left_out]
        positions = [position for position in range(len(self._ops)) if position not in self._left_out]
        self._left_out |= {positions[n] for n in unmet(checked, self._etag)}

    def _refuse_unsafe(self, op: Op) -> None:
        for path in touched(op):
            found = self._tree.stat(path)
            if found is None:
                continue
            if stat.S_ISDIR(found.st_mode):
                if not isinstance(op, Move):
                    raise InvalidPath(f"{path} is a folder, not a file; name a file.")
            elif stat.S_ISLNK(found.st_mode) and isinstance(op, Delete) and op.if_match == LINK:
                pass  # the link itself goes
            elif not stat.S_ISREG(found.st_mode):
                raise UnsafeFile(f"{path} is {what_is(found.st_mode)}. Nothing was written.")
            elif found.st_nlink > 1 and isinstance(op, Put | Append):
                raise UnsafeFile(f"{path} is a hard link, which is never written through. Make it a file of its own by copying it.")

    def _etag(self, path: str) -> str | None:
        try:
            with self._tree.holder(path) as (folder, name):
                fd, _ = open_file(folder.place(name))
        except FileNotFoundError:
            return None
        except NotRegular:
            return _FOLDER_ETAG  # anything else was refused before
        except InTheWay:
            raise
        except OSError as error:
            if error.errno == errno.ELOOP:
                return LINK
            raise
        with open(fd, "rb", buffering=0) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def _stage(self) -> None:
        seen: set[str] = set()
        for position, op in enumerate(self._ops):
            if position in self._left_out:
                continue
            if not isinstance(op, Delete):
                with self._tree.holder(touched(op)[-1], self._made) as (folder, _):
                    if isinstance(op, Put) and (op.path in seen or not self._is_there(op)):
                        self._staged[position] = self._write_staged(op, folder)
            seen.update(touched(op))
        self._unsynced.update(os.path.dirname(path) for path in self._made)

    def _is_there(self, op: Put) -> bool:
        found = self._tree.stat(op.path)
        return found is not None and found.st_size == len(op.data) and self._etag(op.path) == etag_of(op.data)

    def _write_staged(self, op: Put, target: Folder) -> str:
        before = self._tree.stat(op.path)
        mode = stat.S_IMODE(before.st_mode) if before else 0o600 if op.path.startswith(f"{OWN}/") else 0o644
        with self._tree.holder(f"{TMP}/{secrets.token_hex(8)}", self._made) as (tmp, name):
            if _device(tmp) != _device(target):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            fd, mine = open_file(tmp.place(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            try:
                if before and hasattr(os, "fchown"):
                    if (before.st_uid, before.st_gid) != (mine.st_uid, mine.st_gid):
                        with suppress(PermissionError):  # only root may give a file away
                            os.fchown(fd, before.st_uid, before.st_gid)
                    os.fchmod(fd, mode)
                write_bytes(fd, op.data)
                os.fsync(fd)
            finally:
                os.close(fd)
        return name

    def _apply(self) -> None:
        for position, op in enumerate(self._ops):
            if position in self._left_out:
                continue
            match op:
                case Put():
                    if position not in self._staged:
                        continue  # the bytes are there
                    self._rename(f"{TMP}/{self._staged[position]}", op.path)
                    self._unsynced.discard(TMP)
                case Append():
                    self._append(op)
                case Delete():
                    self._delete(op.path)
                case Move():
                    if self._tree.stat(op.dst) is not None:
                        raise Conflict(op.dst, self._etag(op.dst))
                    self._rename(op.src, op.dst)
            self._applied = True
        self._sync()

    def _rename(self, src: str, dst: str) -> None:
        with self._tree.holder(src) as (old_folder, old_name), self._tree.holder(dst, self._made) as (new_folder, new_name):
            old, new = old_folder.place(old_name), new_folder.place(new_name)
            os.replace(old.name, new.name, src_dir_fd=old.dir_fd, dst_dir_fd=new.dir_fd)
        self._unsynced.update((os.path.dirname(src), os.path.dirname(dst)))

    def _append(self, op: Append) -> None:
        if op.path == LOG:
            self._sync()
        with self._tree.holder(op.path, self._made) as (folder, name):
            place = folder.place(name)
            created = False
            try:
                fd, found = open_file(place, os.O_RDWR | os.O_APPEND)
            except FileNotFoundError:
                mode = 0o600 if op.path.startswith(f"{OWN}/") else 0o644
                fd, found = open_file(place, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, mode)
                created = True
                self._unsynced.add(os.path.dirname(op.path))
            try:
                size = found.st_size
                write_bytes(fd, to_append(read_bytes(fd, max(0, size - TAIL_BYTES), TAIL_BYTES), op))
                if op.entry_id != self._done:  # the last word of a commit: without it, the next look finds all done
                    os.fsync(fd)
            except OSError:
                os.ftruncate(fd, size)
                if created:
                    os.unlink(place.name, dir_fd=place.dir_fd)
                raise
            finally:
                os.close(fd)

    def _delete(self, path: str) -> None:
        with suppress(FileNotFoundError), self._tree.holder(path) as (folder, name):
            place = folder.place(name)
            os.unlink(place.name, dir_fd=place.dir_fd)
            self._unsynced.add(os.path.dirname(path))

    def _sync(self) -> None:
        for path in sorted(self._unsynced):
            with suppress(FileNotFoundError), self._tree.holder(f"{path}/." if path else ".") as (folder, _):
                folder.sync()
        self._unsynced.clear()

    def _take_back(self) -> None:
        sweep(self._tree)
        for path in reversed(self._made):
            if path not in (OWN, TMP):
                with suppress(OSError), self._tree.holder(path) as (folder, name):  # not empty: it is in use
                    place = folder.place(name)
                    os.rmdir(place.name, dir_fd=place.dir_fd)


def prepare(tree: Tree) -> None:
    """Under the lock, make what every commit needs and clear what a killed one left."""
    made: list[str] = []
    with tree.holder(f"{TMP}/.", made):
        pass
    sweep(tree)
    if tree.stat(_IGNORE) is None:
        Commit(tree, "", [Put(_IGNORE, b"*\n")]).run()
        with tree.open() as root:
            root.sync()


def sweep(tree: Tree) -> None:
    """Remove what is in `.mdmemory/tmp`; the caller holds the lock, so nobody is using it."""
    with suppress(OSError), tree.holder(f"{TMP}/.") as (tmp, _):
        for name in os.listdir(tmp.at):
            place = tmp.place(name)
            os.unlink(place.name, dir_fd=place.dir_fd)


def has_leftovers(tree: Tree) -> bool:
    """Tell whether a killed commit left files behind."""
    try:
        with tree.holder(f"{TMP}/.") as (tmp, _):
            return bool(os.listdir(tmp.at))
    except OSError:
        return False


def _device(folder: Folder) -> int:
    return (os.fstat(folder.at) if isinstance(folder.at, int) else os.stat(folder.at)).st_dev


def not_saved(error: OSError, rest: str = "nothing was written") -> MdmemoryError:
    """The error to raise when the system refused a part of a commit.

    Args:
        error: what the system said.
        rest: what is known about the folder now.
    """
    if isinstance(error, InTheWay):
        if error.errno == errno.ENOTDIR:
            return InvalidPath(f"{error.filename} is a file, not a folder; {rest}. Choose another path.")
        return UnsafeFile(f"{error.filename} is a symbolic link, which is never followed; {rest}.")
    if isinstance(error, NotRegular) or error.errno == errno.ELOOP:
        return UnsafeFile(f"Something that is no file was put in the way; {rest}.")
    denied = error.errno in (errno.EACCES, errno.EPERM)
    reason = "the folder is read-only for this user" if denied else words(error)
    return Unavailable(f"Could not save: {reason}; {rest}. Mend that and try again.")
