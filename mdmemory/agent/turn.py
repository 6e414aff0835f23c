"""One turn: a user message and the reply to it, with its selection, its hints and its status. Floor 4.

Everything that belongs to one reply lives here, so that two replies on one folder cannot touch each other. A failure of the memory
never breaks a reply: it ends in `status.degraded`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mdmemory.agent.hints import Hint, make_hint
from mdmemory.agent.past_turns import note_turn
from mdmemory.agent.selector import Message, Pick, lexical_picks, query_of, select, shortlist
from mdmemory.agent.tools import Toolset
from mdmemory.errors import MdmemoryError
from mdmemory.files.journal import Message as JournalMessage
from mdmemory.files.journal import new_message

if TYPE_CHECKING:
    from mdmemory.agent.session import Session

logger = logging.getLogger("mdmemory")
NEAREST = 50  # lexical matches looked at: those already shown give way to the next


@dataclass(frozen=True, slots=True)
class TurnStatus:
    """What the memory did for one reply.

    Args:
        chosen: the files picked so far, by whom and why.
        lexical: the files that recall picked by their words, which are given when the model gives none in time.
        offered: the files whose headers the model was shown to choose from, the nearest by words first; none without a model.
        shown: paths that hints brought, in order.
        hint_calls: at which `take_hint` calls (1 is the first) a hint was given.
        waited_s: how long `take_hint` held up the reply in all.
        selector_s: how long the model took to choose; None while it is at it, or without a model.
        late: whether the first `take_hint` had to go on without the model's choice.
        model_calls: calls of the selector's model.
        tokens: estimated tokens that hints added to the conversation.
        degraded: None, or `degraded: …` with what went wrong; the reply went on without it.
    """

    chosen: tuple[Pick, ...] = ()
    lexical: tuple[Pick, ...] = ()
    offered: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    hint_calls: tuple[int, ...] = ()
    waited_s: float = 0.0
    selector_s: float | None = None
    late: bool = False
    model_calls: int = 0
    tokens: int = 0
    degraded: str | None = None


class Turn:
    """One user message and the reply to it; made by `session.turn(text)`."""

    def __init__(self, session: Session, text: str, id: str | None = None) -> None:
        self.text = text
        self.status = TurnStatus()
        self._session = session
        self._messages: Sequence[Message] = ()
        self._task: asyncio.Task[list[Pick] | None] | None = None
        self._lexical: list[Pick] = []
        self._looks = 0
        self._finished = False
        self._id, self._count = id, 0
        self._recorded: list[JournalMessage] = []
        """What is not in the journal yet."""
        self.tools = Toolset(session.folder, f"agent:{session.id}", session.seen, self._hint_after_tool, session.mode)

    async def start(self) -> Turn:
        """Look what changed in the folder, search it, set the selector to work, and write down what the user said."""
        self._messages = self._session.remember("user", self.text)
        if said := without(self.text, self._session.given):
            self._keep({"role": "user", "content": said})
        if self._session.folder.scanned:
            await asyncio.gather(self._look(), self._write())
        else:  # which conversations there are is not known yet
            await self._look()
            await self._write()
        return self

    async def _look(self) -> None:
        session = self._session
        try:
            await session.folder.refresh()
            if session.folder.away:
                self._degrade(session.folder.away)
            session.thaw_if_forgotten()
            if session.mode == "agent":  # which searches by itself
                return
            nearest = await session.folder.search(query_of(self._messages), limit=NEAREST)
        except MdmemoryError as error:
            self._degrade(str(error))
            return
        matches = [match for match in nearest if session.is_news(match.path)]
        self._lexical = lexical_picks(matches, session.folder.config.min_score)[: session.folder.config.hint_max_files]
        self.status = replace(self.status, lexical=tuple(self._lexical))
        if session.model is not None and session.folder.files:
            self._task = asyncio.create_task(self._select(nearest), name=f"mdmemory selector {session.id}")
            session.own(self._task)
        else:
            self.status = replace(self.status, chosen=tuple(self._lexical))

    async def _select(self, nearest: Sequence[Any]) -> list[Pick] | None:
        """The model's picks; None when it gave none to use. The edge of a background task: nothing may escape it."""
        session = self._session
        assert session.model is not None
        began = time.monotonic()
        self.status = replace(self.status, model_calls=self.status.model_calls + 1)
        try:
            near = [match.path for match in nearest]
            paths = shortlist(session.folder, near)
            shown = dict.fromkeys(paths)
            offered = dict.fromkeys([*(path for path in near if path in shown), *paths])
            self.status = replace(self.status, offered=tuple(offered))
            async with asyncio.timeout(session.folder.config.selector_timeout_s):
                picks = await select(session.model, self._messages, session.folder, paths)
        except Exception as error:  # any callable can be a model, and any of its errors must leave the reply alone
            expected = isinstance(error, (MdmemoryError, TimeoutError))
            logger.warning("the selector failed, lexical recall is used: %s", error, exc_info=not expected)
            what = "did not answer in time" if isinstance(error, TimeoutError) else f"failed: {error}"
            self._degrade(f"the selector {what}; lexical recall was used")
            return None
        finally:
            self.status = replace(self.status, selector_s=time.monotonic() - began)
        self.status = replace(self.status, chosen=tuple(picks))
        return picks

    async def system_prompt(self, base: str = "") -> str:
        """The system prompt: `base`, the instructions and the index; one text for the session, so that provider caches hold."""
        try:
            memory = await self._session.prompt()
        except MdmemoryError as error:
            self._degrade(str(error))
            return base
        if self._session.folder.index_problem:
            self._degrade(self._session.folder.index_problem)
        return f"{base}\n\n{memory}" if base else memory

    async def take_hint(self, wait_s: float | None = None) -> Hint | None:
        """The hint that is ready, or None; call it before every model call.

        Args:
            wait_s: how long the turn's first call may wait for the selector (default `config.hint_wait_s`); later ones only look.
        """
        self._looks += 1
        began = time.monotonic()
        try:
            return await self._next_hint(self._session.folder.config.hint_wait_s if wait_s is None else wait_s)
        except MdmemoryError as error:
            self._degrade(str(error))
            return None
        finally:
            self.status = replace(self.status, waited_s=self.status.waited_s + time.monotonic() - began)

    async def _next_hint(self, wait_s: float) -> Hint | None:
        if self._task is not None and self._looks == 1:
            await asyncio.wait([self._task], timeout=wait_s)
        picks: Sequence[Pick] = ()
        if self._task is not None and self._task.done():
            chosen = None if self._task.cancelled() else self._task.result()
            picks = self._take_lexical() if chosen is None else chosen
            self._task, self._lexical = None, []
        elif self._looks == 1 or self._task is None:
            self.status = replace(self.status, late=self._task is not None)
            picks = self._take_lexical()
        return await self._give(picks)

    def _take_lexical(self) -> list[Pick]:
        """The lexical picks, once."""
        picks, self._lexical = self._lexical, []
        if picks:
            self.status = replace(
                self.status, chosen=(*self.status.chosen, *(pick for pick in picks if pick not in self.status.chosen))
            )
        return picks

    async def _give(self, picks: Sequence[Pick]) -> Hint | None:
        session = self._session
        if session.mode == "agent":
            return None
        hint = await make_hint(session.folder, picks, session.shown, session.index_news())
        if hint is None:
            return None
        session.told(hint)
        self.status = replace(
            self.status,
            shown=(*self.status.shown, *(file.path for file in hint.files)),
            hint_calls=(*self.status.hint_calls, self._looks),
            tokens=self.status.tokens + hint.tokens,
        )
        return hint

    async def _hint_after_tool(self) -> str:
        """The pending hint at the end of a tool's answer, for a host that never takes hints itself (it has no place to do so)."""
        if self._looks:
            return ""
        if self._task is not None and not self._task.done():
            return ""
        hint = await self.take_hint(0)
        self._looks = 0
        return str(hint) if hint else ""

    def record(self, message: Mapping[str, Any]) -> None:
        """Tell the memory of a message the host added: the journal keeps it, and the selector sees what users and assistants said.

        Hints are left out of it, and so is the user's message that the turn began with.

        Args:
            message: as the OpenAI or Anthropic API has it, with tool calls and results.
        """
        said = without(message, self._session.given)
        role, content = said.get("role"), said.get("content")
        known = self._count == 1 and role == "user" and content == self.text
        if known or (content in ("", []) and said.keys() == {"role", "content"}):
            return
        if role in ("user", "assistant") and isinstance(content, str) and content:
            self._session.remember(role, content)
        self._keep(said)

    async def finish(self, reply: str) -> None:
        """End the turn with the reply: it goes into the journal with what was recorded, and a running selection is given up."""
        last = self._recorded[-1] if self._recorded else None
        if not self._finished and reply and not (last and last.role == "assistant" and last.text == reply):
            self.record({"role": "assistant", "content": reply})
        await self.cancel()
        await self._session.write_back.after_turn(self._degrade)

    async def cancel(self) -> None:
        """End the turn without a reply."""
        if not self._finished:
            note_turn(self._session.folder, self._session.id, self.status)
        self._finished = True
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task])
        await self._write()

    def _keep(self, said: Mapping[str, Any]) -> None:
        """Have a message written with the next append."""
        if not self._session.is_journaled:
            return
        id = self._id and (f"{self._id}-{self._count}" if self._count else self._id)
        self._count += 1
        try:
            self._recorded.append(new_message(said, id))
        except MdmemoryError as error:
            self._degrade(f"a message is not in the journal: {error}")

    async def _write(self) -> None:
        recorded, self._recorded = self._recorded, []
        if problem := await self._session.write(recorded):
            self._degrade(problem)

    def _degrade(self, what: str) -> None:
        if self.status.degraded is None:
            self.status = replace(self.status, degraded=f"degraded: {what}")


def without(value: Any, given: Sequence[str]) -> Any:
    """A message, or a part of one, without the texts that the memory itself has given, and without parts that were only those."""
    if isinstance(value, str):
        for text in given:
            value = value.replace(f"\n\n{text}", "").replace(text, "")
        return value
    if isinstance(value, Mapping):
        return {key: without(part, given) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [(part, without(part, given)) for part in value]
        return [left for part, left in parts if left == part or not (isinstance(left, dict) and left.get("text") == "")]
    return value
