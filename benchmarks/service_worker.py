"""A worker of the benchmark of the service: many sessions at once in one process, and the bare statements beside them."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import corpus
from psycopg_pool import AsyncConnectionPool
from service_users import mark, missing_and_crossed, place_of

from mdmemory import Memory, open_memory
from mdmemory.backends.postgres_pool import MAX_CONNECTIONS

SESSIONS = 64
TURNS = 3  # of each session in a round
STATEMENTS = 20


class Worker:
    """Holds the memories that are open, as a service does."""

    def __init__(self, url: str, users: int) -> None:
        self.url, self.users = url, users
        self.saved: defaultdict[int, set[str]] = defaultdict(set)
        self._memories: dict[int, asyncio.Future[Memory]] = {}
        self._opened = AsyncExitStack()
        self._numbers = itertools.count()
        self._questions = corpus.queries(500, 64)

    async def turns(self) -> list[float]:
        """One session: some turns of a user, each with one save; the seconds of each."""
        number, took = next(self._numbers), []
        user = number % self.users
        memory = await self._memory(user)
        session = memory.session(f"session-{number}")
        try:
            for turn_number in range(TURNS):
                began, saved = time.perf_counter(), mark(user, number, turn_number)
                turn = await session.turn(self._questions[(number + turn_number) % len(self._questions)])
                await turn.system_prompt("You help.")
                await turn.take_hint(wait_s=1)
                text = corpus.text(random.Random(number), 60)
                note = f"---\nname: {saved}\ndescription: what was learnt\ntype: project\n---\n{text}\n"
                done = await turn.tools.call("Write", {"file_path": f"learnt/{saved}.md", "content": note})
                await turn.finish(f"I have kept {saved}.")
                took.append(time.perf_counter() - began)
                if not done.is_error and not turn.status.degraded:
                    self.saved[user].add(saved)
        finally:
            await session.close()
        return took

    async def _memory(self, user: int) -> Memory:
        if user not in self._memories:
            opened = self._opened.enter_async_context(open_memory(place_of(self.url, user)))
            self._memories[user] = asyncio.ensure_future(opened)
        return await self._memories[user]

    async def close(self) -> None:
        """Close every memory."""
        await self._opened.aclose()


async def at_once(work: Callable[[], Awaitable[list[float]]]) -> dict[str, object]:
    """Have all sessions work at once; the seconds of each piece of it, of all together, and the CPU seconds of this process."""
    began, cpu = time.perf_counter(), _cpu()
    took = await asyncio.gather(*(work() for _ in range(SESSIONS)))
    return {"each": sorted(itertools.chain(*took)), "all": time.perf_counter() - began, "cpu": _cpu() - cpu}


async def run(url: str, users: int, rounds: int) -> dict[str, object]:
    """Measure turns and bare statements in turn."""
    worker, found = Worker(url, users), defaultdict[str, list[dict[str, object]]](list)
    async with AsyncConnectionPool(url, min_size=MAX_CONNECTIONS, max_size=MAX_CONNECTIONS, kwargs={"autocommit": True}) as pool:
        rows = itertools.count()

        def bare(statement: bytes) -> Callable[[], Awaitable[list[float]]]:
            async def ask() -> list[float]:
                took = []
                for _ in range(STATEMENTS):
                    began = time.perf_counter()
                    async with pool.connection() as connection:
                        await connection.execute(statement, {"row": next(rows) % 10_000})
                    took.append(time.perf_counter() - began)
                return took

            return ask

        cases = {
            "SELECT 1": bare(b"SELECT 1 + 0 * %(row)s::int"),
            "UPDATE": bare(b"UPDATE bare SET value = value + 1 WHERE id = %(row)s"),
            "turn": worker.turns,
        }
        for number in range(rounds + 1):
            for name in cases if number % 2 else reversed(cases):
                measured = await at_once(cases[name])
                if number:  # the first round only warms up
                    found[name].append(measured)
    await worker.close()
    missing, crossed = await missing_and_crossed(url, worker.saved)
    saved = sum(len(marks) for marks in worker.saved.values())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    turns = (rounds + 1) * SESSIONS * TURNS
    return {
        **found,
        "turns": turns,
        "saved": saved,
        "missing": missing,
        "crossed": crossed,
        "open": min(users, turns // TURNS),
        "mib": memory,
    }


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Run what the command line says: URL USERS ROUNDS FILE; the figures go into the file."""
    url, users, rounds, place = sys.argv[1:]
    Path(place).write_text(json.dumps(asyncio.run(run(url, int(users), int(rounds)))))
