"""Write-back: what is worth remembering of a session is drawn from its journal, awaited or in the background. Floor 4."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from mdmemory.agent.drafts import Outcome
from mdmemory.agent.extractor import Extraction, extract, pending, read_forgotten, sayings
from mdmemory.agent.summary import mark_entry, summary_of
from mdmemory.agent.waiting import Proposing, read_waiting
from mdmemory.errors import MdmemoryError, ModelUnavailable
from mdmemory.files.changes import Replace
from mdmemory.files.journal import MARK, file_of
from mdmemory.folder.any_folder import Folder, home_only
from mdmemory.folder.proposals.proposal import extractor_of
from mdmemory.models import Model, Reply

logger = logging.getLogger("mdmemory")
SUMMARY: Final = "summary of a long conversation"
When = Literal["off", "awaited", "background"]
"""Whether memories are drawn from a conversation: not at all, before `finish` returns, or after it."""


@dataclass(frozen=True, slots=True)
class WriteBackStatus:
    """What write-back has done in a session.

    Args:
        outcomes: what became of each memory that was proposed.
        model_calls: how often the model was asked.
        degraded: None, or `degraded: …` with why the last try failed; it is tried again after the next turn.
    """

    outcomes: tuple[Outcome, ...] = ()
    model_calls: int = 0
    degraded: str | None = None


class WriteBack:
    """Draws memories from one session's journal; they go to the home alone, whatever else is mounted.

    Args:
        model: is asked what to remember.
        when: see `When`; without a model nothing ever happens.
    """

    def __init__(self, folder: Folder, session: str, model: Model | None, when: When = "background") -> None:
        self.folder, self.session, self.model = home_only(folder), session, model
        self.when: When = when if model is not None and not self.folder.is_read_only else "off"
        self.status = WriteBackStatus()
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, least: int = 1) -> list[Extraction]:
        """Extract until fewer than `least` messages are left, and bring the summary of a long conversation up to date.

        Raises:
            MdmemoryError: what was taken until then stays taken; the rest is taken next time.
        """
        done: list[Extraction] = []
        async with self._lock:
            while len(pending(messages := await self.folder.journals.messages(self.session))) >= least:
                try:
                    async with asyncio.timeout(self.folder.config.extract_timeout_s):
                        extraction = await extract(self.folder, self._ask, self.session, messages)
                except TimeoutError as error:
                    raise ModelUnavailable("the model did not answer in time") from error
                if extraction is None:
                    break
                await self.folder.journals.append(self.session, [extraction.mark])
                done.append(extraction)
                self.status = replace(self.status, outcomes=(*self.status.outcomes, *extraction.outcomes))
            if done:
                await self._summarise()
        return done

    async def _ask(self, messages: Sequence[Mapping[str, Any]], *, schema: Mapping[str, Any] | None = None) -> Reply:
        assert self.model is not None  # without one it is "off"
        self.status = replace(self.status, model_calls=self.status.model_calls + 1)
        return await self.model(messages, schema=schema)

    async def after_turn(self, tell: Callable[[str], None]) -> None:
        """Extract when enough was said: before this returns, or in a task that `drain` waits for.

        Args:
            tell: is told what went wrong, if anything, as soon as it is known.
        """
        if self.when == "awaited":
            await self._try(tell)
        elif self.when == "background":
            task = asyncio.create_task(self._try(tell), name=f"mdmemory write-back {self.session}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        """Wait for what runs in the background, for at most `extract_timeout_s`; what is then not done stays for the next time."""
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=self.folder.config.extract_timeout_s)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    async def _try(self, tell: Callable[[str], None]) -> None:
        """The edge of a background task: no error escapes it."""
        try:
            await self.run(self.folder.config.extract_every)
        except Exception as error:  # any callable can be a model, and no error of its may break a reply or a program's end
            expected = isinstance(error, MdmemoryError)
            logger.warning("nothing was drawn from session %s: %s", self.session, error, exc_info=not expected)
            problem = f"what was said is not in the memory yet, only in the journal: {error}"
            self.status = replace(self.status, degraded=f"degraded: {problem}")
            tell(problem)
        else:
            self.status = replace(self.status, degraded=None)

    async def _summarise(self) -> None:
        over = self.folder.config.summary_over
        messages = await self.folder.journals.messages(self.session)
        if not over or sum(1 for _ in sayings(messages)) <= over:
            return
        marks = [message for message in messages if message.role == MARK]
        forgotten = await read_forgotten(self.folder)
        waiting = await read_waiting(self.folder)
        change = await summary_of(self.folder, self.session, file_of(self.session, messages[0].at), marks, forgotten, waiting)
        if change is None:
            return
        if self.folder.config.extract == "apply":
            await self.folder.apply([change], extractor_of(self.session), SUMMARY)
            return
        proposing = Proposing(self.folder, self.session, waiting)
        before = {change.path: change.base_data} if isinstance(change, Replace) and change.base_data is not None else {}
        await proposing.add({change.path: change.data}, before, [mark_entry(self.session, mark) for mark in marks], SUMMARY)
        await proposing.keep()
