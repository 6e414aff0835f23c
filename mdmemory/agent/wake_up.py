"""The wake-up block: who the user is and what helps most, within a budget of tokens. Floor 4."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from mdmemory.agent.hints import MIN_FILE_TOKENS, body_of
from mdmemory.backends.protocol import File
from mdmemory.files.safety import instructions_in
from mdmemory.folder.any_folder import Folder
from mdmemory.folder.search import header_of
from mdmemory.render import estimate_tokens, moment, render

HEAD_BYTES = 1_200  # of a file, what frontmatter may take that is not shown
FILE_TOKENS = 10  # what a file takes at least


async def make_wake_up(folder: Folder, tokens: int) -> str:
    """The block, as of the folder's last `refresh`; empty when not even one file fits, or there is none.

    Files of type user come first, then the pinned, then feedback and project, the newest first in each; what has expired or is
    superseded stays out. What does not fit is cut at the end of a line, and the rest is only counted.
    """
    order = ranked(folder)
    wanted = _within(folder, order, tokens)
    found = await folder.read_many(wanted)
    frame, blocks = _Frame(folder, len(order)), list[Mapping[str, object]]()
    left = tokens - frame.tokens
    for path in wanted:
        file = found[path]
        if not isinstance(file, File) or not (body := body_of(path, file)):
            continue
        block = _block(folder, path, file.mtime_ns, body)
        if frame.cost(block) <= left:
            blocks.append(block)
            left -= frame.cost(block)
        elif left >= MIN_FILE_TOKENS and (start := frame.cut(block, left)):
            blocks.append(start)
            break
    while blocks and estimate_tokens(frame.text(blocks)) > tokens:  # a template of the user's may add up otherwise
        blocks.pop()
    return frame.text(blocks) if blocks else ""


def ranked(folder: Folder) -> list[str]:
    """The files that are valid today, the most useful first."""
    hidden = folder.outdated

    def rank(path: str) -> tuple[int, bool, int, str]:
        header = header_of(path, folder.files[path])
        group = 0 if header.type == "user" else 1 if header.pinned else 2 if header.type in ("feedback", "project") else 3
        return group, not header.pinned, -folder.files[path].mtime_ns, path

    return sorted((path for path, known in folder.files.items() if known.header and path not in hidden), key=rank)


def _within(folder: Folder, order: Sequence[str], tokens: int) -> list[str]:
    """As many of the first files as can matter for the budget."""
    found, room = list[str](), 4 * tokens  # a token is at most four bytes
    for path in order[: max(0, tokens // FILE_TOKENS)]:
        if room < 0:
            break
        found.append(path)
        room -= max(0, folder.files[path].size - HEAD_BYTES)
    return found


class _Frame:
    """The template with and without files, measured."""

    def __init__(self, folder: Folder, files: int) -> None:
        self._prompts_dir, self._files = folder.config.prompts_dir, files
        self.tokens = estimate_tokens(self.text([], files))

    def text(self, blocks: Sequence[Mapping[str, object]], left_out: int | None = None) -> str:
        """The whole text."""
        left_out = self._files - len(blocks) if left_out is None else left_out
        return render("wake_up", self._prompts_dir, files=blocks, left_out=left_out)

    def cost(self, block: Mapping[str, object]) -> int:
        """What a file adds, at most."""
        return estimate_tokens(self.text([block], self._files)) - self.tokens + 1

    def cut(self, block: Mapping[str, Any], left: int) -> Mapping[str, object] | None:
        """The block with as many of the first lines as fit; None when none does."""
        lines = block["text"][: 4 * left].split("\n")

        def start(count: int) -> Mapping[str, object]:
            return {**block, "text": "\n".join(lines[:count]).rstrip(), "cut": True}

        count = bisect_right(range(1, len(lines) + 1), left, key=lambda count: self.cost(start(count)))
        return start(count) if start(count)["text"] else None


def _block(folder: Folder, path: str, mtime_ns: int, text: str) -> Mapping[str, object]:
    suspicions = instructions_in(text, limit=1)
    return {
        "path": path,
        "name": header_of(path, folder.files[path]).name,
        "date": moment(mtime_ns).strftime("%Y-%m-%d"),
        "text": text,
        "cut": False,
        "suspicious": suspicions[0].line if suspicions else None,
    }
