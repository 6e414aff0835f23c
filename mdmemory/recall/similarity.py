"""Passages by the cosine of vectors that an injected `embed` makes; the core has no model of its own. Floor 2."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mdmemory.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Embed = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]
"""Texts to vectors of one length."""
BATCH = 64


class Vectors:
    """The vectors of every passage, kept by the etag of its file: what has not changed is never embedded again.

    Raises:
        ConfigError: there is no numpy.
    """

    def __init__(self, embed: Embed) -> None:
        try:
            import numpy  # noqa: F401  # better missed now than in a search
        except ModuleNotFoundError:
            raise ConfigError("Config.embed needs numpy. Install it: pip install 'mdmemory[embed]'") from None
        self._embed = embed
        self._kept: dict[str, NDArray[Any]] = {}

    def missing(self, keys: Mapping[str, str]) -> list[str]:
        """The paths whose key has no vectors yet; those of other keys are dropped."""
        wanted = set(keys.values())
        self._kept = {key: vectors for key, vectors in self._kept.items() if key in wanted}
        return [path for path, key in keys.items() if key not in self._kept]

    async def add(self, texts: Mapping[str, Sequence[str]]) -> None:
        """Embed the passages of files.

        Args:
            texts: a file's key to its passages.
        """
        flat = [text for passages in texts.values() for text in passages]
        vectors: list[Sequence[float]] = []
        for start in range(0, len(flat), BATCH):
            vectors += await self._embed(flat[start : start + BATCH])
        if len(vectors) != len(flat):
            raise ValueError(f"embed gave {len(vectors)} vectors for {len(flat)} texts")
        start = 0
        for key, passages in texts.items():
            self._kept[key] = _unit_length(vectors[start : start + len(passages)])
            start += len(passages)

    async def similar(self, query: str, keys: Mapping[str, str], limit: int) -> dict[str, list[float]]:
        """The cosine of every passage of the nearest files, 0 where it is negative."""
        (query_vector,) = _unit_length(await self._embed([query]))
        found = {}
        for path, key in keys.items():
            vectors = self._kept.get(key)
            if vectors is not None and len(vectors):
                found[path] = (vectors @ query_vector).clip(0, 1)
        nearest = sorted(found, key=lambda path: (-float(found[path].max()), path))[:limit]
        return {path: [float(cosine) for cosine in found[path]] for path in nearest if found[path].max() > 0}


def _unit_length(vectors: Sequence[Sequence[float]]) -> NDArray[Any]:
    import numpy as np

    if not len(vectors):
        return np.zeros((0, 1))
    array = np.asarray(vectors, dtype=np.float32)
    length = np.linalg.norm(array, axis=1, keepdims=True)
    result: NDArray[Any] = array / np.where(length == 0, 1, length)
    return result
