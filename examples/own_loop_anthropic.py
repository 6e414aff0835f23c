"""Anthropic's tool runner with a memory: python examples/own_loop_anthropic.py MODEL FOLDER MESSAGE ..."""

import asyncio
import sys

from anthropic import AsyncAnthropic, beta_async_tool

import mdmemory


def runnable(tool: mdmemory.Tool, turn: mdmemory.Turn) -> object:
    """A tool of the memory for the runner; a hint that has become ready stands at the end of its answer."""

    async def call(**arguments: object) -> str:
        result = await turn.tools.call(tool.name, arguments)
        hint = await turn.take_hint()
        return f"{result.text}\n\n{hint}" if hint else result.text

    return beta_async_tool(call, name=tool.name, description=tool.description, input_schema=dict(tool.input_schema))


async def main(model: str, folder: str, *texts: str) -> None:
    """Hold a conversation; the key comes from ANTHROPIC_API_KEY."""
    messages: list = []
    async with AsyncAnthropic() as client, mdmemory.open_memory(folder) as memory:
        for text in texts:
            async with memory.session("own-loop").turn(text) as turn:
                hint = await turn.take_hint()  # waits for it, and not long
                parts = [text, str(hint)] if hint else [text]
                messages.append({"role": "user", "content": [{"type": "text", "text": part} for part in parts]})
                system = await turn.system_prompt("You are a helpful assistant.")
                request = {"system": system, "messages": messages, "tools": [runnable(tool, turn) for tool in turn.tools.tools]}
                answer = await client.beta.messages.tool_runner(model=model, max_tokens=1_000, **request).until_done()
                reply = "".join(block.text for block in answer.content if block.type == "text")
                await turn.finish(reply)
            messages.append({"role": "assistant", "content": reply})
            print(reply)


asyncio.run(main(*sys.argv[1:]))
