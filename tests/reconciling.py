"""Two folders that are kept together, for tests, with what people and agents do in them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import pytest
from counting import CountingBackend

from mdmemory import Create, Delete, MemoryFolder, Rename, Replace
from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.protocol import Backend, Put, etag_of
from mdmemory.backends.protocol import Delete as DeleteOp
from mdmemory.care.reconcile import Pair, Synced, reconcile
from mdmemory.folder.known import INDEX

Steps = list[tuple[str, str, str]]
TEXT = "one\n\ntwo\n\nthree\n"


def note(name: str, body: str = TEXT, more: str = "") -> bytes:
    """A memory file's bytes."""
    return f"---\nname: {name}\ndescription: about {name}\ntype: project\n{more}---\n\n{body}".encode()


class Two:
    """A person's folder `here` and one `there`, each behind a backend that counts."""

    def __init__(self, here: Backend, there: Backend, name: str = "other") -> None:
        self.backends = CountingBackend(here), CountingBackend(there)
        self.here, self.there = (MemoryFolder(backend) for backend in self.backends)
        self.name = name

    @property
    def pair(self) -> Pair:
        """What is synced."""
        return Pair(self.here, self.there, self.name, "mine")

    async def synced(self, **options: Any) -> Synced:
        """Sync, and count anew."""
        for backend in self.backends:
            backend.calls.clear()
            backend.paths.clear()
        return await reconcile(self.pair, **options)

    async def sync(self, **options: Any) -> Steps:
        """Sync, and say what was done."""
        return [(step.action, step.side, step.path) for step in (await self.synced(**options)).steps]

    async def close(self) -> None:
        """Let go of both."""
        await self.here.close()
        await self.there.close()


async def keep(folder: MemoryFolder, path: str, data: bytes) -> None:
    """Write a file as an agent does, whatever was there."""
    await folder.refresh()
    there = path in folder.files or path == INDEX
    change = Replace(path, data, etag_of(await folder.read(path))) if there else Create(path, data)
    await folder.apply([change], "person", "test")


async def edit(folder: MemoryFolder, path: str, data: bytes | None) -> None:
    """Write a file as an editor does, past the history; None deletes it."""
    op = DeleteOp(path) if data is None else Put(path, data)
    await folder.backend.commit(uuid.uuid4().hex, [op])


async def delete(folder: MemoryFolder, *paths: str) -> None:
    """Delete files as a person does with the command."""
    await folder.refresh()
    await folder.apply([Delete(path) for path in paths], "person", "test")


async def rename(folder: MemoryFolder, path: str, new: str) -> None:
    """Rename a file."""
    await folder.apply([Rename(path, new)], "person", "test")


async def contents(folder: MemoryFolder) -> Mapping[str, bytes]:
    """Every memory file's bytes."""
    await folder.refresh()
    return {path: await folder.read(path) for path in sorted(folder.files)}


async def same(two: Two) -> None:
    """Check that both have the same, and that nothing is left to do."""
    assert await contents(two.here) == await contents(two.there)
    assert await two.sync() == []


@pytest.fixture(name="two")
async def synced_folders() -> Two:
    """Two folders with the same twelve files, synced once."""
    two = Two(MemoryBackend(), MemoryBackend())
    for number in range(12):
        await keep(two.here if number % 2 else two.there, f"n{number}.md", note(f"N{number}"))
    assert len(await two.sync()) == 12
    return two
