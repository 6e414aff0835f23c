"""The inside of a sandbox of `e2b_server`: a folder of its own, files by HTTP, and commands that really run.

What a command or a request calls `/home/user` is a folder of the sandbox on this machine. That is no protection: commands run as
whoever runs the tests.
"""

from __future__ import annotations

import base64
import datetime
import json
import os
import selectors
import shutil
import signal
import struct
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOME = "/home/user"
ENVD_VERSION = "0.6.7"
END_OF_STREAM = 2
Event = dict[str, Any]


class EnvdError(Exception):
    """An error as envd words it: a connect code, or an HTTP status for files."""

    def __init__(self, code: str | int, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(message)


@dataclass(slots=True)
class Sandbox:
    """One sandbox; `end_at` is in seconds of the epoch."""

    place: Path
    template: str
    metadata: Mapping[str, str]
    auto_pause: bool
    internet: bool
    end_at: float
    id: str = field(default_factory=lambda: f"i{uuid.uuid4().hex[:19]}")
    token: str = field(default_factory=lambda: f"envd-{uuid.uuid4().hex}")
    state: str = "running"
    started_at: float = field(default_factory=time.time)
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    pauses: int = 0

    @property
    def home(self) -> Path:
        """Where its /home/user is on this machine."""
        return self.place / self.id / "home"

    def path(self, path: str) -> Path:
        """Where a path of the sandbox is on this machine; only its home is there."""
        below = os.path.relpath(os.path.normpath(os.path.join(HOME, path)), HOME)
        if below.startswith(".."):
            raise EnvdError(400, f"{path}: this sandbox has nothing but {HOME}")
        return self.home / below

    def shown(self) -> Event:
        """What the control plane says of it."""
        return {
            "templateID": self.template,
            "sandboxID": self.id,
            "clientID": "local",
            "envdVersion": ENVD_VERSION,
            "envdAccessToken": self.token,
            "startedAt": _time(self.started_at),
            "endAt": _time(self.end_at),
            "cpuCount": 2,
            "memoryMB": 512,
            "diskSizeMB": 1024,
            "state": self.state,
            "metadata": self.metadata,
        }

    def pause(self) -> None:
        """Freeze it as it is; streams to it break."""
        self.state, self.pauses = "paused", self.pauses + 1
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Go on where it was frozen."""
        self.state = "running"
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it, with all that is in it."""
        self.state = "killed"
        self._signal(signal.SIGKILL)
        shutil.rmtree(self.place / self.id, ignore_errors=True)

    def _signal(self, number: int) -> None:
        for _ in range(2):  # one may just have been forked
            for pid in _descendants(set(self.processes)):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)


def _descendants(sessions: set[int]) -> list[int]:
    """The processes of these sessions, youngest first: one that ends while its leader is stopped would end them all."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat") if sessions else ():
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[3]) in sessions:
                found.append(int(stat.parent.name))
    return sorted(found, reverse=True)


def read_file(sandbox: Sandbox, path: str) -> bytes:
    """The bytes of a file, links followed, as envd does."""
    place = sandbox.path(path)
    if not place.exists():
        raise EnvdError(404, f"path '{path}' does not exist")
    if place.is_dir():
        raise EnvdError(400, f"path '{path}' is a directory")
    return place.read_bytes()


def write_file(sandbox: Sandbox, path: str, data: bytes) -> list[Event]:
    """Truncate and write in place, links followed, parents made, as envd does."""
    place = sandbox.path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir():
        raise EnvdError(400, f"path is a directory: {path}")
    place.write_bytes(data)
    return [{"name": place.name, "path": path, "type": "file"}]


def uploaded(content_type: str, body: bytes) -> bytes:
    """The one file in the body of an upload."""
    if not content_type.startswith("multipart/"):
        return body
    boundary = b"--" + content_type.partition("boundary=")[2].strip('"').encode()
    part = body.split(boundary)[1]
    return part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")


def run(sandbox: Sandbox, request: Event, deadline: float | None) -> Iterator[Event]:
    """Run a command: its start, its output as it comes, its end; stops short when the sandbox stops running.

    Args:
        deadline: of `time.monotonic`, when the command is killed.
    """
    config = request["process"]
    command = [config["cmd"], *config.get("args", [])]
    envs = {"PATH": os.environ["PATH"], "USER": "user", "E2B_SANDBOX": "true", **config.get("envs", {})}
    try:
        process = subprocess.Popen(
            [text.replace(HOME, str(sandbox.home)) for text in command],
            cwd=sandbox.path(config.get("cwd", "")),
            env={**envs, "HOME": str(sandbox.home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise EnvdError("invalid_argument", f"error starting process: {error.strerror}") from error
    sandbox.processes[process.pid] = process
    pauses = sandbox.pauses
    try:
        yield {"start": {"pid": process.pid}}
        for name, chunk in _output(process):
            if sandbox.state != "running" or sandbox.pauses != pauses:
                return
            if deadline is not None and time.monotonic() > deadline:
                os.killpg(process.pid, signal.SIGKILL)
                raise EnvdError("deadline_exceeded", "context deadline exceeded")
            if chunk:
                yield {"data": {name: base64.b64encode(chunk).decode()}}
        yield {"end": _end(process.wait())}
    finally:
        threading.Thread(target=_see_off, args=(sandbox, process), daemon=True).start()


def _see_off(sandbox: Sandbox, process: subprocess.Popen[bytes]) -> None:
    """Wait for a command's end, which may come long after its listener went away."""
    for _ in _output(process):
        pass
    process.wait()
    sandbox.processes.pop(process.pid, None)


def _output(process: subprocess.Popen[bytes]) -> Iterator[tuple[str, bytes]]:
    """Chunks of both outputs, and empty ones now and then while nothing comes."""
    assert process.stdout is not None and process.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, "stdout")
        selector.register(process.stderr, selectors.EVENT_READ, "stderr")
        while selector.get_map():
            ready = selector.select(0.05)
            for key, _ in ready:
                if chunk := os.read(key.fd, 32_768):
                    yield key.data, chunk
                else:
                    selector.unregister(key.fileobj)
            if not ready:
                yield "stdout", b""


def _end(code: int) -> Event:
    if code == 0:
        return {"exited": True, "status": "exit status 0"}
    status = f"exit status {code}" if code > 0 else f"signal: {signal.Signals(-code).name}"
    return {"exited": code > 0, "exitCode": max(code, -1), "status": status, "error": status}


def send_signal(sandbox: Sandbox, request: Event) -> Event:
    """Signal a running command."""
    process = sandbox.processes.get(request["process"].get("pid"))
    if process is None:
        raise EnvdError("not_found", "process not found")
    os.killpg(process.pid, {"SIGNAL_SIGTERM": signal.SIGTERM, "SIGNAL_SIGKILL": signal.SIGKILL}[request["signal"]])
    return {}


def envelope(message: Event, flags: int = 0) -> bytes:
    """One message of a connect stream."""
    data = json.dumps(message).encode()
    return struct.pack(">BI", flags, len(data)) + data


def opened(body: bytes) -> Event:
    """The message in the first envelope."""
    length = struct.unpack(">BI", body[:5])[1]
    message: Event = json.loads(body[5 : 5 + length] or b"{}")
    return message


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat().replace("+00:00", "Z")
