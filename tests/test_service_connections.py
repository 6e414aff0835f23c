"""Clients that are slow by intent: a request that does not come in time is given up, whoever sends it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import uvicorn
from service_app import until

from mdmemory.service import answering, connections
from mdmemory.service.app import ServiceApp
from mdmemory.service.connections import Connection
from mdmemory.service.serving import Serving
from mdmemory.service.users import User

pytestmark = pytest.mark.slow  # many processes, or the same again and again

LIVE = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
FORM = b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\nContent-Length: 50\r\n\r\n"
CALL = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer alice\r\nContent-Length: 50\r\n\r\n{"


async def authenticate(token: str) -> User | None:
    """Everybody's name is their token."""
    return User(token) if token else None


async def all_of(reader: asyncio.StreamReader) -> bytes:
    """What comes until the server closes the connection."""
    async with asyncio.timeout(10):
        return await reader.read()


async def test_a_request_must_come_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No head, half a head, half a second head and half a body are not waited for, and a stream is; others are served."""
    monkeypatch.setattr(connections, "HEAD_S", 0.5)
    monkeypatch.setattr(answering, "BODY_S", 0.5)
    app = ServiceApp(Serving(f"{tmp_path}/{{user}}", "x" * 40), authenticate)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, http=Connection, timeout_graceful_shutdown=5))
    task = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]

    async def sent(*parts: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for part in parts:
            writer.write(part)
            await asyncio.sleep(0.1)
        answer = await all_of(reader)
        writer.close()
        return answer

    answers = await asyncio.gather(
        sent(), sent(b"GET / HT"), sent(LIVE, LIVE, b"GET"), sent(FORM, b"token"), sent(CALL), sent(LIVE.replace(b"GET", b"\0"))
    )
    assert answers[:2] == [b"", b""] and answers[2].count(b'{"live":true}') == 2
    assert [answer.split()[1] for answer in answers[3:]] == [b"408", b"408", b"400"]

    cookie = (await sent(FORM.replace(b"50", b"11") + b"token=alice")).partition(b"set-cookie: ")[2].partition(b";")[0]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /changes HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: " + cookie + b"\r\n\r\n")
    await reader.readuntil(b"retry: 1000")
    await asyncio.sleep(1.2)
    app.end()
    assert b"0\r\n\r\n" in await all_of(reader)
    writer.close()
    server.should_exit = True
    await task
