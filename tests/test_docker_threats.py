"""What a container is kept from, and what becomes of a memory whose container is attacked, filled or killed."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker
import pytest
from engine import IMAGES, new_volume

from mdmemory.backends.docker import DockerBackend
from mdmemory.backends.docker_container import Limits
from mdmemory.backends.protocol import LOG, Append, File, FileProblem, Put, done_mark, etag_of
from mdmemory.errors import Unavailable, UnsafeFile

pytestmark = pytest.mark.docker
CANARY = "canary-8c1f2e"


@pytest.fixture(params=IMAGES)
async def backend(request: pytest.FixtureRequest, engine: Any) -> AsyncIterator[DockerBackend]:
    """A backend with a container and a volume of its own, on each kind of image."""
    backend = DockerBackend(IMAGES[request.param], volume=new_volume(), on_close="remove", limits=Limits(memory_mb=64, tmp_mb=16))
    await backend.scan()
    yield backend
    await backend.close()


@pytest.fixture
def container(backend: DockerBackend, engine: Any) -> Any:
    """The container that the backend is behind."""
    return engine.containers.get(backend.shell.name)


def sh(container: Any, script: str) -> str:
    """What the agent in the container would see."""
    done = container.exec_run(["sh", "-c", script])
    return str(done.output.decode("utf-8", "replace")).strip()


def test_the_container_is_hardened(container: Any) -> None:
    """No network, no rights, no writable root, no host folder, no socket of the engine, and limits on all that can be used up."""
    host, config = container.attrs["HostConfig"], container.attrs["Config"]
    assert (host["NetworkMode"], host["ReadonlyRootfs"], host["CapDrop"]) == ("none", True, ["ALL"])
    assert host["SecurityOpt"] == ["no-new-privileges"] and not host["Privileged"] and not host["CapAdd"]
    assert (host["PidsLimit"], host["Memory"], host["MemorySwap"]) == (64, 64 << 20, 64 << 20)
    assert (host["Init"], host["IpcMode"], host["LogConfig"]["Type"]) == (True, "private", "none")
    assert (config["User"], host["PidMode"], host["PublishAllPorts"], host["Binds"]) == ("1000:1000", "", False, None)
    assert [(mount["Type"], mount["Destination"]) for mount in container.attrs["Mounts"]] == [("volume", "/memory")]
    assert sh(container, "id -u; id -g") == "1000\n1000"
    assert sh(container, "grep CapEff /proc/self/status").split() == ["CapEff:", "0" * 16]
    assert (
        sh(container, "ls /sys/class/net") == "lo"
        and sh(container, "ls /var/run/docker.sock /run/docker.sock 2>&1").count("No such") == 2
    )
    assert "Read-only" in sh(container, "touch /etc/x 2>&1")
    assert "denied" in sh(container, "cp /bin/sh /tmp/sh && chmod 755 /tmp/sh && /tmp/sh -c 'echo ran' 2>&1").lower()


async def test_what_an_agent_plants(backend: DockerBackend, container: Any) -> None:
    """N3: links to the container's own files, FIFOs and odd names that an agent made are skipped; nothing hangs or is followed."""
    sh(
        container,
        "ln -s /etc /memory/lnk; ln -s /etc/passwd /memory/p.md; mkfifo /memory/f.md; mkdir -p '/memory/a\nb' /memory/.git",
    )
    scan = await asyncio.wait_for(backend.scan(), 20)
    assert scan.files == {} and scan.skipped.keys() == {"lnk", "p.md", "f.md", r"a\nb"}
    found = await backend.read({"lnk/passwd": None, "p.md": None, "f.md": None})
    assert {answer.kind for answer in found.values() if isinstance(answer, FileProblem)} == {"unsafe"} and len(found) == 3
    for path in ("lnk/x.md", "p.md", "f.md"):
        with pytest.raises(UnsafeFile):
            await backend.commit("c", [Put(path, b"x")])


