"""Where the index and the memory files say different things. Floor 1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mdmemory.files.index import DEFAULT_LIMITS, Limits, Listed, Pointer, pointers, render_line, update

_SEPARATOR = re.compile(r"^[*_]*\s*(?:[—–:-]\s*)?")
_LABEL = re.compile(r"\[(?P<label>(?:\\.|[^\\\[\]]|\[[^\[\]]*\])*)\]\($|\[\[(?P<page>[^\[\]|]*)$")


@dataclass(frozen=True, slots=True)
class Fault:
    """One disagreement.

    Args:
        kind: `missing`: the file has no pointer, and the index has room for it; `dead`: a pointer line whose file is gone;
            `dead_link`: a link in prose to a file that is not there; `duplicate`: a further pointer line of a file;
            `differs`: a person's pointer line whose words are not the header's.
        path: the memory file.
        line: 1-based; None for `missing`.
        text: the line, or for `missing` the one that is to be.
    """

    kind: Literal["missing", "dead", "dead_link", "duplicate", "differs"]
    path: str
    line: int | None
    text: str


def drift(text: str, everything: Mapping[str, Listed], limits: Limits = DEFAULT_LIMITS) -> list[Fault]:
    """Every fault: those of the lines from top to bottom, then the files without a pointer by path.

    An `update` with every file and every dead path in `changed` mends what is `missing` and `dead`.
    """
    faults: list[Fault] = []
    found = pointers(text, everything)
    seen: set[str] = set()
    for pointer in found:
        path = pointer.target
        if path not in everything:
            faults.append(Fault("dead" if pointer.pure else "dead_link", path, pointer.line, pointer.text))
        elif _starts(pointer, everything[path]):
            if path in seen:
                faults.append(Fault("duplicate", path, pointer.line, pointer.text))
            elif _differs(pointer, everything[path]):
                faults.append(Fault("differs", path, pointer.line, pointer.text))
            seen.add(path)
    dead: dict[str, tuple[Listed | None, Listed | None]] = {fault.path: (None, None) for fault in faults if fault.kind == "dead"}
    repaired = update(text, dead | {path: (listed, listed) for path, listed in everything.items()}, everything, limits).text
    missing = {pointer.target for pointer in pointers(repaired, everything)} - {pointer.target for pointer in found}
    return faults + [Fault("missing", path, None, render_line(path, everything[path])) for path in sorted(missing)]


def _starts(pointer: Pointer, listed: Listed) -> bool:
    return pointer.pure or pointer.text == render_line(pointer.target, listed)


def _differs(pointer: Pointer, listed: Listed) -> bool:
    """Whether the words beside the link, where there are any, are others than ours."""
    ours = pointers(render_line(pointer.target, listed))[0]
    words, our_words = _words(pointer), _words(ours)
    return any(theirs and theirs != of_ours for theirs, of_ours in zip(words, our_words, strict=True))


def _words(pointer: Pointer) -> tuple[str, str]:
    """The link's text (of a wikilink its alias) and what stands after the link."""
    before, after = pointer.text[: pointer.start], pointer.text[pointer.end :]
    if pointer.style == "page":
        alias, _, rest = after.partition("]]")
        return alias.partition("|")[2].strip(), _SEPARATOR.sub("", rest).strip()
    label = _LABEL.search(before.rstrip("< \t"))
    return (label["label"] or "").strip() if label else "", _SEPARATOR.sub("", after.partition(")")[2]).strip()
