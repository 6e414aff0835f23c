"""The MCP server of one memory: tools, resources, prompts, and instructions that carry the index. Floor 6."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import mcp_types as types
from mcp.server import InitializationOptions, NotificationOptions, Server
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from mdmemory import __version__
from mdmemory.agent.instructions import instructions
from mdmemory.agent.recalling import quoted_for_model, recall
from mdmemory.care.doctor import examine
from mdmemory.errors import MdmemoryError
from mdmemory.folder.any_folder import Folder
from mdmemory.mcp_server.news import News
from mdmemory.mcp_server.resources import Resources
from mdmemory.mcp_server.tools import Tools
from mdmemory.memory import Memory
from mdmemory.render import render

logger = logging.getLogger("mdmemory")
Context = ServerRequestContext[Any, Any]
_GREETINGS: Final = ("initialize", "server/discover")
_PROMPTS: Final[Mapping[str, tuple[str, str, str]]] = {  # what it does, its argument, what that is
    "recall": ("What the memory knows about something", "query", "What it is about"),
    "remember": ("Have something saved in the memory", "what", "What to remember"),
    "review": ("Go through the memory and tidy it up", "", ""),
}


class MemoryServer(Server[None]):
    """A server that tells every client of the protocol up to 2025, too, that its list of resources may change."""

    news: News
    """What it tells of the folder."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *args: Any, **more: Any
    ) -> InitializationOptions:
        """What a client is told at the handshake."""
        return super().create_initialization_options(
            notification_options or NotificationOptions(resources_changed=True), *args, **more
        )


def mcp_server(memory: Memory) -> MemoryServer:
    """The server of an open memory, for `serve_stdio`, `serve_http`, or any other transport of the SDK."""
    folder = memory.folder
    tools, resources, news, prompts = Tools(folder), Resources(folder), News(folder), Prompts(folder)

    @asynccontextmanager
    async def lifespan(_: Server[None]) -> AsyncIterator[None]:
        async with news.told():
            yield

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        result = await tools.call(ctx, params)
        news.stir()
        return result

    server = MemoryServer(
        "mdmemory",
        version=__version__,
        title="Memory",
        lifespan=lifespan,
        on_list_tools=tools.list,
        on_call_tool=call_tool,
        on_list_resources=resources.list,
        on_list_resource_templates=resources.templates,
        on_read_resource=resources.read,
        on_subscribe_resource=news.subscribe,
        on_unsubscribe_resource=news.unsubscribe,
        on_subscriptions_listen=news.listen,
        on_list_prompts=prompts.list,
        on_get_prompt=prompts.get,
    )

    async def guard(ctx: Context, call_next: CallNext) -> HandlerResult:
        """Keep the instructions true, know who is connected, and let no error tell of the host."""
        try:
            if ctx.method in _GREETINGS:
                server.instructions = await _instructions(folder)
            news.meet(ctx)
            return await call_next(ctx)
        except MdmemoryError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        except (MCPError, ValidationError):
            raise
        except Exception as error:  # its text might show a host path to the client
            logger.exception("%s failed", ctx.method)
            raise MCPError(types.INTERNAL_ERROR, "The memory server failed at this; its log says why.") from error

    server.middleware.append(guard)
    server.news = news
    return server


async def serve_stdio(memory: Memory) -> None:
    """Serve one client over stdin and stdout, until it closes them."""
    server = mcp_server(memory)
    server.instructions = await _instructions(memory.folder)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


class Prompts:
    """What a person picks in their client: recall, remember, review."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    async def list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        """The three prompts, with their argument."""
        prompts = [
            types.Prompt(
                name=name,
                description=about,
                arguments=[types.PromptArgument(name=argument, description=meaning, required=True)] if argument else None,
            )
            for name, (about, argument, meaning) in _PROMPTS.items()
        ]
        return types.ListPromptsResult(prompts=prompts)

    async def get(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """The text of a prompt.

        Raises:
            MCPError: no such prompt, or without its argument.
        """
        about, argument, _ = _PROMPTS.get(params.name, ("", "", ""))
        given = (params.arguments or {}).get(argument, "").strip()
        if not about or (argument and not given):
            said = f"The prompt {params.name} needs {argument}." if about else f"There is no prompt {params.name!r:.40}."
            raise MCPError(types.INVALID_PARAMS, said)
        text = types.TextContent(text=await self._text(params.name, given))
        return types.GetPromptResult(description=about, messages=[types.PromptMessage(role="user", content=text)])

    async def _text(self, name: str, given: str) -> str:
        folder = self.folder
        own = folder.config.prompts_dir
        if name == "recall":
            passages = quoted_for_model(folder, await recall(folder, given))
            return render("prompt_recall", own, query=given, passages=passages)
        if name == "remember":
            return render("prompt_remember", own, what=given)
        findings = [f"{found.path}: {found.message}" for found in await examine(folder)]
        return render("prompt_review", own, index=(await folder.prompt_index()).text.strip(), findings=findings)


async def _instructions(folder: Folder) -> str:
    try:
        await folder.refresh()
        return await instructions(folder)
    except MdmemoryError as error:
        return f"There is a memory, but it can't be looked at now: {error}"