async def test_secrets_stay_outside(
    backend: DockerBackend, container: Any, engine: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the host's environment nor what a memory holds shows in the container's settings, in any argv, log or repr."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("CANARY_KEY", CANARY)
    content = f"{CANARY} is in a file".encode()
    made: list[str] = []
    create = docker.APIClient.exec_create

    def remembered(self: docker.APIClient, *args: Any, **options: Any) -> Any:
        answer = create(self, *args, **options)
        made.append(answer["Id"])
        return answer

    monkeypatch.setattr(docker.APIClient, "exec_create", remembered)
    await backend.commit("c", [Put("a.md", content), Append(LOG, content, "")])
    assert isinstance((await backend.read({"a.md": None}))["a.md"], File)
    container.reload()
    seen = [*(engine.api.exec_inspect(exec_id) for exec_id in made), container.attrs, engine.containers.list(all=True)]
    assert made and CANARY not in repr([*seen, backend, backend.shell, vars(backend.shell), caplog.text])
    assert CANARY not in sh(container, "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null")


async def test_endless_output(backend: DockerBackend) -> None:
    """A command that never stops talking ends in a clear error at once; one that never says a word, at its time."""
    began = time.monotonic()
    with pytest.raises(Unavailable, match="more than 1000000 bytes"):
        await backend.shell.run(["timeout", "-s", "KILL", "20", "yes"], b"", timeout_s=20, max_output_bytes=1_000_000)
    with pytest.raises(Unavailable, match="in time"):
        await backend.shell.run(["sleep", "20"], b"", timeout_s=1, max_output_bytes=1_000)
    assert time.monotonic() - began < 15


async def test_a_fork_bomb(backend: DockerBackend, container: Any) -> None:
    """Processes without end fill the container, not the machine: the memory is unavailable, and back after a restart."""
    await backend.commit("c", [Put("a.md", b"x")])
    bomb = "f() { f | f & }; f"
    container.exec_run(["sh", "-c", bomb], detach=True)
    refused = 0
    for _ in range(5):
        try:
            await backend.scan()
        except Unavailable:
            refused += 1
    pids = container.stats(stream=False)["pids_stats"]
    assert pids.get("current", 0) <= 64 == pids["limit"]
    container.restart(timeout=0)
    assert set((await backend.scan()).files) == {"a.md"}
    assert refused or pids.get("current", 0) < 64


async def test_memory_is_limited(backend: DockerBackend, container: Any) -> None:
    """A process that takes too much memory is ended, and the container with its memory goes on."""
    code = container.exec_run(["sh", "-c", "x=x; while true; do x=$x$x; done"]).exit_code
    assert code != 0
    await backend.commit("c", [Put("a.md", b"x")])


async def test_a_container_killed_in_the_middle_of_a_commit(backend: DockerBackend, container: Any) -> None:
    """E6: killed at any moment of a commit, it is started again and the commit repeated; no file is ever half."""
    versions = {n: b"version %d\n" % n * 5000 for n in range(9)}
    await backend.commit("0", [Put(f"{k}.md", versions[0]) for k in range(10)])
    ended = 0
    for n in range(1, 9):
        ops = [Put(f"{k}.md", versions[n], etag_of(versions[n - 1])) for k in range(10)]
        done = Append(LOG, f"{{{done_mark(str(n))}}}\n".encode(), done_mark(str(n)))
        task = asyncio.ensure_future(backend.commit(str(n), [*ops, done]))
        await asyncio.sleep(0.03 * n)
        with suppress(docker.errors.APIError):
            await asyncio.to_thread(container.kill)
            ended += 1
        etags = await asyncio.wait_for(task, 60)
        assert set(etags.values()) == {etag_of(versions[n])}
        found = await backend.read({f"{k}.md": None for k in range(10)})
        assert {file.data for file in found.values() if isinstance(file, File)} == {versions[n]}
    assert ended
    assert "No such" in sh(container, "ls /memory/.mdmemory/shell/lock 2>&1") or not sh(
        container, "ls /memory/.mdmemory/shell/work"
    )


class Line:
    """A line to the engine that can be cut: a socket that passes on to the engine's."""

    def __init__(self, path: Path, target: str) -> None:
        self.path, self._target = path, target
        self.open: list[socket.socket] = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break every connection there is."""
        for end in self.open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self.open.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._target)
                self.open += [near, far]
                for source, drain in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(source, drain), daemon=True).start()

    def _pass(self, source: socket.socket, drain: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                drain.sendall(data)
            drain.shutdown(socket.SHUT_WR)


@pytest.fixture
def line(engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    """A line that the environment names as the engine."""
    address = engine.api.base_url.removeprefix("http+docker://")
    if address != "localhost" or not engine.api._custom_adapter.socket_path:
        pytest.skip("the engine is not on this machine")
    line = Line(tmp_path / "docker.sock", engine.api._custom_adapter.socket_path)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{line.path}")
    yield line
    line.cut()
    line.listener.close()


async def test_a_line_that_breaks(line: Line) -> None:
    """E7: when the connection breaks in the middle of a commit it is made again, and the commit happens once."""
    backend = DockerBackend(IMAGES["busybox"], volume=new_volume(), on_close="remove")
    await backend.commit("first", [Put("a.md", b"0")])
    for n in range(6):
        entry = f'"id":"{n}"'
        ops = [Put("a.md", b"%d" % (n + 1), etag_of(b"%d" % n)), Append("log.md", f"{entry}\n".encode(), entry)]
        task = asyncio.ensure_future(backend.commit(str(n), ops))
        await asyncio.sleep(0.02 + 0.02 * n)
        line.cut()
        assert await asyncio.wait_for(task, 60) == {"a.md": etag_of(b"%d" % (n + 1))}
    found = await backend.read({"log.md": None})
    file = found["log.md"]
    assert isinstance(file, File) and file.data.splitlines() == [b'"id":"%d"' % n for n in range(6)]
    await backend.close()


def test_no_engine_is_said_loudly(pytester_run: Callable[[str], str]) -> None:
    """A run of the tests without an engine ends with a line that says that Docker was not tested."""
    assert "Docker was NOT tested" in pytester_run("unix:///nowhere.sock")


@pytest.fixture
def pytester_run(repository: Path) -> Callable[[str], str]:
    """Run one Docker test in a process of its own, with this engine."""
    import os
    import subprocess
    import sys

    def run(host: str) -> str:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "tests/test_docker.py", "-k", "keep_stop"]
        env = {**os.environ, "DOCKER_HOST": host}
        return subprocess.run(command, cwd=repository, env=env, capture_output=True, text=True, check=False).stdout[-2000:]

    return run
