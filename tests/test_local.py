"""The local backend among links, odd files, editors and full disks."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import stat
import sys
import time
import tracemalloc
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from children import NOBODY, end, open_folder, start
from odd_files import SECRET, make_root, plant_odd_files
from test_conformance import WeakerLocalBackend

from mdmemory.backends.local import LocalBackend
from mdmemory.backends.protocol import LINK, LOG, Append, Delete, File, FileProblem, Move, Op, Put, Range, etag_of
from mdmemory.errors import Conflict, MdmemoryError, Unavailable, UnsafeFile

BOTH = pytest.mark.parametrize("kind", [LocalBackend, WeakerLocalBackend])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A memory folder with one file, and a secret beside it."""
    return make_root(tmp_path)


@BOTH
async def test_odd_files_are_skipped(kind: type[LocalBackend], root: Path) -> None:
    """N3: links, FIFOs, sockets and devices are neither listed nor opened, and each is skipped with its reason."""
    odd = plant_odd_files(root)
    scan = await kind(root).scan()
    assert scan.heads == {"good.md": b"good"} and list(scan.files) == ["good.md"]
    assert scan.skipped.keys() == odd.keys() and all(word in scan.skipped[path] for path, word in odd.items())


@BOTH
async def test_odd_files_are_never_used(kind: type[LocalBackend], root: Path) -> None:
    """N3: reading an odd file says that it is unsafe, and no operation writes to it, removes it or goes through it."""
    odd = plant_odd_files(root)
    backend = kind(root)
    inside = ["folder/secret.md", "folder/new.md"]
    found = await backend.read(dict.fromkeys([*odd, *inside]))
    assert {problem.kind for problem in found.values() if isinstance(problem, FileProblem)} == {"unsafe"} and len(found) == len(
        odd
    ) + 2
    for path in [*odd, *inside]:
        ops: list[Op] = [Put(path, b"x"), Append(path, b"x", ""), Delete(path), Move(path, "b.md"), Move("good.md", path)]
        for op in ops:
            with pytest.raises(UnsafeFile):
                await backend.commit("c", [op])
        assert await backend.commit(
            "c", [Put("note.md", b"x"), Put(path, b"x", required=False)] if path in odd else [Put("note.md", b"x")]
        )
    assert [path.read_bytes() for path in (root / "../outside").iterdir()] == [SECRET] and (
        root / "good.md"
    ).read_bytes() == b"good"


@BOTH
async def test_hard_links(kind: type[LocalBackend], root: Path) -> None:
    """N3: a hard-linked file is read and reported, and not written through."""
    os.link(root / "../outside/secret.md", root / "hard.md")
    backend = kind(root)
    scan = await backend.scan()
    assert scan.heads["hard.md"] == SECRET and "hard.md" in scan.files and scan.skipped["hard.md"].startswith("hard link")
    file = (await backend.read({"hard.md": None}))["hard.md"]
    assert isinstance(file, File) and file.data == SECRET
    for op in (Put("hard.md", b"x"), Append("hard.md", b"x", "")):
        with pytest.raises(UnsafeFile, match="hard link"):
            await backend.commit("c", [op])
    assert (root / "../outside/secret.md").read_bytes() == SECRET


def swap_forever(root: Path, pairs: list[tuple[str, str]]) -> None:
    """Exchange the files of each pair, atomically, until killed."""
    exchange = ctypes.CDLL(None).renameat2
    while True:
        for a, b in pairs:
            assert exchange(-100, os.fsencode(root / a), -100, os.fsencode(root / b), 2) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="needs renameat2")
async def test_links_swapped_in_during_the_call(root: Path) -> None:
    """N3: for 2 s a folder and a file are swapped with links to the outside under our hands; nothing leaks in or out."""
    (root / "sub").mkdir()
    for path in ("sub/secret.md", "file.md"):
        (root / path).write_bytes(b"inside")
    (root / "decoy").symlink_to("../outside")
    (root / "decoy.md").symlink_to("../outside/secret.md")
    swapper = start(lambda: swap_forever(root, [("sub", "decoy"), ("file.md", "decoy.md")]))
    backend = LocalBackend(root)
    inside = refused = done = 0
    deadline = time.monotonic() + 2
    try:
        while time.monotonic() < deadline:
            scan = await backend.scan()
            found = await backend.read({"sub/secret.md": None, "file.md": None})
            seen = [*scan.heads.values(), *(file.data for file in found.values() if isinstance(file, File))]
            assert not any(b"secret" in data for data in seen)
            inside += seen.count(b"inside")
            try:
                await backend.commit(f"c{done}", [Put("sub/new.md", b"inside %d" % done), Append("file.md", b"+", "")])
                done += 1
            except UnsafeFile:
                refused += 1
    finally:
        os.kill(swapper, signal.SIGKILL)
        end(swapper)
    assert inside and refused and done
    assert [path.read_bytes() for path in (root / "../outside").iterdir()] == [SECRET]


