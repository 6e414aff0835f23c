"""Run an evaluation: a folder for each conversation, a search for each question. Floor 6."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.protocol import ABSENT, Put
from mdmemory.config import Config
from mdmemory.errors import InvalidArguments
from mdmemory.evals.conversations import Conversation, session_file
from mdmemory.evals.measures import DEPTHS, Result, result_of, summary
from mdmemory.memory import Memory, open_memory

MAX_PASSAGES = 1_000
Progress = Callable[[int], None]
"""Told how many questions were just answered."""


async def evaluate(
    conversations: Sequence[Conversation],
    *,
    config: Config | None = None,
    keep: str | PathLike[str] | None = None,
    progress: Progress = lambda _: None,
) -> dict[str, Any]:
    """Measure evidence recall by session and by turn.

    Args:
        keep: a file that takes each conversation's results, one line each; those that it has are not measured again.

    Returns:
        `questions`, and for `session` and `turn` the measures of `summary`, 0 to 1.
    """
    path = None if keep is None else Path(keep)
    done = _kept(path)
    sessions, turns = list[Result](), list[Result]()
    for conversation in conversations:
        if conversation.id not in done:
            found = await _conversation(conversation, config)
            done[conversation.id] = found
            if path is not None:
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"id": conversation.id, **_as_json(found)}) + "\n")
        sessions += done[conversation.id][0]
        turns += done[conversation.id][1]
        progress(len(conversation.questions))
    return {"questions": len(sessions), "session": summary(sessions), "turn": summary(turns)}


async def _conversation(conversation: Conversation, config: Config | None) -> tuple[list[Result], list[Result]]:
    if not conversation.questions:
        return [], []
    backend, lines, names = MemoryBackend(), dict[tuple[str, int], str](), dict[str, str]()
    files = []
    for session in conversation.sessions:
        data, places = session_file(session)
        path = f"session-{session.id}.md"
        names[path] = session.id
        lines.update(((path, line), turn) for line, turn in places.items())
        files.append(Put(path, data, ABSENT))
    await backend.commit(conversation.id, files)
    sessions, turns = list[Result](), list[Result]()
    async with open_memory(backend, config=config) as memory:
        await memory.folder.refresh()
        for question in conversation.questions:
            matches = await memory.folder.search(question.text, limit=len(files))
            sessions.append(result_of(question.category, [names[match.path] for match in matches], question.sessions))
            if question.turns:
                found = await _turns(memory, question.text, lines)
                turns.append(result_of(question.category, found, question.turns))
    return sessions, turns


async def _turns(memory: Memory, query: str, lines: Mapping[tuple[str, int], str]) -> list[str]:
    """The turns of the passages found, each once, the best first."""
    passages = await memory.folder.search_passages(query, limit=MAX_PASSAGES)
    spans = ((passage.path, line) for passage in passages for line in range(passage.line, passage.end_line + 1))
    return list(dict.fromkeys(lines[place] for place in spans if place in lines))


def _kept(path: Path | None) -> dict[str, tuple[list[Result], list[Result]]]:
    if path is None or not path.exists():
        return {}
    found = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            item = json.loads(line)
            found[item["id"]] = [Result(**each) for each in item["session"]], [Result(**each) for each in item["turn"]]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidArguments(f"{path.name} does not hold the results of an evaluation; name another file") from error
    return found


def _as_json(found: tuple[list[Result], list[Result]]) -> dict[str, Any]:
    return {"session": [asdict(each) for each in found[0]], "turn": [asdict(each) for each in found[1]]}


def markdown(title: str, measured: Mapping[str, Any]) -> str:
    """The measures as a page, in percent."""
    first = ", ".join(map(str, DEPTHS))
    lines = [
        f"# {title}",
        "",
        f"{measured['questions']:,} questions. Evidence recall in percent, among the first {first} found:",
        "R, the mean share of the evidence; questions with any of it; with all of it. MRR: mean reciprocal rank of the first.",
    ]
    heads = ["", "questions", *(f"{name}@{depth}" for name in ("R", "any", "all") for depth in DEPTHS), "MRR"]
    for level in ("session", "turn"):
        found = measured[level]
        asked = sum(group["questions"] for group in found["categories"].values())
        lines += ["", f"## By {level}", "", f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
        for name, group in [("all", {"questions": asked, **found}), *found["categories"].items()]:
            figures = [f"{100 * group[kind][str(depth)]:.1f}" for kind in ("frac", "any", "all") for depth in DEPTHS]
            cells = [name, str(group["questions"]), *figures, f"{group['mrr']:.3f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
