"""Structured logs: a line of JSON for each request and each event, without texts, tokens or what files hold. Floor 7."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from pythonjsonlogger.json import JsonFormatter

from mdmemory.errors import MdmemoryError

requests: Final = logging.getLogger("mdmemory.service.requests")
MAX_CHARS: Final = 500


@dataclass(slots=True)
class Told:
    """What the log says of a request, filled in as it becomes known.

    Args:
        route: never the address itself, which names files.
        received, sent: bytes of the bodies.
    """

    id: str
    method: str
    route: str = "other"
    user: str = ""
    status: int = 0
    received: int = 0
    sent: int = 0
    is_stream: bool = False


current: ContextVar[Told | None] = ContextVar("mdmemory_request", default=None)


class Lines(JsonFormatter):
    """Log records as lines of JSON: of a message its first line, of an error its type and where it arose.

    What libraries say of an error may quote what a user sent; our own errors name no more than files.
    """

    def __init__(self) -> None:
        super().__init__(
            ["levelname", "name", "message"],
            rename_fields={"levelname": "level", "name": "logger", "message": "event", "exc_info": "error"},
            static_fields={"worker": os.getpid()},
            timestamp="time",
        )

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        told = current.get()
        if told is not None:
            record.request_id, record.user = told.id, told.user
        record.msg, record.args = record.getMessage().split("\n", 1)[0][:MAX_CHARS], ()
        return super().format(record)

    def formatException(self, ei: Any) -> str:
        """Where it arose, and of which type it is."""
        kind, error, trace = ei
        what = f"{kind.__name__}: {error}" if isinstance(error, MdmemoryError) else kind.__name__
        return "".join([*traceback.format_tb(trace), what])


def log_lines() -> None:
    """Have this process log lines of JSON to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("mdmemory").setLevel(logging.INFO)
    logging.getLogger("mcp").setLevel(logging.ERROR)  # below, it quotes what clients sent
