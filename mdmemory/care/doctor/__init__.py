"""The doctor: what is wrong in a folder, by code and place, and the changes that mend it. Floor 4.

findings = await examine(memory.folder)
await fix(memory.folder, findings)
"""

from __future__ import annotations

from collections.abc import Sequence

from mdmemory.care.doctor.examination import examine, worst
from mdmemory.care.doctor.findings import Finding
from mdmemory.care.doctor.fixes import fixes
from mdmemory.care.doctor.index import FIXABLE, check_index
from mdmemory.care.doctor.kinds import KINDS, Kind, Level
from mdmemory.errors import Conflict
from mdmemory.files.changes import Create
from mdmemory.folder.any_folder import Folder, parts_of
from mdmemory.folder.known import INDEX

__all__ = ["KINDS", "Finding", "Kind", "Level", "examine", "fix", "fixes", "repair", "worst"]


async def fix(folder: Folder, findings: Sequence[Finding], author: str = "doctor") -> list[Finding]:
    """Mend what can be mended, with one commit a folder; it can be undone.

    Returns:
        The findings that were mended.

    Raises:
        Unavailable, PermissionDenied, Conflict: nothing was changed, or only what lies in earlier mounts.
    """
    changes = await fixes(folder, findings)
    if not changes:
        return []
    try:
        await folder.apply(changes, author, "doctor --fix")
    except Conflict:
        if not any(isinstance(change, Create) for change in changes):
            raise
        await folder.refresh()  # the index was made meanwhile
        return await fix(folder, findings, author)
    changed = {change.path for change in changes}
    places = {finding: finding.mount + INDEX if finding.code in FIXABLE else finding.path for finding in findings}
    return [finding for finding in findings if finding.is_fixable and places[finding] in changed]


async def repair(folder: Folder) -> list[Finding]:
    """Give every file that should have one its line in the index, and take away lines whose file is gone.

    Returns:
        The findings that were mended; empty when there was nothing to do.

    Raises:
        Unavailable, PermissionDenied, Conflict: as `fix`.
    """
    await folder.refresh()
    findings = [each.seen_from(prefix) for prefix, part in parts_of(folder).items() for each in await check_index(part)]
    return await fix(folder, findings)
