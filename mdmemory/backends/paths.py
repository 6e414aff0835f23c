"""Which paths a memory may have; checked once, before any backend sees them. Floor 1."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from mdmemory.errors import InvalidPath

MAX_PART_BYTES = 255
MAX_PATH_BYTES = 1024
# Control characters, halves of characters, line and paragraph separators, marks that make a name read other than it is written.
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028-\u202e\u2066-\u2069\ufeff]")


def check(path: str, *, hidden: bool = False) -> str:
    """Return the path as it is, if a memory may have it.

    Args:
        path: relative, with `/` between folders.
        hidden: allow a first part `.mdmemory`; only the history asks for it.

    Raises:
        InvalidPath: with the reason; the path itself is shown escaped and shortened.
    """
    reason = fault(path, hidden=hidden)
    if reason:
        raise InvalidPath(f"{_shown(path)} is not a usable path: {reason}. Use a relative path such as project/release-plan.md.")
    return path


def fault(path: str, *, hidden: bool = False) -> str | None:
    """Say why a memory may not have this path; None when it may."""
    if not path:
        return "it is empty"
    if path.startswith(("/", "~")) or path[1:3] in (":\\", ":/"):
        return "it must be relative to the memory folder"
    if "\\" in path:
        return "folders are separated by /"
    parts = path.split("/")
    if hidden and parts[0] == ".mdmemory" and len(parts) > 1:
        parts = parts[1:]
    for part in parts:
        if found := _part_fault(part):
            return found
    return _encoding_fault(path)


def _part_fault(part: str) -> str | None:
    if not part:
        return "it has an empty part"
    if part.startswith("."):
        if part in (".", ".."):
            return "it may not contain . or .. parts"
        return "names that begin with a dot are hidden and not part of the memory"
    if part.startswith("-"):
        return "a name may not begin with -"
    if part != part.strip():
        return "a name may not begin or end with a space"
    if _UNUSABLE.search(part):
        return "it contains a control or invisible character"
    return None


def _encoding_fault(path: str) -> str | None:
    encoded = path.encode()
    if len(encoded) <= MAX_PART_BYTES:
        return None
    if len(encoded) > MAX_PATH_BYTES or any(len(part) > MAX_PART_BYTES for part in encoded.split(b"/")):
        return f"a name may have at most {MAX_PART_BYTES} bytes and a path {MAX_PATH_BYTES}"
    return None


def _shown(path: str) -> str:
    text = path.encode("unicode_escape", "replace").decode("ascii") if not path.isprintable() else path
    return repr(text if len(text) <= 60 else text[:57] + "...")


def collision_key(path: str) -> str:
    """Paths with the same key look alike to a person or are one file on some disk: `A.md`/`a.md`, NFC/NFD, `a-b.md`/`A B.md`."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())
    return folded.replace(" ", "-").replace("_", "-")


def owner(path: str, prefixes: Iterable[str]) -> str:
    """The longest of these prefixes that a path begins with; one of them must be "", which every path does."""
    return max((prefix for prefix in prefixes if path.startswith(prefix)), key=len)
