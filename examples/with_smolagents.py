"""An agent of smolagents with a memory: python examples/with_smolagents.py MODEL FOLDER MESSAGE ..."""

import os
import sys

from smolagents import OpenAIModel, ToolCallingAgent

from mdmemory.adapters import bridge
from mdmemory.adapters.smolagents import with_memory


def main(name: str, folder: str, *texts: str) -> None:
    """Hold a conversation; the key comes from OPENAI_API_KEY."""
    model = OpenAIModel(name, api_base=os.environ.get("OPENAI_BASE_URL"))
    with bridge.open_memory(folder) as memory:
        agent = with_memory(ToolCallingAgent([], model, verbosity_level=0), memory)
        for number, text in enumerate(texts):
            print(agent.run(text, reset=number == 0))


main(*sys.argv[1:])
