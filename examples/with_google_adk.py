"""An agent of Google's ADK with a memory: python examples/with_google_adk.py MODEL FOLDER MESSAGE ..."""

import asyncio
import sys
import uuid

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types

import mdmemory
from mdmemory.adapters.google_adk import MemoryPlugin


async def main(model: str, folder: str, *texts: str) -> None:
    """Hold a conversation; the key comes from OPENAI_API_KEY."""
    agent = LlmAgent(name="assistant", instruction="You are a helpful assistant.", model=LiteLlm(f"openai/{model}"))
    async with mdmemory.open_memory(folder) as memory:
        runner = InMemoryRunner(app=App(name="example", root_agent=agent, plugins=[MemoryPlugin(memory)]))
        session = await runner.session_service.create_session(app_name="example", user_id="me", session_id=uuid.uuid4().hex)
        for text in texts:
            message = types.UserContent(text)
            async for event in runner.run_async(user_id="me", session_id=session.id, new_message=message):
                if event.is_final_response():
                    print(event.content.parts[0].text)


asyncio.run(main(*sys.argv[1:]))
