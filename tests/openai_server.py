"""A small server that speaks OpenAI's chat completions over real HTTP, with the troubles that real ones have."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, and what goes wrong with it.

    Args:
        content: text of the assistant.
        calls: tool calls as (name, arguments); arguments given as text are sent as they are.
        status: another one than 200 is sent as an error with `content` as its message.
        headers: more headers, such as retry-after.
        after: what must have happened before the first byte.
        delay_s: before the first byte.
        chunk_delay_s: before each chunk of a stream.
        drop_after: break the connection after so many chunks of a stream; without a stream, instead of answering.
        raw: these bytes as the body, said to be JSON.
        ended: why the answer ended, where it isn't the usual.
    """

    content: str | None = None
    calls: Sequence[tuple[str, Mapping[str, Any] | str]] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    after: threading.Event | None = None
    delay_s: float = 0.0
    chunk_delay_s: float = 0.0
    drop_after: int | None = None
    raw: bytes | None = None
    ended: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asked for; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    json: Any


Script = Sequence[Answer | str] | Callable[[Any], Answer | str]


class ScriptedServer:
    """Answers POST requests on a free port of the loopback from a script; a context manager.

    Args:
        script: answers in their order, or a function from the request's JSON to an answer. Text is an answer's content.
        refuses: fields of a request that are answered with 400, which takes nothing from the script.
    """

    prefix = ""

    def __init__(self, script: Script, *, refuses: Sequence[str] = ()) -> None:
        self.requests: list[Request] = []
        self.script, self.refuses = script, refuses
        self._given, self._lock = 0, threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._http.daemon_threads = True
        self._http.scripted = self  # type: ignore[attr-defined]  # the handler finds it there
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def base_url(self) -> str:
        """What a client is given as its base URL."""
        return f"http://127.0.0.1:{self._http.server_port}{self.prefix}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer(self, request: Request) -> Answer:
        """The next answer of the script."""
        with self._lock:
            self.requests.append(request)
            if refused := [name for name in self.refuses if name in request.json]:
                return Answer(f"Unsupported parameter: {refused[0]}", status=400)
            if callable(self.script):
                answer = self.script(request.json)
            elif self._given < len(self.script):
                answer = self.script[self._given]
                self._given += 1
            else:
                answer = Answer("the script of this server is at its end", status=500, headers={"x-should-retry": "false"})
        return Answer(answer) if isinstance(answer, str) else answer

    def body(self, request: Request, answer: Answer) -> dict[str, Any]:
        """The JSON of an answer that is not streamed."""
        raise NotImplementedError

    def chunks(self, request: Request, answer: Answer) -> Iterator[dict[str, Any]]:
        """The events of a streamed answer."""
        raise NotImplementedError


class OpenAIServer(ScriptedServer):
    """Chat completions, streamed where the request asks for it: text and the arguments of tool calls come in small pieces."""

    prefix = "/v1"

    def body(self, request: Request, answer: Answer) -> dict[str, Any]:
        """A chat completion."""
        message: dict[str, Any] = {"role": "assistant", "content": answer.content}
        if answer.calls:
            message["tool_calls"] = [_call(n, name, text_of(arguments)) for n, (name, arguments) in enumerate(answer.calls)]
        choice = {"index": 0, "message": message, "finish_reason": _ended(answer), "logprobs": None}
        usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
        return {**_head(request, "chat.completion"), "choices": [choice], "usage": usage}

    def chunks(self, request: Request, answer: Answer) -> Iterator[dict[str, Any]]:
        """Chunks of a chat completion."""
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in _pieces(answer.content or "", 4)]
        for n, (name, arguments) in enumerate(answer.calls):
            deltas.append({"tool_calls": [{"index": n, **_call(n, name, "")}]})
            deltas += [{"tool_calls": [{"index": n, "function": {"arguments": piece}}]} for piece in _pieces(text_of(arguments), 6)]
        for delta in deltas:
            yield {**_head(request, "chat.completion.chunk"), "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        last = {"index": 0, "delta": {}, "finish_reason": _ended(answer)}
        yield {**_head(request, "chat.completion.chunk"), "choices": [last]}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server: ScriptedServer = self.server.scripted  # type: ignore[attr-defined]  # set by ScriptedServer
        data = self.rfile.read(int(self.headers["content-length"]))
        request = Request(self.path, {name.lower(): value for name, value in self.headers.items()}, json.loads(data))
        answer = server.answer(request)
        if answer.after is not None:
            answer.after.wait(30)
        time.sleep(answer.delay_s)
        try:
            if answer.status != 200:
                self._send(answer.status, _error(answer), answer.headers)
            elif answer.raw is not None:
                self._send(200, answer.raw, answer.headers)
            elif request.json.get("stream"):
                self._stream(server.chunks(request, answer), answer)
            elif answer.drop_after is not None:
                self.close_connection = True
            else:
                self._send(200, json.dumps(server.body(request, answer)).encode(), answer.headers)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client gave up waiting

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, chunks: Iterator[dict[str, Any]], answer: Answer) -> None:
        self.send_response(200)
        for name, value in {"content-type": "text/event-stream", "transfer-encoding": "chunked", **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        for number, event in enumerate([*map(_event, chunks), "data: [DONE]"]):
            if number == answer.drop_after:
                self.close_connection = True
                return
            time.sleep(answer.chunk_delay_s)
            self._write_chunk(f"{event}\n\n".encode())
        self._write_chunk(b"")

    def _write_chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the tests look at `requests`."""


def _event(chunk: Mapping[str, Any]) -> str:
    named = f"event: {chunk['type']}\n" if "type" in chunk else ""  # chat completions have no names
    return f"{named}data: {json.dumps(chunk)}"


def _head(request: Request, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1_700_000_000, "model": request.json["model"]}


def _call(number: int, name: str, arguments: str) -> dict[str, Any]:
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


def text_of(arguments: Mapping[str, Any] | str) -> str:
    """The arguments of a call as JSON."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _ended(answer: Answer) -> str:
    return answer.ended or ("tool_calls" if answer.calls else "stop")


def _error(answer: Answer) -> bytes:
    error = {"message": answer.content or "as the script says", "type": "scripted_error", "param": None, "code": None}
    return json.dumps({"type": "error", "error": error}).encode()


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
