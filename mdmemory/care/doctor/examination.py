"""A look at everything, mount by mount: files, what stands between them, the history and the index. It changes nothing. Floor 4."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial

from mdmemory.backends.protocol import LOG, File, FileProblem, Range
from mdmemory.care.alike import alike
from mdmemory.care.doctor.files import check_file, secrets_in
from mdmemory.care.doctor.findings import Finding
from mdmemory.care.doctor.index import check_index
from mdmemory.care.doctor.kinds import LEVELS, Level
from mdmemory.care.doctor.names import check_alike, check_names, check_order
from mdmemory.care.history import events
from mdmemory.care.progress import Progress, unseen
from mdmemory.errors import BackendError, ConfigError, Unavailable
from mdmemory.files.history import PROPOSALS
from mdmemory.files.memory_file import parse
from mdmemory.files.secrets import find_secrets
from mdmemory.folder.any_folder import Folder, parts_of
from mdmemory.folder.known import INDEX, etag_in
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.mounted_folder import MountedFolder
from mdmemory.folder.proposals.queue import Place
from mdmemory.folder.reading import kept_contents, read_all
from mdmemory.folder.search import filed
from mdmemory.recall.tokens import tokens

MAX_COMPARED_CHARS = 64_000  # of a file, for what says the same


async def examine(folder: Folder, progress: Progress = unseen) -> list[Finding]:
    """Everything that is wrong or worth knowing: in the files, then in the index.

    Raises:
        Unavailable: the folder can't be looked at, or none of those mounted.
    """
    await folder.refresh()
    findings, done, parts = list[Finding](), 0, parts_of(folder)
    total = sum(len(part.files) for part in parts.values())
    for prefix, part in parts.items():
        try:
            own = await _examine(part, partial(_told, progress, done, total), is_mount=bool(prefix))
        except Unavailable as error:
            own = [Finding("unavailable", "", None, str(error))]
        findings += [finding.seen_from(prefix) for finding in own]
        done += len(part.files)
    if not _can_find_secrets():
        findings.append(Finding("secrets-unchecked", "", None, "the scanner for secrets is not installed"))
    hidden = folder.hidden if isinstance(folder, MountedFolder) else {}
    return [*findings, *(Finding("hidden", path, None, reason) for path, reason in hidden.items())]


def _told(progress: Progress, before: int, total: int, count: int) -> None:
    progress(before + count, total)


async def _examine(folder: MemoryFolder, progress: Callable[[int], None], *, is_mount: bool) -> list[Finding]:
    if not folder.scanned:
        await folder.refresh()
    findings, terms = await _files(folder, progress)
    names = list(check_names(folder.files))
    findings += [*names, *check_order(filed(folder.files, lambda path: ""))]
    findings += check_alike(await asyncio.to_thread(alike, terms), {finding.path for finding in names})
    findings += [Finding("skipped", path, None, reason) for path, reason in folder.skipped.items()]
    findings += [*await _history(folder), *await _waiting(folder)]
    findings.sort(key=lambda finding: (finding.path, finding.line or 0, finding.code))
    return findings if is_mount and folder.is_read_only else findings + await check_index(folder)


async def _files(folder: MemoryFolder, progress: Callable[[int], None]) -> tuple[list[Finding], dict[str, frozenset[str]]]:
    """What is wrong with each file, and the terms of those that can be read."""
    findings, terms, done = list[Finding](), dict[str, frozenset[str]](), 0
    async for found in read_all(folder, folder.files):
        own, held = await asyncio.to_thread(_checked, folder, found)  # to look for secrets takes a millisecond a page
        findings += own
        terms |= held
        done += len(found)
        progress(done)
    return findings, terms


def _checked(folder: MemoryFolder, found: Mapping[str, File | FileProblem]) -> tuple[list[Finding], dict[str, frozenset[str]]]:
    findings, terms, today = list[Finding](), dict[str, frozenset[str]](), date.today()
    for path, file in found.items():
        known = folder.files.get(path)
        if known is None:  # deleted meanwhile
            continue
        findings += check_file(path, known, file, folder.types, today)
        is_as_known = isinstance(file, File) and etag_in(known) in (None, file.etag)  # else it was changed meanwhile
        if isinstance(file, File) and is_as_known and known.header is not None:
            body = parse(path, file.data).body[:MAX_COMPARED_CHARS]
            text = f"{known.header.name}\n{known.header.description}\n{body}"
            terms[path] = frozenset(tokens(text, folder.config.languages))
    return findings, terms


async def _history(folder: MemoryFolder) -> list[Finding]:
    """Secrets in what the history keeps of earlier versions, by the file that held them."""
    log = (await folder.backend.read({LOG: Range(-1, 1)}))[LOG]
    if isinstance(log, FileProblem):
        return [] if log.kind == "absent" else [Finding("no-history", "", None, f"the history can't be read: {log.reason}")]
    now = {etag_in(known) for known in folder.files.values()}
    named = {
        etag: file.path
        for event in reversed(await events(folder))
        for file in event.files
        for etag in (file.before, file.after)
        if etag and etag not in now and file.path != INDEX
    }
    findings = list[Finding]()
    async for kept in kept_contents(folder.backend, named):
        texts = [(named[etag], data.decode("utf-8", "replace")) for etag, data in kept.items()]
        findings += await asyncio.to_thread(_secrets, texts)
    return list(dict.fromkeys(findings))


async def _waiting(folder: MemoryFolder) -> list[Finding]:
    """Secrets in what waits for a person, by the file that would hold them."""
    try:
        queue, _ = await Place("", folder).read()
    except BackendError as error:
        return [Finding("unreadable", PROPOSALS, None, str(error))]
    texts = [
        (path, f"{after}\n{each.reason}")
        for each in queue.waiting
        for path, (before, after) in each.texts.items()
        if after and after != before
    ]
    return list(dict.fromkeys(await asyncio.to_thread(_secrets, texts, ", in a proposal that waits")))


def _secrets(texts: Sequence[tuple[str, str]], where: str = ", in an earlier version") -> list[Finding]:
    """The secrets in what is no file now; of the line nobody knows where it is."""
    return [replace(finding, line=None) for path, text in texts for finding in secrets_in(path, text, where)]


def worst(findings: Sequence[Finding]) -> Level | None:
    """The level of the worst of them; None for none."""
    there = {finding.kind.level for finding in findings}
    return next((level for level in LEVELS if level in there), None)


def _can_find_secrets() -> bool:
    try:
        find_secrets("")
    except ConfigError:
        return False
    return True
