"""rank-bm25 as its README has it: whole files, words at spaces, every file scored for each query."""

from __future__ import annotations

from pathlib import Path

from child import serve
from rank_bm25 import BM25Okapi


class Memory:
    """An index that knows nothing of changes."""

    async def build(self, folder: Path) -> None:
        """Read every file."""
        self.paths = sorted(folder.rglob("*.md"))
        self.names = [path.relative_to(folder).as_posix() for path in self.paths]
        self.index = BM25Okapi([path.read_text(encoding="utf-8").split() for path in self.paths])

    async def ask(self, query: str) -> list[str]:
        """The ten best."""
        return list(self.index.get_top_n(query.split(), self.names, n=10))


if __name__ == "__main__":
    serve(Memory())
