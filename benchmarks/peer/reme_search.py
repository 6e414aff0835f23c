"""ReMe's own search job over its index of a workspace, by words alone: the embedding model that it would also ask is left out."""

from __future__ import annotations

from pathlib import Path

from child import serve
from reme.config import resolve_app_config
from reme.reme import ReMe

NEEDED = ("tokenizer", "keyword_index", "tag_index", "file_graph", "file_chunker", "file_store")


class Memory:
    """A workspace whose index is brought up to date once; its watcher would keep it so."""

    async def build(self, folder: Path) -> None:
        """Index the folder as the workspace's digest."""
        quiet = {"enable_logo": False, "log_to_console": False, "log_to_file": False}
        config = resolve_app_config(workspace_dir=str(folder.parent), digest_dir=folder.name, log_config=False, **quiet)
        config["components"] = {name: config["components"][name] for name in NEEDED}
        loop = config["jobs"]["index_update_loop"]
        update = {**loop, "backend": "base", "steps": loop["steps"][:1]}
        config["jobs"] = {"index_update": update, "search": config["jobs"]["search"]}
        self.name, self.app = folder.name, ReMe(**config)
        await self.app.start()
        await self.app.run_job("index_update")

    async def ask(self, query: str) -> list[str]:
        """The files of the passages found, each once."""
        found = await self.app.run_job("search", query=query, limit=30)
        paths = (str(chunk["path"]).removeprefix(f"{self.name}/") for chunk in found.metadata["results"])
        return list(dict.fromkeys(paths))[:10]


if __name__ == "__main__":
    serve(Memory())
