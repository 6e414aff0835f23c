"""An agent's calls, for tests: `call` must succeed, `refused` must not."""

from __future__ import annotations

from mdmemory import Toolset

ROLE = "---\nname: Role\ndescription: what the user does for a living\ntype: user\n---\n\nA surveyor.\n"


async def call(tools: Toolset, name: str, **arguments: object) -> str:
    """Call a tool that must succeed."""
    result = await tools.call(name, arguments)
    assert not result.is_error, result.text
    return result.text


async def refused(tools: Toolset, name: str, **arguments: object) -> str:
    """Call a tool that must refuse."""
    result = await tools.call(name, arguments)
    assert result.is_error, result.text
    return result.text
