"""Two folders kept together while others write, while another sync runs, and after a kill at any step."""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from children import end, start
from counting import CountingBackend
from folders import log_of
from reconciling import TEXT, Two, contents, delete, edit, keep, note, rename, same, synced_folders
from test_recovery import armed, places

from mdmemory.backends.local import LocalBackend
from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.protocol import Op, Put
from mdmemory.care.doctor.names import original_of

pytestmark = pytest.mark.slow  # many processes, or the same again and again

__all__ = ["places", "synced_folders"]
AT_EACH = pytest.param(
    2, marks=[pytest.mark.slow, pytest.mark.timeout(900)], id="each other call"
)  # system calls between two kills


class Busy(CountingBackend):
    """A backend in which someone saves a file just before each of the first commits."""

    def __init__(self, saved: Sequence[tuple[str, bytes]]) -> None:
        super().__init__(MemoryBackend())
        self.saved = list(saved)
        self.busy = False

    async def commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
        """Commit, after someone else did."""
        if self.busy and self.saved:
            path, data = self.saved.pop(0)
            await self.inner.commit(f"before {commit_id}", [Put(path, data)])
        return await super().commit(commit_id, ops)


async def test_a_change_that_comes_meanwhile_is_not_lost() -> None:
    """What someone saves between the look and the write is not overwritten, and is on both sides in the end."""
    mine = note("N1", TEXT.replace("one", "ONE"))
    theirs = note("N1", TEXT.replace("three", "THREE"))
    busy = Busy([("n1.md", theirs), ("n2.md", note("N2", "theirs\n")), ("new.md", note("New"))])
    two = Two(MemoryBackend(), busy)
    for path in ("n1.md", "n2.md"):
        await keep(two.here, path, note(path[:2].upper()))
    await two.sync()
    busy.busy = True
    await keep(two.here, "n1.md", mine)
    await keep(two.here, "n2.md", note("N2", "mine\n"))
    await two.sync()
    assert busy.saved == []
    await two.sync()
    assert await two.here.read("n1.md") == note("N1", TEXT.replace("one", "ONE").replace("three", "THREE"))
    (copy,) = (path for path in two.here.files if original_of(path) == "n2.md")
    assert await two.there.read(copy) == note("N2", "theirs\n") and await two.there.read("n2.md") == note("N2", "mine\n")
    assert await two.here.read("new.md") == note("New")
    await same(two)


async def test_two_syncs_at_once(two: Two) -> None:
    """Several syncs of one pair at once do what one does, and no side gets anything twice."""
    others = [Two(two.backends[0].inner, two.backends[1].inner) for _ in range(3)]
    await keep(two.here, "n1.md", note("N1", "mine\n"))
    await keep(two.there, "n1.md", note("N1", "theirs\n"))
    await delete(two.here, "n2.md")
    await delete(two.there, "n3.md")
    await edit(two.here, "n4.md", note("N4", TEXT.replace("one", "ONE")))
    await keep(two.there, "n4.md", note("N4", TEXT.replace("three", "THREE")))
    await rename(two.here, "n5.md", "moved.md")
    await asyncio.gather(*(each.sync() for each in (two, *others)))
    await two.sync()
    found = await contents(two.here)
    assert len([path for path in found if original_of(path)]) == 1 and len(found) == 11
    assert found["n4.md"] == note("N4", TEXT.replace("one", "ONE").replace("three", "THREE")) and "moved.md" in found
    await same(two)


def on_disk(root: Path) -> Two:
    """Two folders on a disk."""
    return Two(LocalBackend(root / "here"), LocalBackend(root / "there"))


async def seeded(root: Path) -> None:
    """Two folders that were synced, and in which everything that there is has happened since."""
    two = on_disk(root)
    for number in range(9):
        await keep(two.here, f"n{number}.md", note(f"N{number}"))
    await two.sync()
    await keep(two.here, "n1.md", note("N1", TEXT.replace("one", "ONE")))
    await keep(two.there, "n1.md", note("N1", TEXT.replace("three", "THREE")))
    await keep(two.here, "n2.md", note("N2", "mine\n"))
    await keep(two.there, "n2.md", note("N2", "theirs\n"))
    await delete(two.here, "n3.md")
    await edit(two.there, "n4.md", None)
    await rename(two.there, "n5.md", "moved/n5.md")
    await keep(two.there, "n6.md", note("N6", "there\n"))
    await edit(two.here, "new.md", note("New"))
    await edit(
        two.here, "journal/2026/11/talk.md", b"## user \xc2\xb7 2026-11-30 10:12:03Z \xc2\xb7 a1\n\nHello.\n<!-- end a1 -->\n\n"
    )
    await two.close()


async def synced_once(root: Path) -> None:
    """A sync in a process of its own."""
    two = on_disk(root)
    for folder in (two.here, two.there):
        await folder.recover()
    await two.sync(max_deletions=100)
    await two.close()


async def check(root: Path) -> None:
    """After the next sync both are as they should be, with one copy, and the logs are whole."""
    await synced_once(root)
    two = on_disk(root)
    found = await contents(two.here)
    assert found == await contents(two.there)
    (copy,) = (path for path in found if original_of(path))
    assert found[copy] == note("N2", "theirs\n") and found["n2.md"] == note("N2", "mine\n")
    assert found["n1.md"] == note("N1", TEXT.replace("one", "ONE").replace("three", "THREE"))
    assert set(found) == {copy, "n0.md", "n1.md", "n2.md", "moved/n5.md", "n6.md", "n7.md", "n8.md", "new.md"}
    assert found["n6.md"] == note("N6", "there\n")
    assert (await two.there.read("journal/2026/11/talk.md")).count(b"Hello.") == 1
    assert await two.sync() == []
    for side in ("here", "there"):
        log = log_of(root / side)
        assert {entry["id"] for entry in log if "files" in entry and entry["author"] != "outside"} == {
            entry["done"] for entry in log if "done" in entry}  # fmt: skip
    await two.close()


@pytest.mark.parametrize("every", [29, AT_EACH])
def test_killed_in_a_sync(every: int, places: Path) -> None:
    """E6: after a kill at any step of a sync, the next one ends well: nothing is lost, doubled, or back."""
    asyncio.run(seeded(places / "seed"))
    call, code = 1, -signal.SIGKILL
    while code == -signal.SIGKILL:
        root = places / str(call)
        shutil.copytree(places / "seed", root)

        def work(root: Path = root, call: int = call) -> None:
            arm = armed(call)

            async def run() -> None:
                arm()
                await synced_once(root)

            asyncio.run(run())

        code = end(start(work))
        asyncio.run(check(root))
        shutil.rmtree(root)
        call += every
    assert code == 0 and call > 150
