"""What the doctor finds, and the repair of what can be repaired without asking more. Floor 6."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from mdmemory.care.doctor import examine, repair
from mdmemory.web.site import see_other, site_of


async def show_findings(request: Request) -> Response:
    """Everything that is wrong; all files are read for it."""
    site = site_of(request)
    await site.look()
    findings = await examine(site.folder)
    return site.page(
        "doctor",
        request,
        title="Doctor",
        findings=findings,
        fixable=sum(each.fixable for each in findings),
        files=site.folder.files,
    )


async def take_repair(request: Request) -> Response:
    """Repair what the doctor can."""
    site = site_of(request)
    await site.form(request)
    done = await repair(site.folder)
    return see_other("/doctor", "repaired" if done else "same")
