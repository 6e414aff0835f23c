"""Whose reply ends a run of the OpenAI Agents SDK: the agent's, or that of another to whom it hands the conversation. Floor 7."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import copy
from functools import partial
from typing import Any

from mdmemory.adapters.connection import extra

with extra("openai-agents"):
    from agents import Agent, AgentHooks, Handoff, handoff

End = Callable[[Any], Awaitable[None]]


def watched(agent: Agent[Any], end: End) -> Agent[Any]:
    """A copy of an agent that tells its final output, and so do those to whom it hands over; its own hooks are called, too."""
    hooks: Any = copy(agent.hooks) or AgentHooks()
    hooks.on_end = partial(_on_end, end, hooks.on_end)
    return agent.clone(hooks=hooks, handoffs=[_followed(each, end) for each in agent.handoffs])


async def _on_end(end: End, own: Callable[..., Awaitable[None]], context: Any, agent: Agent[Any], output: Any) -> None:
    await end(output)
    await own(context, agent, output)


def _followed(to: Agent[Any] | Handoff[Any, Any], end: End) -> Handoff[Any, Any]:
    """A handoff to a watched copy, which is made when it comes to that: agents may hand over in a circle."""
    followed = copy(to) if isinstance(to, Handoff) else handoff(to)
    own = followed.on_invoke_handoff

    async def invoke(context: Any, arguments: str) -> Agent[Any]:
        return watched(await own(context, arguments), end)

    followed.on_invoke_handoff = invoke
    return followed
