"""Run an evaluation: a folder for each conversation, a search for each question. Floor 6."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mdmemory import __version__
from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.protocol import ABSENT, Put
from mdmemory.config import Config
from mdmemory.errors import Conflict, InvalidArguments
from mdmemory.evals.conversations import Conversation, session_file
from mdmemory.evals.measures import Result, result_of, summary
from mdmemory.folder.opening import backend_of
from mdmemory.memory import Memory, open_memory

MAX_PASSAGES = 1_000
_START = '{"of": '
_NOT_EMPTY = (
    "The memory for a conversation holds something else. Nothing was written: name an empty one, with {conversation} in it."
)
Progress = Callable[[int], None]
"""Told how many questions were just answered."""


async def evaluate(
    conversations: Sequence[Conversation],
    *,
    config: Config | None = None,
    keep: str | PathLike[str] | None = None,
    on: str | None = None,
    progress: Progress = lambda _: None,
) -> dict[str, Any]:
    """Measure evidence recall by session and by turn.

    Args:
        keep: a file that takes each conversation's results, one line each; those that it has are not measured again, unless
            the conversation, the settings or the version of mdmemory are others.
        on: where the memories are made, with `{conversation}` for its id, such as `postgres:///test?folder=eval/{conversation}`;
            they stay there. None for this process.

    Returns:
        `questions`, and for `session` and `turn` the measures of `summary`, 0 to 1.

    Raises:
        InvalidArguments: a memory of `on` holds something else; it is left as it is.
    """
    path = None if keep is None else Path(keep)
    done = _kept(path)
    sessions, turns = list[Result](), list[Result]()
    for conversation in conversations:
        mark = _mark(conversation, config, on)
        if mark in done:
            progress(len(conversation.questions))
        else:
            done[mark] = await _conversation(conversation, config, on, progress)
            if path is not None:
                with path.open("a", encoding="utf-8") as file:
                    file.write(f"{_START}{json.dumps(mark)}, {json.dumps(_as_json(done[mark]))[1:]}\n")
        sessions += done[mark][0]
        turns += done[mark][1]
    return {"questions": len(sessions), "session": summary(sessions), "turn": summary(turns)}


async def _conversation(
    conversation: Conversation, config: Config | None, on: str | None, progress: Progress
) -> tuple[list[Result], list[Result]]:
    if not conversation.questions:
        return [], []
    backend = MemoryBackend() if on is None else backend_of(_place(on, conversation.id))
    lines, names = dict[tuple[str, int], str](), dict[str, str]()
    files = []
    for session in conversation.sessions:
        data, places = session_file(session)
        path = f"session-{session.id}.md"
        names[path] = session.id
        lines.update(((path, line), turn) for line, turn in places.items())
        files.append(Put(path, data, ABSENT))
    try:
        if (await backend.scan()).files.keys() - names.keys():
            raise InvalidArguments(_NOT_EMPTY)
        await backend.commit(uuid.uuid4().hex, files)
    except (Conflict, InvalidArguments):
        await backend.close()
        raise InvalidArguments(_NOT_EMPTY) from None
    sessions, turns = list[Result](), list[Result]()
    async with open_memory(backend, config=config) as memory:
        await memory.folder.refresh()
        for question in conversation.questions:
            matches = await memory.folder.search(question.text, limit=len(files))
            sessions.append(result_of(question.category, [names[match.path] for match in matches], question.sessions))
            if question.turns:
                found = await _turns(memory, question.text, lines)
                turns.append(result_of(question.category, found, question.turns))
            progress(1)
            await asyncio.sleep(0)  # nothing else here waits: let Ctrl-C come through
    return sessions, turns


def _place(on: str, conversation: str) -> str:
    return on.replace("{conversation}", quote(conversation, safe="") if "://" in on else conversation)


async def _turns(memory: Memory, query: str, lines: Mapping[tuple[str, int], str]) -> list[str]:
    """The turns of the passages found, each once, the best first."""
    passages = await memory.folder.search_passages(query, limit=MAX_PASSAGES)
    spans = ((passage.path, line) for passage in passages for line in range(passage.line, passage.end_line + 1))
    return list(dict.fromkeys(lines[place] for place in spans if place in lines))


def _mark(conversation: Conversation, config: Config | None, on: str | None) -> str:
    """Names all that the results come from."""
    content = json.dumps(asdict(conversation), default=lambda value: sorted(value) if isinstance(value, frozenset) else str(value))
    return hashlib.sha256(f"{__version__} {config} {on} {content}".encode()).hexdigest()


def _kept(path: Path | None) -> dict[str, tuple[list[Result], list[Result]]]:
    if path is None or not path.exists():
        return {}
    found = {}
    lines, last_break, unfinished = path.read_bytes().rpartition(b"\n")
    try:
        for line in lines.splitlines():
            item = json.loads(line)
            found[item["of"]] = [Result(**each) for each in item["session"]], [Result(**each) for each in item["turn"]]
        if not unfinished.startswith(_START.encode()[: len(unfinished)]):
            raise ValueError("its end is not ours")
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidArguments(f"{path.name} does not hold the results of an evaluation; name another file") from error
    if unfinished:
        os.truncate(path, len(lines + last_break))
    return found


def _as_json(found: tuple[list[Result], list[Result]]) -> dict[str, Any]:
    return {"session": [asdict(each) for each in found[0]], "turn": [asdict(each) for each in found[1]]}