@BOTH
async def test_a_sparse_gigabyte(kind: type[LocalBackend], root: Path) -> None:
    """N4: of a 1 GB file a scan takes in 16 KB, a part can be read, and the whole is refused; memory stays small."""
    with (root / "huge.md").open("wb") as file:
        file.truncate(1 << 30)
    backend = kind(root)
    await backend.scan({"huge.md": "", "good.md": ""})
    tracemalloc.start()
    scan = await backend.scan()
    found = {part: (await backend.read({"huge.md": part}))["huge.md"] for part in (None, Range(-10, 10), Range(0, 1 << 29))}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(scan.heads["huge.md"]) == 16_384 and scan.files["huge.md"].size == 1 << 30 and peak < 500_000
    assert [getattr(answer, "kind", "read") for answer in found.values()] == ["too_large", "read", "too_large"]


@BOTH
async def test_hidden_folders_and_odd_names(kind: type[LocalBackend], root: Path) -> None:
    """N7: hidden parts are ignored at every depth; N1: names that no memory may have are skipped, shown escaped."""
    for folder in (".obsidian", ".git", "sub/.trash"):
        (root / folder).mkdir(parents=True)
        (root / folder / "x.md").write_bytes(b"x")
    for name in (b"new\nline.md", b"-dash.md", b"latin-\xe9.md", b"esc\x1b[31m.md"):
        Path(os.fsdecode(os.path.join(os.fsencode(root), name))).write_bytes(b"x")
    scan = await kind(root).scan()
    assert list(scan.files) == ["good.md"]
    assert scan.skipped.keys() == {r"new\nline.md", "-dash.md", r"latin-\udce9.md", r"esc\x1b[31m.md"}
    assert "UTF-8" in scan.skipped[r"latin-\udce9.md"]


