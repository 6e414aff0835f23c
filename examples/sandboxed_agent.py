"""An agent whose memory lies in a sandbox: told something in one process, it knows it in the next.

python examples/sandboxed_agent.py "e2b://base?memory=notes"
python examples/sandboxed_agent.py "docker://busybox?volume=notes"
"""

import asyncio
import subprocess
import sys

from mdmemory import ScriptedModel, open_memory

NOTE = "---\nname: Where the user lives\ndescription: home city, walks, food\ntype: user\n---\n\nLives in Hangzhou.\n"


async def learn(location: str) -> None:
    async with open_memory(location) as memory, memory.session().turn("Remember that I live in Hangzhou.") as turn:
        await turn.system_prompt("You are a travel agent.")
        saved = await turn.tools.call("Write", {"file_path": "user/home.md", "content": NOTE})  # a model would ask for this
        print(saved.text)
        await turn.finish("I will remember.")


async def answer(location: str) -> None:
    picks = ScriptedModel([{"files": [{"path": "user/home.md", "reason": "a walk starts from home"}]}])
    async with open_memory(location, model=picks) as memory, memory.session().turn("Where can I walk tonight?") as turn:
        print((await turn.system_prompt("You are a travel agent.")).splitlines()[-1])  # the index
        print(await turn.take_hint(wait_s=10))  # goes to the model with the question
        await turn.finish("Along the West Lake.")


if __name__ == "__main__":
    if sys.argv[2:]:
        asyncio.run({"learn": learn, "answer": answer}[sys.argv[2]](sys.argv[1]))
    else:
        for act in ("learn", "answer"):
            subprocess.run([sys.executable, __file__, sys.argv[1], act], check=True)
