"""Search by several short keywords: merged, each file once, the best first, with the passage that fits. Floor 4."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from mdmemory.backends.protocol import File
from mdmemory.errors import MdmemoryError
from mdmemory.folder.any_folder import Folder
from mdmemory.recall.ranking import Match
from mdmemory.render import inline, quoted

logger = logging.getLogger("mdmemory")
DEFAULT_FILES = 5
MAX_KEYWORDS = 20
MAX_EXCERPT_CHARS = 600


async def search_keywords(
    folder: Folder, keywords: Sequence[str], limit: int, filters: Mapping[str, Any]
) -> list[tuple[Match, float]]:
    """The files that answer any of the keywords, those that answer more of them first.

    Args:
        filters: as `MemoryFolder.search` has them.

    Returns:
        Each file's best match, and the mean (0-1) of its scores over all keywords.

    Raises:
        MdmemoryError: every keyword's search failed; where only some did, the others count.
    """
    best: dict[str, Match] = {}
    totals: dict[str, float] = {}
    asked = list(dict.fromkeys(filter(None, (keyword.strip() for keyword in keywords))))[:MAX_KEYWORDS]
    failures: list[MdmemoryError] = []
    for keyword in asked:
        try:
            matches = await folder.search(keyword, limit=max(limit, DEFAULT_FILES) * 2, **filters)
        except MdmemoryError as error:
            failures.append(error)
            logger.warning("the search for one of %d keywords failed: %s", len(asked), error)
            continue
        for match in matches:
            totals[match.path] = totals.get(match.path, 0) + match.score
            best[match.path] = max(best.get(match.path, match), match, key=lambda match: match.score)
    if failures and len(failures) == len(asked):
        raise failures[0]
    order = sorted(best, key=lambda path: -totals[path])[:limit]
    return [(best[path], totals[path] / len(asked)) for path in order]


async def found(folder: Folder, matches: Sequence[tuple[Match, float]]) -> str:
    """What Search answers: a line a file, and its best passage quoted."""
    if not matches:
        return "No memory file has these words. Try other words, or Read . for the list of all."
    files = await folder.read_many([match.path for match, _ in matches])
    blocks = []
    for match, score in matches:
        head = f"{match.path} ({score:.2f}): {inline(match.name)} — {inline(match.description)}"
        file, span = files[match.path], match.explain.get("lines")
        if isinstance(file, File) and isinstance(span, tuple):
            lines = file.data.decode("utf-8", "replace").split("\n")
            head += f"\n{quoted(_cut(chr(10).join(lines[span[0] - 1 : span[1]]).strip()))}"
        blocks.append(head)
    return "\n\n".join(blocks)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_EXCERPT_CHARS else f"{text[:MAX_EXCERPT_CHARS]}… (cut)"
