"""bm25s as its README has it: whole files, English stop words and PyStemmer's English stems."""

from __future__ import annotations

from pathlib import Path

import bm25s
import Stemmer
from child import serve


class Memory:
    """An index that knows nothing of changes."""

    async def build(self, folder: Path) -> None:
        """Read every file."""
        paths = sorted(folder.rglob("*.md"))
        self.names = [path.relative_to(folder).as_posix() for path in paths]
        self.index, self.stemmer = bm25s.BM25(), Stemmer.Stemmer("english")
        self.index.index(self._tokens([path.read_text(encoding="utf-8") for path in paths]), show_progress=False)

    async def ask(self, query: str) -> list[str]:
        """The ten best that share a word."""
        found, scores = self.index.retrieve(self._tokens(query), k=min(10, len(self.names)), show_progress=False)
        return [self.names[place] for place, score in zip(found[0], scores[0], strict=True) if score > 0]

    def _tokens(self, text: str | list[str]) -> object:
        return bm25s.tokenize(text, stopwords="en", stemmer=self.stemmer, show_progress=False)


if __name__ == "__main__":
    serve(Memory())
