"""A loop of your own on OpenAI's Responses, streamed: python examples/own_loop_responses.py MODEL FOLDER MESSAGE ..."""

import asyncio
import sys

from openai import AsyncOpenAI

import mdmemory


async def reply(client: AsyncOpenAI, model: str, session: mdmemory.Session, items: list, text: str) -> None:
    """Answer one message; the lines with `turn.` are all that the memory needs."""
    items.append({"role": "user", "content": text})
    async with session.turn(text) as turn:
        tools = [{"type": "function", "strict": False, **tool["function"]} for tool in turn.tools.openai()]
        system = await turn.system_prompt("You are a helpful assistant.")
        while True:
            items += [{"role": "user", "content": str(hint)}] if (hint := await turn.take_hint()) else []
            request = {"instructions": system, "input": items, "tools": tools}
            async with client.responses.stream(model=model, store=False, **request) as stream:
                async for event in stream:
                    print(event.delta if event.type == "response.output_text.delta" else "", end="", flush=True)
                answer = await stream.get_final_response()
            items += [item.model_dump(include=item.model_fields_set) for item in answer.output]
            for call in (calls := [item for item in answer.output if item.type == "function_call"]):
                result = await turn.tools.call(call.name, call.arguments)
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": result.text})
            if not calls:
                return await turn.finish(answer.output_text)


async def main(model: str, folder: str, *texts: str) -> None:
    """Hold a conversation; the key comes from OPENAI_API_KEY."""
    items: list = []
    async with AsyncOpenAI() as client, mdmemory.open_memory(folder) as memory:
        for text in texts:
            print(await reply(client, model, memory.session("own-loop"), items, text) or "")


asyncio.run(main(*sys.argv[1:]))
