"""Names of memory files that are made from their content. Floor 1, pure."""

from __future__ import annotations

import unicodedata

MAX_SLUG_CHARS = 60


def slug(name: str) -> str:
    """A name as a file name without its ending: words joined by `-`, in whatever script."""
    folded = unicodedata.normalize("NFC", name.casefold())
    spaced = "".join(char if char.isalnum() or unicodedata.category(char).startswith("M") else " " for char in folded)
    return "-".join(spaced.split())[:MAX_SLUG_CHARS].strip("-") or "note"


def shortened(text: str, limit: int) -> str:
    """The text on one line, cut at a word when it is longer."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1].rsplit(' ', 1)[0]}…"
