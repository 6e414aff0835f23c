"""A small server that speaks what the real `e2b` SDK speaks: the REST control plane, and envd in each sandbox (`e2b_envd`).

`with E2BServer(folder) as server:` listens on a free port of the loopback; `server.environment` points the SDK at it. Troubles are
said with `server.fail`, and every request is noted in `server.requests`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

from e2b_envd import END_OF_STREAM, EnvdError, Sandbox, envelope, opened, read_file, run, send_signal, uploaded, write_file

TEMPLATES = ("base", "mdmemory")
STATUS = {"invalid_argument": 400, "not_found": 404}
START = "/process.Process/Start"


@dataclass(slots=True)
class Fault:
    """What goes wrong with the next requests whose path has `path` in it.

    Args:
        status: answered instead of doing anything; 0 does what was asked, and then breaks the connection instead of answering.
        message: of the answer.
        times: how many requests it hits.
        headers: more headers of the answer, such as retry-after.
    """

    path: str
    status: int
    message: str = "as the test says"
    times: int = 1
    headers: Mapping[str, str] = field(default_factory=dict)


class E2BServer:
    """Sandboxes as folders below `place`; a context manager.

    Args:
        latency_s: added to each request.
    """

    api_key = "e2b_0123456789abcdef"

    def __init__(self, place: Path, *, latency_s: float = 0.0) -> None:
        self.place, self.latency_s = place, latency_s
        self.sandboxes: dict[str, Sandbox] = {}
        self.requests: list[str] = []
        self.faults: list[Fault] = []
        self.lock = threading.RLock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._http.daemon_threads = True
        self._http.e2b = self  # type: ignore[attr-defined]  # the handler finds it there
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        for sandbox in self.sandboxes.values():
            sandbox.kill()

    @property
    def environment(self) -> dict[str, str]:
        """The variables that point the SDK here."""
        url = f"http://127.0.0.1:{self._http.server_port}"
        return {"E2B_API_URL": url, "E2B_SANDBOX_URL": url, "E2B_API_KEY": self.api_key}

    @property
    def sandbox(self) -> Sandbox:
        """The only sandbox."""
        (sandbox,) = self.sandboxes.values()
        return sandbox

    def fail(self, path: str, status: int, **more: Any) -> None:
        """Let the next requests go wrong, as `Fault`."""
        self.faults.append(Fault(path, status, **more))

    def fault(self, path: str) -> Fault | None:
        """What goes wrong with this request."""
        with self.lock:
            for fault in self.faults:
                if fault.times and fault.path in path:
                    fault.times -= 1
                    return fault
        return None

    def sweep(self) -> None:
        """Pause or kill every sandbox whose time is over."""
        with self.lock:
            for sandbox in list(self.sandboxes.values()):
                if sandbox.state == "running" and time.time() > sandbox.end_at:
                    if sandbox.auto_pause:
                        sandbox.pause()
                    else:
                        self.sandboxes.pop(sandbox.id).kill()

    def create(self, body: Mapping[str, Any]) -> Sandbox:
        """Make a sandbox as a request to the control plane says."""
        end_at = time.time() + body.get("timeout", 300)
        pause, internet = bool(body.get("autoPause")), body.get("allow_internet_access", True)
        sandbox = Sandbox(self.place, body["templateID"], body.get("metadata") or {}, pause, internet, end_at)
        sandbox.home.mkdir(parents=True)
        with self.lock:
            self.sandboxes[sandbox.id] = sandbox
        return sandbox


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def e2b(self) -> E2BServer:
        return self.server.e2b  # type: ignore[attr-defined, no-any-return]  # set by E2BServer

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        body = self._body()
        self.e2b.requests.append(f"{self.command} {url.path}")
        time.sleep(self.e2b.latency_s)
        self.e2b.sweep()
        fault = self.e2b.fault(url.path)
        self._mute = fault is not None and fault.status == 0
        self.close_connection = self.close_connection or self._mute
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        with suppress(BrokenPipeError, ConnectionResetError):  # the client gave up waiting
            if fault is not None and fault.status:
                self._error(fault.status, fault.message, fault.headers)
            elif "sandboxes" in url.path.split("/"):
                self._control(url.path, query, body)
            else:
                self._envd(url.path, query, body)

    do_POST = do_DELETE = do_GET

    def _control(self, path: str, query: Mapping[str, str], body: bytes) -> None:
        if self.headers.get("x-api-key") != self.e2b.api_key:
            return self._error(401, "Unauthorized, invalid API key")
        asked = json.loads(body or b"{}")
        which, _, operation = path.partition("sandboxes")[2].strip("/").partition("/")
        if not which and self.command == "POST":
            if asked["templateID"] not in TEMPLATES:
                return self._error(404, f"template '{asked['templateID']}' not found")
            return self._json(201, self.e2b.create(asked).shown())
        if not which:
            return self._json(200, [sandbox.shown() for sandbox in self._listed(query)])
        sandbox = self.e2b.sandboxes.get(which)
        if sandbox is None:
            return self._error(404, f"sandbox {which} not found")
        with self.e2b.lock:
            return self._operate(sandbox, operation or self.command, asked)

    def _listed(self, query: Mapping[str, str]) -> Iterable[Sandbox]:
        wanted = {unquote(name): unquote(value) for name, value in parse_qsl(query.get("metadata", ""))}
        states = query.get("state", "running,paused").split(",")
        for sandbox in list(self.e2b.sandboxes.values()):
            if sandbox.state in states and wanted.items() <= dict(sandbox.metadata).items():
                yield sandbox

    def _operate(self, sandbox: Sandbox, operation: str, asked: Mapping[str, Any]) -> None:
        end_at = time.time() + asked.get("timeout", 300)
        match operation:
            case "GET":
                self._json(200, sandbox.shown())
            case "DELETE":
                self.e2b.sandboxes.pop(sandbox.id).kill()
                self._send(204)
            case "pause" if sandbox.state == "paused":
                self._error(409, "sandbox is already paused")
            case "pause":
                sandbox.pause()
                self._send(204)
            case "connect" if sandbox.state == "paused":
                sandbox.end_at = end_at
                sandbox.resume()
                self._json(201, sandbox.shown())
            case "connect":
                sandbox.end_at = max(sandbox.end_at, end_at)
                self._json(200, sandbox.shown())
            case "timeout":
                sandbox.end_at = end_at
                self._send(204)
            case _:
                self._error(404, "no such operation")

    def _envd(self, path: str, query: Mapping[str, str], body: bytes) -> None:
        which = self.headers.get("e2b-sandbox-id", "")
        sandbox = self.e2b.sandboxes.get(which)
        if sandbox is None or sandbox.state != "running":
            return self._error(502, f"The sandbox {which} was not found")
        if path == "/health":
            return self._send(204)
        if self.headers.get("x-access-token") != sandbox.token:
            return self._error(401, "unauthorized access, please provide a valid access token")
        try:
            match path, self.command:
                case "/files", "GET":
                    self._send(200, read_file(sandbox, query["path"]), "application/octet-stream")
                case "/files", "POST":
                    data = uploaded(self.headers.get("content-type", ""), body)
                    self._json(200, write_file(sandbox, query["path"], data))
                case "/process.Process/Start", "POST":
                    self._stream(sandbox, opened(body))
                case "/process.Process/SendSignal", "POST":
                    self._json(200, send_signal(sandbox, json.loads(body)))
                case _:
                    self._error(404, "no such route")
        except EnvdError as error:
            status = error.code if isinstance(error.code, int) else STATUS[error.code]
            self._error(status, error.message, code=error.code)

    def _stream(self, sandbox: Sandbox, request: dict[str, Any]) -> None:
        timeout_ms = float(self.headers.get("connect-timeout-ms") or 0)
        deadline = time.monotonic() + timeout_ms / 1000 if timeout_ms else None
        self._head(200, "application/connect+json", {"transfer-encoding": "chunked"})
        ended = False
        try:
            for event in run(sandbox, request, deadline):
                self._chunk(envelope({"event": event}))
                ended = "end" in event
        except EnvdError as error:
            self._chunk(envelope({"error": {"code": error.code, "message": error.message}}, END_OF_STREAM))
            return self._chunk(b"")
        if not ended:  # the sandbox stopped running, and the connection breaks
            self.close_connection = True
            return
        self._chunk(envelope({}, END_OF_STREAM))
        self._chunk(b"")

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _error(self, status: int, message: str, headers: Mapping[str, str] = {}, code: str | int = 0) -> None:
        self._json(status, {"code": code or status, "message": message}, headers)

    def _json(self, status: int, value: object, headers: Mapping[str, str] = {}) -> None:
        self._send(status, json.dumps(value).encode(), "application/json", headers)

    def _send(self, status: int, data: bytes = b"", content_type: str = "", headers: Mapping[str, str] = {}) -> None:
        length = {} if status == 204 else {"content-length": str(len(data))}
        self._head(status, content_type, {**length, **headers})
        if not self._mute:
            self.wfile.write(data)

    def _head(self, status: int, content_type: str, headers: Mapping[str, str]) -> None:
        if self._mute:
            return
        self.send_response(status)
        for name, value in {**({"content-type": content_type} if content_type else {}), **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        if not self._mute:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the tests look at `requests`."""
