"""One `docker exec` over its hijacked connection: standard input in, both outputs out, at the same time. Floor 1.

The SDK's own reader has no time-out, no cap, and no way to write. The format of a frame is that of the engine's API, "Attach to
a container": the stream's number, three zero bytes, four bytes of length, and the data.
"""

from __future__ import annotations

import select
import socket
import ssl
import struct
import time
from typing import TYPE_CHECKING, Final

from mdmemory.backends.shell import Completed
from mdmemory.errors import Unavailable

if TYPE_CHECKING:
    from docker import APIClient

_HEADER: Final = struct.Struct(">BxxxL")
_CHUNK: Final = 262_144
_NOT_YET: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def exchange(api: APIClient, exec_id: str, stdin: bytes, timeout_s: float, max_output_bytes: int) -> Completed:
    """Run a made exec to its end.

    Returns:
        What it wrote; the code is -1 when the engine does not know how it ended, as after a kill of its container.

    Raises:
        Unavailable: it took too long or wrote too much.
        OSError: the connection broke.
    """
    raw = api.exec_start(exec_id, socket=True)
    connection: socket.socket = getattr(raw, "_sock", raw)
    try:
        connection.setblocking(False)
        outputs = _pump(connection, memoryview(stdin), time.monotonic() + timeout_s, max_output_bytes)
    finally:
        raw._response.close()
        connection.close()
    found = api.exec_inspect(exec_id)
    code = -1 if found["ExitCode"] is None or found["Running"] else found["ExitCode"]
    return Completed(code, bytes(outputs[1]), bytes(outputs[2]))


def _pump(connection: socket.socket, rest: memoryview, deadline: float, max_output_bytes: int) -> dict[int, bytearray]:
    frames = _Frames(max_output_bytes)
    poll = select.poll()  # not select(), which takes no descriptor over 1023
    poll.register(connection)
    while True:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise Unavailable("the sandbox did not answer in time. Try again, or look at what keeps it busy.")
        poll.modify(connection, select.POLLIN | (select.POLLOUT if rest else 0))
        poll.poll(1000 * min(left_s, 1.0))
        try:
            if rest:
                rest = rest[connection.send(rest[:_CHUNK]) :]
        except _NOT_YET:
            pass
        except (BrokenPipeError, ConnectionResetError):
            rest = rest[:0]  # it ended without reading all; what it said is still to be read
        try:
            data = connection.recv(_CHUNK)
        except _NOT_YET:
            continue
        if not data:
            return frames.outputs
        frames.take(data)


class _Frames:
    """Cuts the stream into the two outputs."""

    def __init__(self, max_output_bytes: int) -> None:
        self.outputs = {1: bytearray(), 2: bytearray()}
        self._max = max_output_bytes
        self._header = b""
        self._stream, self._left = 0, 0

    def take(self, data: bytes) -> None:
        """Take in the next bytes, wherever they were cut."""
        at = 0
        while at < len(data):
            if not self._left:
                more = data[at : at + _HEADER.size - len(self._header)]
                self._header += more
                at += len(more)
                if len(self._header) == _HEADER.size:
                    self._stream, self._left = _HEADER.unpack(self._header)
                    self._header = b""
                continue
            part = data[at : at + self._left]
            at += len(part)
            self._left -= len(part)
            output = self.outputs.setdefault(self._stream, bytearray())
            output += part
            if len(output) > self._max:
                raise Unavailable(f"more than {self._max} bytes came back from the sandbox, which is more than a memory has.")