@BOTH
async def test_a_change_that_hides_from_the_clock(kind: type[LocalBackend], root: Path) -> None:
    """E3: a person's edit of the same size with the old modification time is seen, and a save based on the old text conflicts."""
    backend = kind(root)
    await backend.commit("c", [Put("a.md", b"agent")])
    before = (root / "a.md").stat()
    time.sleep(0.05)
    known = {path: entry.version for path, entry in (await backend.scan()).files.items()}
    (root / "a.md").write_bytes(b"human")
    os.utime(root / "a.md", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (await backend.scan(known)).heads == {"a.md": b"human"}
    with pytest.raises(Conflict) as caught:
        await backend.commit("d", [Put("a.md", b"stale", etag_of(b"agent"))])
    assert caught.value.etag == etag_of(b"human") and (root / "a.md").read_bytes() == b"human"


def test_an_edit_while_a_commit_is_being_staged(root: Path) -> None:
    """E3: what an editor saves while a commit writes its temporary files is found by the second check."""
    saved: list[int] = []

    def edit(_frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and function is os.fsync and (root / "new.md").parent.exists() and not saved:
            saved.append((root / "good.md").write_bytes(b"human"))

    backend = LocalBackend(root)
    backend._commit("first", [Put("other.md", b"x")])
    sys.setprofile(edit)
    try:
        with pytest.raises(Conflict):
            backend._commit("c", [Put("sub/new.md", b"x"), Put("good.md", b"agent", etag_of(b"good"))])
    finally:
        sys.setprofile(None)
    assert (root / "good.md").read_bytes() == b"human" and not (root / "sub").exists() and not list(root.glob(".mdmemory/tmp/*"))


@BOTH
async def test_opening_creates_nothing(kind: type[LocalBackend], tmp_path: Path) -> None:
    """Opening, scanning and reading make no folder; the first commit makes it, with a private `.mdmemory` that git ignores."""
    backend = kind(tmp_path / "deep/memory")
    assert (await backend.scan()).files == {} and (await backend.read({"a.md": None}))["a.md"] and not list(tmp_path.iterdir())
    await backend.commit("c", [Put("a.md", b"x"), Append(LOG, b"{}\n", "")])
    own = tmp_path / "deep/memory/.mdmemory"
    assert (own / ".gitignore").read_bytes() == b"*\n"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (own, own / "log.jsonl", own.parent / "a.md")}
    assert modes == {".mdmemory": 0o700, "log.jsonl": 0o600, "a.md": 0o644}


@BOTH
async def test_a_replaced_file_keeps_its_mode(kind: type[LocalBackend], root: Path) -> None:
    """A file that a person made private, or gave to a group, stays so."""
    (root / "good.md").chmod(0o660)
    await kind(root).commit("c", [Put("good.md", b"better")])
    assert stat.S_IMODE((root / "good.md").stat().st_mode) == 0o660


@BOTH
async def test_the_root_may_be_a_link(kind: type[LocalBackend], root: Path, tmp_path: Path) -> None:
    """A link as the location is the user's choice: it is followed once, at opening."""
    (tmp_path / "link").symlink_to("memory")
    backend = kind(tmp_path / "link")
    await backend.commit("c", [Put("a.md", b"x")])
    assert (root / "a.md").exists() and "a.md" in (await backend.scan()).files


@BOTH
async def test_a_root_that_vanishes(kind: type[LocalBackend], root: Path) -> None:
    """D1: a folder that was there and is gone could not be looked at: not empty, its files not absent, and not remade."""
    backend = kind(root)
    await backend.scan()
    root.rename(root.with_name("elsewhere"))
    for call in (backend.scan(), backend.commit("c", [Put("a.md", b"x")])):
        with pytest.raises(Unavailable, match="was there and is gone") as caught:
            await call
        assert str(root) not in str(caught.value)
    problem = (await backend.read({"good.md": None}))["good.md"]
    assert isinstance(problem, FileProblem) and problem.kind == "unavailable" and not root.exists()


@BOTH
async def test_a_file_as_the_root(kind: type[LocalBackend], root: Path) -> None:
    """A location that is a file is no memory, and says so without its host path."""
    backend = kind(root / "good.md")
    for call in (backend.scan(), backend.commit("c", [Put("a.md", b"x")])):
        with pytest.raises(MdmemoryError) as caught:
            await call
        assert str(root) not in str(caught.value)


@BOTH
async def test_leftovers_are_cleared_at_the_first_scan(kind: type[LocalBackend], root: Path) -> None:
    """E6: what a killed commit left below `.mdmemory/tmp` goes at the next open, unless somebody is writing just then."""
    await kind(root).commit("c", [Put("a.md", b"x")])
    leftover = root / ".mdmemory/tmp/left"
    leftover.write_bytes(b"half")
    with kind(root)._locked(1):
        await kind(root).scan()
        assert leftover.exists()
    await kind(root).scan()
    assert not leftover.exists()


@BOTH
def test_a_full_disk(kind: type[LocalBackend]) -> None:
    """A commit that does not fit says so and leaves nothing behind: no file, no folder, no half of a line."""

    def work(root: Path) -> None:
        backend = kind(root)
        backend._commit("c", [Put("log.md", b"x" * 60_000 + b"\n")])
        resource.setrlimit(resource.RLIMIT_FSIZE, (64_000, 64_000))
        with pytest.raises(Unavailable, match="nothing was written"):
            backend._commit("put", [Put("sub/small.md", b"x"), Put("sub/large.md", b"x" * 70_000)])
        with pytest.raises(Unavailable, match="larger than this system allows; nothing was written"):
            backend._commit("append", [Append("log.md", b"y" * 9_000, "")])
        with pytest.raises(Unavailable, match="only a part was written"):
            backend._commit("both", [Put("a.md", b"x"), Append("new/log.md", b"y" * 70_000, "")])
        assert sorted(path.name for path in root.iterdir()) == [".mdmemory", "a.md", "log.md"]
        assert (root / "log.md").stat().st_size == 60_001 and not list(root.glob(".mdmemory/tmp/*"))

    with open_folder() as folder:
        folder.chmod(0o777)
        assert end(start(lambda: work(folder / "memory"), uid=NOBODY)) == 0


@BOTH
async def test_a_link_can_be_deleted_as_such(kind: type[LocalBackend], root: Path) -> None:
    """N3: a delete that asks for a link removes the link, dangling or not, and neither a file nor what lies behind a link."""
    plant_odd_files(root)
    backend = kind(root)
    await backend.commit("a", [Delete("dangling.md", LINK), Delete("link.md", LINK), Delete("gone.md", LINK)])
    for path, error in (("good.md", Conflict), ("folder/secret.md", UnsafeFile), ("fifo.md", UnsafeFile)):
        with pytest.raises(error):
            await backend.commit("b", [Delete(path, LINK)])
    left = {path.name for path in root.iterdir()}
    assert not left & {"dangling.md", "link.md"} and {"good.md", "folder", "fifo.md"} <= left
    assert [path.read_bytes() for path in (root / "../outside").iterdir()] == [SECRET]
