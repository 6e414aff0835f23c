"""The memory in a graph of LangGraph: a node that retrieves and one that saves. Floor 7."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Unpack

from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.connection import Connection, Options, Run, extra
from mdmemory.memory import Memory

with extra("langgraph"):
    from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
    from langchain_core.runnables import RunnableLambda
    from langgraph.config import get_config

HINT = "memory"
"""The name of the messages that are hints."""


class MemoryNodes(NamedTuple):
    """Two nodes for a graph whose state has `messages`: `retrieve` adds the hint, `save` puts what was said into the journal."""

    retrieve: RunnableLambda[Any, Any]
    save: RunnableLambda[Any, Any]


def memory_nodes(memory: Memory | BridgedMemory, *, session: str | None = None, **options: Unpack[Options]) -> MemoryNodes:
    """The nodes, for calls of either kind: `retrieve` before the model, `save` behind it.

    Args:
        memory: an open one; for `invoke` and `stream`, one from `mdmemory.adapters.bridge`.
        session, options: see `Connection`; a conversation is LangGraph's thread.
    """
    connection = Connection(memory, session, "", options)

    async def retrieve(state: Mapping[str, Any]) -> dict[str, Any]:
        run = await begin(connection, state["messages"])
        async with run:
            hint = await run.hint()
        await run.cancel()
        return {"messages": hint_message(hint)}

    async def save(state: Mapping[str, Any]) -> dict[str, Any]:
        await end(await begin(connection, state["messages"]), state["messages"])
        return {"messages": []}

    return MemoryNodes(
        RunnableLambda(lambda state: connection.run(retrieve(state)), retrieve, name="retrieve"),
        RunnableLambda(lambda state: connection.run(save(state)), save, name="save"),
    )


def hint_message(hint: str) -> list[HumanMessage]:
    """The hint as the state gets it, if there is one."""
    return [HumanMessage(hint, name=HINT)] if hint else []


async def begin(connection: Connection, messages: Sequence[AnyMessage]) -> Run:
    """Begin a run with the last message of the user; it may have begun before."""
    message = messages[_last_said(messages)]
    is_first = [one.type for one in messages if one.type in ("human", "ai")] == ["human"]
    thread = get_config().get("configurable", {}).get("thread_id")
    return await connection.begin(message.text, thread, message.id, is_first=is_first)


async def end(run: Run, messages: Sequence[AnyMessage]) -> None:
    """End a run with the last message, after the calls of tools and what they answered."""
    for message in messages[_last_said(messages) :]:
        if isinstance(message, AIMessage) and message.tool_calls:
            calls = [(call["id"] or "", call["name"], json.dumps(call["args"])) for call in message.tool_calls]
            run.called(calls, message.text)
        elif isinstance(message, ToolMessage):
            run.answered(message.tool_call_id, message.text)
    await run.finish(messages[-1].text)


def _last_said(messages: Sequence[AnyMessage]) -> int:
    return max(at for at, message in enumerate(messages) if isinstance(message, HumanMessage) and message.name != HINT)
