"""What the doctor finds, what would mend it, and the mending in one click. Floor 6."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from mdmemory.care.doctor import KINDS, Finding, examine, fix, fixes
from mdmemory.care.doctor.kinds import LEVELS
from mdmemory.care.history import unified
from mdmemory.errors import MdmemoryError
from mdmemory.web.diffs import Diff, lines_of
from mdmemory.web.site import AUTHOR, Site, see_other, site_of

MAX_SHOWN = 300  # findings on the page; the command shows all


async def show_findings(request: Request) -> Response:
    """Everything that is wrong; all files are read for it."""
    return await _findings(request)


async def take_fix(request: Request) -> Response:
    """Mend one finding, or with no code all that can be mended."""
    site = site_of(request)
    form = await site.form(request)
    try:
        code, line = form.get("code", ""), form.get("line", "")
        one = Finding(code, form.get("path", ""), int(line) if line.isdecimal() else None, "", True, form.get("mount", ""))
        mended = await fix(site.folder, [one] if code in KINDS else await examine(site.folder), AUTHOR)
    except MdmemoryError as error:
        return await _findings(request, 422, str(error))
    return see_other("/doctor", "repaired" if mended else "same")


async def _findings(request: Request, status: int = 200, problem: str = "") -> Response:
    site = site_of(request)
    await site.look()
    findings = sorted(await examine(site.folder), key=lambda finding: LEVELS.index(finding.kind.level))
    fixable = [] if site.folder.is_read_only else [finding for finding in findings if finding.is_fixable]
    return site.page(
        "doctor",
        request,
        status,
        title="Doctor",
        findings=findings[:MAX_SHOWN],
        count=len(findings),
        fixable=fixable,
        diffs=await _preview(site, fixable),
        files=site.folder.files,
        problem=problem,
    )


async def _preview(site: Site, findings: Sequence[Finding]) -> list[Diff]:
    """What mending all of it would change."""
    try:
        changes = await fixes(site.folder, findings)
        applied = await site.folder.apply(changes, AUTHOR, "preview", dry_run=True) if changes else None
    except MdmemoryError:  # the mending itself will say why it can't be
        return []
    return (
        [Diff(item.path, None, lines_of(unified(item.path, item.before, item.after))) for item in applied.files] if applied else []
    )
