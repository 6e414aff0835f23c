"""ShellBackend over plain shells of this machine: what every backend does, and what its helper does among odd files."""

from __future__ import annotations

import os
import stat
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from local_shell import KINDS, CommandShell, LocalShell
from odd_files import SECRET, make_root, plant_odd_files

from mdmemory.backends.protocol import LINK, LOG, Append, Delete, File, FileProblem, Move, Op, Put, Range, etag_of
from mdmemory.backends.shell import ShellBackend
from mdmemory.errors import Conflict, MdmemoryError, Unavailable, UnsafeFile
from mdmemory.testing.conformance import BackendConformance

Make = Callable[..., ShellBackend]


class OnLocalShell(BackendConformance):
    """The suite on a shell of this machine."""

    kind: str

    async def make_backend(self, tmp_path: Path) -> ShellBackend:
        """A backend of a folder that does not exist yet."""
        return ShellBackend(LocalShell(self.kind, tmp_path), str(tmp_path / "memory"))

    async def plant(self, backend: ShellBackend, path: str, data: bytes) -> None:
        """Write a file as a person would."""
        file = Path(backend._root, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


@pytest.mark.skipif("dash" not in KINDS, reason="there is no dash here")
class TestDash(OnLocalShell):
    """dash, and the GNU tools of this machine."""

    kind = "dash"


@pytest.mark.skipif("busybox" not in KINDS, reason="there is no busybox here")
class TestBusybox(OnLocalShell):
    """busybox, with its applets in place of the machine's tools."""

    kind = "busybox"


class TestQuoted(BackendConformance):
    """The shell of the page, with its command quoted for a second shell, as ssh does."""

    async def make_backend(self, tmp_path: Path) -> ShellBackend:
        """A backend of a folder that does not exist yet."""
        return ShellBackend(CommandShell("sh", "-c", quote=True), str(tmp_path / 'it\'s a "memory" $HOME'))


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Make a backend of the folder `memory`, on one kind of shell after the other."""

    def backend(root: str | Path = tmp_path / "memory", **options: float) -> ShellBackend:
        return ShellBackend(LocalShell(request.param, tmp_path), str(root), **options)

    return backend


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A memory folder with one file, and a secret beside it."""
    return make_root(tmp_path)


async def test_odd_files(make: Make, root: Path) -> None:
    """N3: links, FIFOs, sockets and devices are skipped with the reason, never opened, written to, removed or gone through."""
    odd = plant_odd_files(root)
    backend = make()
    scan = await backend.scan()
    assert scan.heads == {"good.md": b"good"} and list(scan.files) == ["good.md"]
    assert scan.skipped.keys() == odd.keys() and all(word in scan.skipped[path] for path, word in odd.items())
    inside = ["folder/secret.md", "folder/new.md"]
    found = await backend.read(dict.fromkeys([*odd, *inside]))
    assert {getattr(problem, "kind", "read") for problem in found.values()} == {"unsafe"}
    for path in [*odd, *inside]:
        ops: list[Op] = [Put(path, b"x"), Append(path, b"x", ""), Delete(path), Move(path, "b.md"), Move("good.md", path)]
        for op in ops:
            with pytest.raises(UnsafeFile):
                await backend.commit("c", [Put("first.md", b"x"), op])
        assert await backend.commit("c", [Put("note.md", b"x"), Put(path, b"x", required=False)]) == {"note.md": etag_of(b"x")}
    assert [path.read_bytes() for path in (root / "../outside").iterdir()] == [SECRET]
    assert {path.name for path in root.iterdir()} == {*odd, "good.md", "note.md", ".mdmemory"}


async def test_hard_links(make: Make, root: Path) -> None:
    """N3: a hard-linked file is read and reported, and not written through."""
    os.link(root / "../outside/secret.md", root / "hard.md")
    backend = make()
    scan = await backend.scan()
    assert scan.heads["hard.md"] == SECRET and scan.skipped["hard.md"].startswith("hard link")
    file = (await backend.read({"hard.md": None}))["hard.md"]
    assert isinstance(file, File) and file.data == SECRET
    for op in (Put("hard.md", b"x"), Append("hard.md", b"x", "")):
        with pytest.raises(UnsafeFile, match="hard link"):
            await backend.commit("c", [Put("first.md", b"x"), op])
    assert await backend.commit("d", [Put("hard.md", b"x", required=False)]) == {}
    assert (root / "../outside/secret.md").read_bytes() == SECRET and not (root / "first.md").exists()


@pytest.mark.parametrize("place", [".mdmemory", ".mdmemory/shell", ".mdmemory/shell/work", LOG, ".mdmemory/objects"])
async def test_links_where_our_own_files_are(make: Make, root: Path, place: str) -> None:
    """N3: nor is a link followed that stands in place of the history, the lock or the temporary files."""
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    (root / place).symlink_to(root / "../outside")
    with pytest.raises(UnsafeFile):
        await make().commit("c", [Put(".mdmemory/objects/x", b"x"), Append(LOG, b"{}\n", ""), Put("a.md", b"x")])
    assert [path.name for path in (root / "../outside").iterdir()] == ["secret.md"] and not (root / "a.md").exists()


async def test_hostile_names(make: Make, root: Path) -> None:
    """N1, N7: names that no memory may have are skipped, shown escaped, and hidden ones are ignored, whatever they spell."""
    for folder in (".obsidian", ".git", "sub/.trash", "$(touch pwned)", "-rf", "bad\nfolder"):
        (root / folder).mkdir(parents=True)
        (root / folder / "x.md").write_bytes(b"x")
    names = [b"new\nline.md", b"-dash.md", b"latin-\xe9.md", b"esc\x1b[31m.md", b"tab\tb.md", b"a==> .", b"back\\slash.md"]
    fine = [b"`id`.md", b"$HOME.md", b"a'b\".md", b"semi;colon|fifo.md", b"a  b.md", b"*.md", b"[a].md", b"=.md", b"!.md", b"(.md"]
    for name in [*names, *fine]:
        Path(os.fsdecode(os.path.join(os.fsencode(root), name))).write_bytes(b"<" + name + b">")
    backend = make()
    scan = await backend.scan()
    assert scan.skipped.keys() == {
        *(r"new\nline.md", "-dash.md", r"latin-\udce9.md", r"esc\x1b[31m.md", r"tab\tb.md", r"back\\slash.md"),
        *("-rf", r"bad\nfolder"),
    }
    usable = [name.decode() for name in fine]
    assert scan.files.keys() == {"good.md", "a==> .", "$(touch pwned)/x.md", *usable}
    found = await backend.read(dict.fromkeys(usable))
    for name in usable:
        assert scan.heads[name] == b"<" + name.encode() + b">" == getattr(found[name], "data", None)
    await backend.commit("c", [op for name in usable for op in (Put(name, b"new"), Move(name, f"moved/{name}"))])
    assert {path.name for path in (root / "moved").iterdir()} == set(usable)
    await backend.commit("d", [Delete(f"moved/{name}", etag_of(b"new")) for name in usable])
    assert not any((root / "moved").iterdir()) and not list(root.rglob("pwned"))


async def test_contents_that_look_like_answers(make: Make, root: Path) -> None:
    """Bytes of every value, and headers of other records, come back as they are."""
    tricky = {
        "a.md": bytes(range(256)) * 300,
        "b.md": b"\n==> ./c.md <==\nnot c\n==> ./a.md <==\n\n\n",
        "c.md": b"",
        "d.md": b"\nmdmemory ok\n\n==> ./e.md <==\n",
        "e.md": b"no final newline",
    }
    backend = make()
    await backend.commit("c", [Put(path, data) for path, data in tricky.items()])
    found = await backend.read(dict.fromkeys(tricky))
    assert {path: getattr(file, "data", None) for path, file in found.items()} == tricky
    assert {path: head for path, head in (await backend.scan()).heads.items() if path in tricky} == {
        path: data[:16_384] for path, data in tricky.items()
    }
    parts = await backend.read({path: Range(-3, 2) for path in tricky})
    assert {path: getattr(file, "data", None) for path, file in parts.items()} == {p: d[-3:][:2] for p, d in tricky.items()}


async def test_a_sparse_gigabyte(make: Make, root: Path) -> None:
    """N4: of a 1 GB file a scan takes in 16 KB, a part can be read, and the whole is refused; memory stays small."""
    with (root / "huge.md").open("wb") as file:
        file.truncate(1 << 30)
    backend = make()
    await backend.scan()
    tracemalloc.start()
    scan = await backend.scan()
    found = {part: (await backend.read({"huge.md": part}))["huge.md"] for part in (None, Range(-10, 10))}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(scan.heads["huge.md"]) == 16_384 and scan.files["huge.md"].size == 1 << 30 and peak < 1_000_000
    assert [getattr(answer, "kind", "read") for answer in found.values()] == ["too_large", "read"]
    large = (await backend.read({"huge.md": Range(0, 1 << 29)}))["huge.md"]
    assert isinstance(large, FileProblem) and large.kind == "too_large"


async def test_modes(make: Make, root: Path) -> None:
    """What is made is private below `.mdmemory`, which git ignores; a replaced file keeps the mode that a person gave it."""
    (root / "good.md").chmod(0o660)
    await make().commit("c", [Put("good.md", b"1"), Put("a.md", b"x"), Put(".mdmemory/objects/o", b"x"), Append(LOG, b"{}\n", "")])
    modes = {path.relative_to(root).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*") if path.is_file()}
    assert modes.pop(".mdmemory/.gitignore") and (root / ".mdmemory/.gitignore").read_bytes() == b"*\n"
    assert modes == {"good.md": 0o660, "a.md": 0o644, ".mdmemory/objects/o": 0o600, LOG: 0o600}
    assert stat.S_IMODE((root / ".mdmemory").stat().st_mode) == 0o700


async def test_opening_creates_nothing(make: Make, tmp_path: Path) -> None:
    """Opening, scanning and reading make no folder; the first commit makes it."""
    backend = make(tmp_path / "deep/memory")
    assert (await backend.scan()).files == {} and (await backend.read({"a.md": None}))["a.md"]
    assert not (tmp_path / "deep").exists()
    await backend.commit("c", [Put("a.md", b"x")])
    assert (tmp_path / "deep/memory/a.md").read_bytes() == b"x"


async def test_a_root_that_vanishes(make: Make, root: Path) -> None:
    """D1: a folder that was there and is gone could not be looked at: not empty, its files not absent, and not remade."""
    backend = make()
    await backend.scan()
    root.rename(root.with_name("elsewhere"))
    for call in (backend.scan(), backend.commit("c", [Put("a.md", b"x")])):
        with pytest.raises(Unavailable, match="was there and is gone") as caught:
            await call
        assert str(root) not in str(caught.value)
    problem = (await backend.read({"good.md": None}))["good.md"]
    assert isinstance(problem, FileProblem) and problem.kind == "unavailable" and not root.exists()


async def test_a_file_as_the_root(make: Make, root: Path) -> None:
    """A location that is a file is no memory, and says so without its path."""
    backend = make(root / "good.md")
    for call in (backend.scan(), backend.commit("c", [Put("a.md", b"x")])):
        with pytest.raises(MdmemoryError) as caught:
            await call
        assert str(root) not in str(caught.value)


async def test_a_link_can_be_deleted_as_such(make: Make, root: Path) -> None:
    """N3: a delete that asks for a link removes the link, dangling or not, and neither a file nor what lies behind a link."""
    plant_odd_files(root)
    backend = make()
    await backend.commit("a", [Delete("dangling.md", LINK), Delete("link.md", LINK), Delete("gone.md", LINK)])
    for path, error in (("good.md", Conflict), ("folder/secret.md", UnsafeFile), ("fifo.md", UnsafeFile)):
        with pytest.raises(error):
            await backend.commit("b", [Delete(path, LINK)])
    left = {path.name for path in root.iterdir()}
    assert not left & {"dangling.md", "link.md"} and {"good.md", "folder", "fifo.md"} <= left
    assert [path.read_bytes() for path in (root / "../outside").iterdir()] == [SECRET]
