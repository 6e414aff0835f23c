"""mem0 as its README has it: search before a reply, add after it; its store is Qdrant in this process. The argument is ADDRESS."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["MEM0_TELEMETRY"] = "False"  # read when it is imported

from child import serve
from mem0 import Memory as Mem0
from openai import OpenAI

ADDRESS, DIMENSIONS = sys.argv[1], int(sys.argv[2])
WHO = {"user_id": "user"}


class Memory:
    """The prompt holds the memories found and the user's message."""

    async def build(self, folder: Path) -> None:
        """An empty store; model and embeddings come from ADDRESS."""
        there = {"model": "scripted", "api_key": "none", "openai_base_url": ADDRESS}
        store = {"path": str(folder / "qdrant"), "embedding_model_dims": DIMENSIONS}
        self.client = OpenAI(base_url=ADDRESS, api_key="none")
        self.memory = Mem0.from_config(
            {
                "llm": {"provider": "openai", "config": there},
                "embedder": {"provider": "openai", "config": {**there, "embedding_dims": DIMENSIONS}},
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(folder / "history.db"),
            }
        )

    async def ask(self, query: str) -> list[str]:
        """A whole turn; returns the memories there are."""
        found = self.memory.search(query, filters=WHO, top_k=3)["results"]
        listed = "\n".join(f"- {entry['memory']}" for entry in found)
        system = f"You are a helpful AI. Answer the question based on query and memories.\nUser Memories:\n{listed}"
        said = [{"role": "user", "content": query}]
        answer = self.client.chat.completions.create(model="scripted", messages=[{"role": "system", "content": system}, *said])
        said.append({"role": "assistant", "content": answer.choices[0].message.content})
        self.memory.add(said, **WHO)
        return [entry["id"] for entry in self.memory.get_all(filters=WHO, top_k=1000)["results"]]


if __name__ == "__main__":
    serve(Memory())
