"""mdmemory in a plain agent loop: ADDRESS and `tools`, when the agent saves, or after how many messages memories are drawn."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from child import serve
from openai import AsyncOpenAI

from mdmemory import Config, open_memory

ADDRESS, MODE = sys.argv[1:]


class Memory:
    """One session; its prompts hold the current turn only, so that what is older comes from the memory."""

    async def build(self, folder: Path) -> None:
        """Open the folder; the model is the agent's own."""
        model, config = None, Config()
        if MODE != "tools":
            model, config = f"openai:scripted@{ADDRESS}", Config(extract_every=int(MODE))
        stack = AsyncExitStack()
        self.client = await stack.enter_async_context(AsyncOpenAI(base_url=ADDRESS, api_key="none"))
        self.memory = await stack.enter_async_context(open_memory(folder, model=model, config=config))
        self.session = self.memory.session("workshop", write_back="awaited")  # so that a turn's calls are known at its end

    async def ask(self, query: str) -> list[str]:
        """A whole turn; returns the memory files there are."""
        self.session.compacted()
        async with self.session.turn(query) as turn:
            system = await turn.system_prompt("You are a helpful assistant.")
            messages: list[Any] = [{"role": "system", "content": system}, {"role": "user", "content": query}]
            while True:
                if hint := await turn.take_hint(wait_s=5):
                    messages.append({"role": "user", "content": str(hint)})
                answer = await self.client.chat.completions.create(model="scripted", messages=messages, tools=turn.tools.openai())
                message = answer.choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                for call in message.tool_calls or ():
                    result = await turn.tools.call(call.function.name, call.function.arguments)
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": result.text})
                if not message.tool_calls:
                    break
            await turn.finish(message.content)
        return sorted(self.memory.folder.files)


if __name__ == "__main__":
    serve(Memory())
