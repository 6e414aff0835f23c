"""The Docker backend on a real engine: what every backend does, and the container's life."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from engine import IMAGES, new_volume
from local_shell import CommandShell

from mdmemory import Create, MemoryFolder, open_memory
from mdmemory.backends.docker import DockerBackend
from mdmemory.backends.docker_container import Limits
from mdmemory.backends.protocol import Backend, File, FileProblem, Put, etag_of
from mdmemory.backends.shell import ShellBackend
from mdmemory.errors import ConfigError, Unavailable
from mdmemory.testing.conformance import BackendConformance

pytestmark = pytest.mark.docker
NOTE = b"---\nname: Note\ndescription: what is known\ntype: project\n---\n\nSome words.\n"


@pytest.fixture(scope="class")
def container(request: pytest.FixtureRequest, engine: Any) -> str:
    """A container of the class's kind of image, made as the backend makes it."""
    volume = new_volume()
    asyncio.run(_make(DockerBackend(IMAGES[request.cls.kind], volume=volume, on_close="keep")))
    return f"mdmemory-{volume}"


class OnDocker(BackendConformance):
    """The suite in one container for all tests, each in a folder of its own."""

    kind: str

    @pytest.fixture
    async def backend(self, tmp_path: Path, container: str) -> AsyncIterator[Backend]:
        """The backend under test, closed twice afterwards: that must be fine."""
        backend = DockerBackend(container=container, root=f"/memory/{uuid.uuid4().hex}")
        yield backend
        await backend.close()
        await backend.close()


class TestBusybox(OnDocker):
    """An image of busybox."""

    kind = "busybox"


class TestGnu(OnDocker):
    """An image of dash and GNU tools."""

    kind = "gnu"


class TestByCommand(OnDocker):
    """The shell of docs/backends/your-own.md, over `docker exec -i`."""

    kind = "busybox"

    @pytest.fixture
    async def backend(self, tmp_path: Path, container: str) -> AsyncIterator[Backend]:
        """A backend over the command line's client."""
        backend = ShellBackend(CommandShell("docker", "exec", "-i", container), f"/memory/{uuid.uuid4().hex}")
        yield backend
        await backend.close()


async def _make(backend: DockerBackend) -> None:
    await backend.scan()
    await backend.close()


@pytest.fixture
def make(engine: Any) -> Callable[..., DockerBackend]:
    """Make a backend with a container and a volume of its own."""

    def backend(image: str | None = IMAGES["busybox"], **options: Any) -> DockerBackend:
        return DockerBackend(image, **{"volume": new_volume(), "on_close": "remove", **options})

    return backend


async def test_a_memory_by_its_url(engine: Any) -> None:
    """`docker://IMAGE?volume=NAME` makes the volume and the container, and what is saved is there for the next one."""
    url = f"docker://{IMAGES['busybox']}?volume={new_volume()}"
    async with open_memory(url) as memory:
        await memory.folder.apply([Create("user/home.md", NOTE)], "person", "test")
    async with open_memory(f"{url}&on_close=remove") as memory:
        assert await memory.folder.read("user/home.md") == NOTE and (await memory.folder.read("MEMORY.md")).startswith(b"- [Note]")


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("docker://busybox", "needs an image and a volume"),
        ("docker://?volume=x", "needs an image and a volume"),
        ("docker://busybox?volume=x&on_close=explode", "keep, stop or remove"),
        ("docker://busybox?volume=x&privileged=1", "privileged is not known"),
    ],
)
async def test_locations_that_can_not_be_used(location: str, said: str) -> None:
    """A location that lacks a part, or has one too many, is refused before anything is asked of an engine."""
    with pytest.raises(ConfigError, match=said):
        async with open_memory(location):
            pass


async def test_keep_stop_and_remove(make: Callable[..., DockerBackend], engine: Any) -> None:
    """What closing does to the container is said, never guessed; the volume stays in any case; an unused one asks nothing."""
    volume = new_volume()
    states = {}
    for on_close in ("keep", "stop", None, "remove"):
        backend = make(volume=volume, on_close=on_close)
        await backend.commit(f"{on_close}", [Put(f"{on_close}.md", b"x")])
        await backend.close()
        states[on_close] = [found.status for found in engine.containers.list(all=True, filters={"name": f"mdmemory-{volume}$"})]
    assert states == {"keep": ["running"], "stop": ["exited"], None: ["exited"], "remove": []}
    again = make(volume=volume)
    assert set((await again.scan()).files) == {"keep.md", "stop.md", "None.md", "remove.md"}
    await again.close()
    await make(volume=new_volume()).close()


async def test_a_container_is_found_again(make: Callable[..., DockerBackend], engine: Any) -> None:
    """Backends of one volume share its container, those made at the same moment included, and a stopped one is started."""
    volume = new_volume()
    several = [make(volume=volume, on_close="keep") for _ in range(3)]
    await asyncio.gather(*(backend.commit(f"{n}", [Put(f"{n}.md", b"x")]) for n, backend in enumerate(several)))
    (container,) = engine.containers.list(filters={"name": f"mdmemory-{volume}$"})
    container.stop(timeout=0)
    assert len((await several[0].scan()).files) == 3
    for backend in several:
        await backend.close()


async def test_a_container_made_otherwise(make: Callable[..., DockerBackend]) -> None:
    """A container of that name with another image or other limits is not used unasked."""
    volume = new_volume()
    await _make(make(volume=volume, on_close="keep"))
    for other in (make(IMAGES["gnu"], volume=volume), make(volume=volume, limits=Limits(memory_mb=512))):
        with pytest.raises(ConfigError, match="made otherwise"):
            await other.scan()


