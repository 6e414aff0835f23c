"""What drawing memories in the background adds to a reply, beside the same replies without it; both folders have the same files."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from conversation_server import Server
from conversation_turns import Turn
from counting import CountingBackend
from timing import Figure, Used, compare, pairs, used_by

from mdmemory import Config, Session, open_memory
from mdmemory.backends.local import LocalBackend
from mdmemory.backends.protocol import Append, Op
from mdmemory.files.memory_file import new_file


class Commits(CountingBackend):
    """Keeps what was committed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(LocalBackend(folder))
        self.folder = folder
        self.commits: list[Sequence[Op]] = []

    async def commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
        """Keep, and commit."""
        self.commits.append(ops)
        return await super().commit(commit_id, ops)


def reply_figures(turns: Sequence[Turn], rounds: int) -> list[Figure]:
    """Commits and calls of a model before the reply is out, and its time; memories are drawn after every turn."""
    commits, calls = list[int](), list[int]()
    with tempfile.TemporaryDirectory() as place, asyncio.Runner() as runner, Server(turns, saves=False) as server:
        model, config = f"openai:scripted@{server.base_url}", Config(extract_every=1)
        backends = Commits(Path(place) / "background"), Commits(Path(place) / "off")
        for backend in backends:
            write_files(backend.folder, turns)
        opened = [open_memory(backend, model=model, config=config) for backend in backends]
        drawing, off = (runner.run(each.__aenter__()) for each in opened)
        # in the mode `agent`, nothing else asks a model
        drawing_session = drawing.session("background", mode="agent")
        off_session = off.session("off", mode="agent", write_back="off")

        def with_drawing(number: int) -> Used:
            asked, turn = len(server.calls), turns[number % len(turns)]
            used = used_by(lambda: commits.append(runner.run(reply(drawing_session, turn, backends[0]))))
            calls.append(len(server.calls) - asked)
            runner.run(drawing_session.write_back.drain())
            return used

        def without(number: int) -> Used:
            return used_by(lambda: runner.run(reply(off_session, turns[number % len(turns)], backends[1])))

        measured = pairs(with_drawing, without, rounds)
        drawn = drawing_session.status
        for each in opened:
            runner.run(each.__aexit__(None, None, None))
    if drawn.degraded or drawn.model_calls != rounds + 1:
        raise RuntimeError(f"memories were to be drawn after each of {rounds + 1} turns: {drawn}")
    return [
        Figure("appends at the end of a reply, memories drawn in the background", max(commits), 1),
        Figure("calls of a model before that reply is out", max(calls), 0),
        compare("a reply with memories drawn in the background ÷ one without", measured, 1.2),
    ]


def write_files(folder: Path, turns: Sequence[Turn]) -> None:
    """All facts as memory files, so that the model finds nothing new: both sides then differ in nothing but the drawing."""
    for fact in filter(None, (turn.tells for turn in turns)):
        path = folder / fact.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(new_file(fact.name, fact.about, fact.type, fact.body))


async def reply(session: Session, turn: Turn, backend: Commits) -> int:
    """One turn; returns how many commits its end took, which may do nothing but append."""
    async with session.turn(turn.user) as running:
        await running.system_prompt()
        before = len(backend.commits)
        await running.finish(turn.reply)
    ends = backend.commits[before:]
    if not all(isinstance(op, Append) for ops in ends for op in ops):
        raise RuntimeError(f"the end of a reply does more than append: {ends}")
    return len(ends)
