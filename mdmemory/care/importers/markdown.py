"""Folders of Markdown files: Claude Code's memory, a vault, an export of mdmemory. Every byte stays. Floor 4, pure."""

from __future__ import annotations

from collections.abc import Mapping

from mdmemory.care.importers.plan import Plan


def plan_markdown(files: Mapping[str, bytes]) -> Plan:
    """Each file under its own path; `MEMORY.md` is an index already, `CLAUDE.md` a file without frontmatter."""
    plan = Plan()
    for path in sorted(files):
        plan.add(path, path, files[path])
    return plan
