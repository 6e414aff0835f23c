"""A loop of your own on the OpenAI SDK, with a memory: python examples/own_loop_openai.py BASE_URL MODEL FOLDER MESSAGE ..."""

import asyncio
import sys

from openai import AsyncOpenAI

import mdmemory


async def reply(client: AsyncOpenAI, model: str, session: mdmemory.Session, messages: list, text: str) -> str:
    """Answer one message; the lines with `turn.` are all that the memory needs."""
    async with session.turn(text) as turn:
        messages[:1] = [{"role": "system", "content": await turn.system_prompt("You are a helpful assistant.")}]
        messages.append({"role": "user", "content": text})
        while True:
            if hint := await turn.take_hint():  # waits for it before the first call only, and not long
                messages.append({"role": "user", "content": str(hint)})
            answer = await client.chat.completions.create(model=model, messages=messages, tools=turn.tools.openai())
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls or []:
                result = await turn.tools.call(call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result.text})
            if not message.tool_calls:
                await turn.finish(message.content or "")
                return message.content or ""


async def main(base_url: str, model: str, folder: str, *texts: str) -> None:
    """Hold a conversation; the key comes from OPENAI_API_KEY."""
    messages: list = []
    async with AsyncOpenAI(base_url=base_url) as client, mdmemory.open_memory(folder) as memory:
        for text in texts:
            print(await reply(client, model, memory.session("own-loop"), messages, text))


asyncio.run(main(*sys.argv[1:]))