async def test_a_container_of_others(make: Callable[..., DockerBackend], engine: Any) -> None:
    """A folder in the sandbox that an agent works in is used as it is, and the sandbox is left running."""
    name = f"mdmemory-{new_volume()}"
    theirs = engine.containers.run(IMAGES["gnu"], ["sleep", "600"], name=name, detach=True, network_mode="none")
    backend = make(None, volume=None, container=name, root="/srv/memory", on_close=None)
    await backend.commit("c", [Put("a.md", b"x")])
    await backend.close()
    theirs.reload()
    assert theirs.status == "running" and theirs.exec_run(["cat", "/srv/memory/a.md"]).output == b"x"
    theirs.pause()
    with pytest.raises(Unavailable, match="docker unpause"):
        await make(None, volume=None, container=name, on_close=None).scan()
    theirs.remove(force=True)
    with pytest.raises(Unavailable, match="no container"):
        await make(None, volume=None, container=name, on_close=None).scan()


async def test_an_image_that_is_missing(make: Callable[..., DockerBackend], engine: Any) -> None:
    """An image that the engine has not is named, with the command that gets it; nothing is pulled unasked, nothing left behind."""
    backend = make("mdmemory-test:nowhere")
    with pytest.raises(Unavailable, match="docker pull"):
        await backend.scan()
    problem = (await backend.read({"a.md": None}))["a.md"]
    assert isinstance(problem, FileProblem) and problem.kind == "unavailable"
    await backend.close()
    assert not engine.containers.list(all=True, filters={"name": backend.shell.name})


async def test_no_engine(make: Callable[..., DockerBackend], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without an engine nothing is said to be absent, and the error says what to check."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    backend = make()
    for call in (backend.scan(), backend.commit("c", [Put("a.md", b"x")])):
        with pytest.raises(Unavailable, match="DOCKER_HOST"):
            await call
    assert (await backend.read({"a.md": None}))["a.md"].kind == "unavailable"
    await backend.close()


@pytest.mark.parametrize("image", IMAGES.values(), ids=IMAGES)
async def test_the_owner_of_a_volume(make: Callable[..., DockerBackend], engine: Any, image: str) -> None:
    """A new volume is given to the container's user, whether or not the image has the folder; one in use keeps its owner."""
    fresh = make(image, root="/no/such/folder")
    await fresh.commit("c", [Put("a.md", b"x")])
    await fresh.close()
    volume = new_volume()
    fill = ["sh", "-c", "echo theirs >/memory/theirs.md"]
    mounts = {volume: {"bind": "/memory", "mode": "rw"}}
    engine.containers.run(image, fill, user="0", volumes=mounts, network_mode="none", remove=True)
    used = make(image, volume=volume)
    assert (await used.scan()).heads == {"theirs.md": b"theirs\n"}
    with pytest.raises(Unavailable, match="read-only for this user; nothing was written"):
        await used.commit("c", [Put("a.md", b"x")])
    await used.close()


async def test_calls_at_the_same_time(make: Callable[..., DockerBackend]) -> None:
    """Many calls at once, each with a client of its own, get their own answers."""
    backend = make()
    await backend.commit("c", [Put(f"{n}.md", b"%d" % n) for n in range(12)])

    async def call(n: int) -> bytes:
        shell = backend.shell
        done = await shell.run(["cat", f"/memory/{n}.md"], b"", timeout_s=30, max_output_bytes=1000)
        return done.stdout

    assert await asyncio.gather(*(call(n) for n in range(12))) == [b"%d" % n for n in range(12)]
    await backend.close()


async def test_large_input_and_output(make: Callable[..., DockerBackend]) -> None:
    """Megabytes go in and out at the same time, byte for byte, and an input that is not read to its end does no harm."""
    backend = make()
    data = bytes(range(256)) * 16_000
    assert await backend.commit("c", [Put("a.md", data)]) == {"a.md": etag_of(data)}
    file = (await backend.read({"a.md": None}))["a.md"]
    assert isinstance(file, File) and file.data == data
    command = ["head", "-c", str(len(data))]
    both = await backend.shell.run(command, data, timeout_s=30, max_output_bytes=len(data))
    assert (both.code, both.stdout) == (0, data)
    early = await backend.shell.run(["echo", "no"], data, timeout_s=30, max_output_bytes=1000)
    assert (early.code, early.stdout) == (0, b"no\n")
    await backend.close()


async def test_counted_calls(make: Callable[..., DockerBackend]) -> None:
    """All headers of 1,000 files are one `docker exec`, a look at nothing new is one, and so is a save."""
    backend = make()
    await backend.commit("fill", [Put(f"topic-{n // 50}/note-{n}.md", NOTE) for n in range(1000)])
    calls: list[str] = []
    run = backend.shell.run

    async def counted(argv: Any, stdin: bytes, **limits: Any) -> Any:
        calls.append(argv[argv.index("mdmemory") + 1])
        return await run(argv, stdin, **limits)

    backend.shell.run = counted
    folder = MemoryFolder(backend)
    await folder.refresh()
    assert calls == ["scan"] and len(folder.files) == 1000 and all(known.header for known in folder.files.values())
    await folder.refresh()
    await folder.apply([Create("new.md", NOTE + b"x" * 64_000)], "person", "test")
    assert calls == ["scan", "scan", "commit"]
    await backend.close()


async def test_closing_after_a_failed_call(make: Callable[..., DockerBackend], engine: Any) -> None:
    """What is to become of the container happens at close also when the last call was killed."""
    backend = make(on_close="remove")
    await backend.scan()
    done = await backend.shell.run(["sh", "-c", "kill -KILL $$"], b"", timeout_s=10, max_output_bytes=100)
    assert done.code == 137
    await backend.close()
    assert not engine.containers.list(all=True, filters={"name": backend.shell.name})
