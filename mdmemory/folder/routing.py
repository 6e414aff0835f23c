"""Which mount each change goes to, whether it may, and how what its folder answers reads from outside. Floor 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mdmemory.backends.paths import check
from mdmemory.backends.protocol import FileProblem, etag_of, problem_error
from mdmemory.errors import Conflict, InvalidMemoryFile, InvalidPath, MdmemoryError, NotThere, PermissionDenied
from mdmemory.files import index
from mdmemory.files.changes import Change, Create, Delete, Rename
from mdmemory.folder.mounts import Part, called, check_rename, home_of, inside
from mdmemory.folder.permissions import Confirm, Policy, check_rights, permit
from mdmemory.folder.settle import Applied, Settled, check_change


@dataclass(frozen=True, slots=True)
class Step:
    """The changes of one commit in one mount.

    Args:
        changes: with their whole paths.
    """

    prefix: str
    part: Part
    changes: Sequence[Change]

    async def apply(self, author: str, reason: str, *, dry_run: bool = False, plain: bool = False) -> Applied:
        """Apply them; answers and errors name whole paths, and of a mount that can't be read they tell nothing."""
        inner = [inside(change, self.prefix) for change in self.changes]
        try:
            applied = await self.part.folder.apply(inner, author, reason, dry_run=dry_run, plain=plain)
        except MdmemoryError as error:
            raise self._seen(error) from error
        if not self.prefix:
            return applied
        if not self.part.mount.can_read:
            return Applied(applied.commit_id, tuple(replace(self._outside(item), before=None) for item in applied.files), None)
        updated = applied.index
        if updated is not None:
            updated = replace(updated, text=index.together([(self.prefix, updated.text, self.part.folder.listed)]))
        return replace(applied, files=tuple(map(self._outside, applied.files)), index=updated)

    def _outside(self, item: Settled) -> Settled:
        moved_from = None if item.moved_from is None else self.prefix + item.moved_from
        return replace(item, path=self.prefix + item.path, moved_from=moved_from)

    def _seen(self, error: MdmemoryError) -> MdmemoryError:
        """The error as it reads from outside."""
        if not self.part.mount.can_read and isinstance(error, (Conflict, InvalidPath)):
            names = ", ".join(change.path for change in self.changes)
            return InvalidPath(f"{names}: this name, or one that looks like it, is taken. Nothing was written; choose another.")
        if not self.prefix:
            return error
        if isinstance(error, Conflict):
            return Conflict(self.prefix + error.path, error.etag, error.current)
        if isinstance(error, InvalidMemoryFile):
            return InvalidMemoryFile(self.prefix + error.path, error.reason, error.line)
        return type(error)(f"In the mount {self.prefix}: {error}")


async def apply_steps(steps: Sequence[Step], author: str, reason: str, *, dry_run: bool = False, plain: bool = False) -> Applied:
    """One commit after the other.

    Raises:
        MdmemoryError: that of a step; where earlier ones have written, it says what.
    """
    done: list[Applied] = []
    for step in steps:
        try:
            done.append(await step.apply(author, reason, dry_run=dry_run, plain=plain))
        except MdmemoryError as error:
            written = ", ".join(item.path for applied in done for item in applied.files)
            if not written or dry_run:
                raise
            raise MdmemoryError(f"{error} These were written before it, and stay: {written}.") from error
    if len(done) == 1:
        return done[0]
    files = tuple(item for applied in done for item in applied.files)
    warnings = tuple(warning for applied in done for warning in applied.warnings)
    return Applied(next((applied.commit_id for applied in done if applied.commit_id), None), files, None, warnings)


class Router:
    """Sends changes to mounts."""

    def __init__(self, parts: Mapping[str, Part], *, home_only: bool = False) -> None:
        self._parts, self._home_only = parts, home_only

    async def steps(
        self, changes: Sequence[Change], author: str, policy: Policy, confirm: Confirm | None, *, plain: bool = False
    ) -> list[Step]:
        """The commits that the changes come to; what is moved from one mount to another is deleted last.

        Raises:
            InvalidPath, InvalidMemoryFile, NotThere, PermissionDenied, Unavailable, UnsafeFile: nothing may be written.
        """
        staying, leaving = list[tuple[str, Change]](), list[tuple[str, Change]]()
        for change in changes:
            check_change(change, plain)
            prefix = home_of(change.path, self._parts)
            if isinstance(change, Rename):
                check_rename(change, self._parts)
                target = home_of(change.new_path, self._parts)
                if target != prefix:
                    copies, deletions = await self._moved(change, prefix, target)
                    staying += [(target, copy) for copy in copies]
                    leaving += [(prefix, deletion) for deletion in deletions]
                    continue
            staying.append((prefix, self._allowed(prefix, change)))
        await permit([change for _, change in (*staying, *leaving)], author, policy, confirm)
        return [*self._by_mount(staying), *self._by_mount(leaving)]

    def _by_mount(self, changes: Sequence[tuple[str, Change]]) -> Iterator[Step]:
        for prefix in dict.fromkeys(prefix for prefix, _ in changes):
            yield Step(prefix, self._parts[prefix], [change for own, change in changes if own == prefix])

    def _allowed(self, prefix: str, change: Change) -> Change:
        if prefix and self._home_only:
            raise PermissionDenied(f"{change.path} lies in {prefix}, and this writes to the home only. Nothing was written.")
        return check_rights(change, self._parts[prefix].mount.rights, called(prefix))

    async def _moved(self, rename: Rename, prefix: str, target: str) -> tuple[list[Change], list[Change]]:
        """What a move across mounts comes to: the new files, and the deletion of the old ones as they are now."""
        self._allowed(prefix, Delete(rename.path))
        folder = self._parts[prefix].folder
        await folder.refresh()
        path = rename.path.removeprefix(prefix)
        paths = [known for known in folder.files if known == path or known.startswith(f"{path}/")]
        if not paths:
            raise NotThere(f"There is no {rename.path} to move. Nothing was written.")
        copies, deletions = list[Change](), list[Change]()
        for known, file in (await folder.read_many(paths)).items():
            if isinstance(file, FileProblem):
                raise problem_error(prefix + known, file)
            place = check(rename.new_path + (prefix + known).removeprefix(rename.path))
            if home_of(place, self._parts) != target:
                raise InvalidPath(f"{place} would be in another mount than {rename.new_path}. Nothing was written.")
            copies.append(self._allowed(target, Create(place, file.data)))
            deletions.append(Delete(prefix + known, etag_of(file.data)))
        return copies, deletions
