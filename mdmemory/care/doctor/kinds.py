"""Every kind of finding: how bad it is, why it matters and what to do. Floor 4.

Each has a page, `docs/doctor/<code>.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Level = Literal["error", "warning", "info"]
LEVELS: tuple[Level, ...] = ("error", "warning", "info")
"""An error hides a memory or a part of it, a warning makes one worse than it looks, an info is for people to know."""


class Kind(NamedTuple):
    """A kind of finding.

    Args:
        why: why it matters, one sentence.
        remedy: what to do, one sentence.
        is_fixable: whether `fix` mends at least some of its findings.
    """

    level: Level
    why: str
    remedy: str
    is_fixable: bool = False


KINDS: Mapping[str, Kind] = {
    # files
    "broken": Kind("error", "Agents see nothing of this file but what its frontmatter said last.", "Mend the line that is named."),
    "encoding": Kind("error", "Only UTF-8 text can be shown, searched and edited without harm.", "Save the file as UTF-8."),
    "unreadable": Kind("error", "What can't be read can't be searched or given as a hint.", "Check the rights of the file."),
    "too-large": Kind("error", "So large a file is neither read nor edited.", "Split it, or move it out of the memory."),
    "long-file": Kind("warning", "Search looks at the first 256 KB of a file only.", "Split it by subject."),
    "yaml-comment": Kind(
        "warning",
        "YAML ends a value where ` #` begins, so part of it is not seen.",
        "Put the value in double quotes, if all of it is meant.",
        is_fixable=True,
    ),
    "unknown-type": Kind(
        "warning",
        "Filters by type, and agents who look for a type, pass the file over.",
        "Use one of the types, or add this one to the configuration.",
        is_fixable=True,
    ),
    "no-description": Kind(
        "warning",
        "The description decides whether a file is chosen for a hint; without it only its words do.",
        "Add a line that says when the file is useful.",
    ),
    "long-description": Kind(
        "warning", "The description stands in every prompt's index, and a long one pushes others out.", "Shorten it to a line."
    ),
    "bad-date": Kind(
        "warning", "A date that can't be read is as good as none: the file never expires.", "Write it as 2025-03-17 or 2025-03."
    ),
    "supersedes-nothing": Kind(
        "warning", "What was to be replaced may still be shown to agents.", "Name the older file by its path or name."
    ),
    "supersedes-each-other": Kind(
        "warning", "Each hides the other, so agents see neither.", "Take `supersedes` out of the one that is older."
    ),
    "expired": Kind("info", "Agents are no longer shown it.", "Keep it as history, delete it, or move `valid_until`."),
    "stale": Kind("info", "What a project was half a year ago may mislead an agent.", "Look whether it still holds."),
    "duplicate": Kind(
        "info",
        "Two files that say the same drift apart, and both take room in hints.",
        "Compare them; move what one has more into the other, and delete it.",
    ),
    "instructions": Kind(
        "warning",
        "A memory is data, but some models do what a text tells them; hints quote it, the agent's own Read does not.",
        "See where the text comes from; reword it or delete it.",
    ),
    "secret": Kind(
        "warning",
        "Files are read by models, their providers and everyone with whom the folder is shared.",
        "Take it out, change the secret where it is used, and purge the history of the file.",
    ),
    "secrets-unchecked": Kind(
        "info", "Nothing looked for passwords and keys.", "Install the scanner: pip install 'mdmemory[extract]'."
    ),
    # names
    "lookalike": Kind(
        "warning", "Some disks and people can't tell the two names apart, so one is taken for the other.", "Rename or merge one."
    ),
    "conflicted-copy": Kind(
        "warning",
        "Two computers changed one file, and the sync program kept both; agents see them as two memories.",
        "Merge the two, and delete the copy.",
        is_fixable=True,
    ),
    "skipped": Kind(
        "info", "Links are not followed and special files not read, so that nothing outside is reached.", "Put a file in its place."
    ),
    "hidden": Kind("warning", "A mount stands over it, so nobody sees it here.", "Rename it, or mount the folder elsewhere."),
    "unavailable": Kind("error", "A mount that can't be looked at gives agents nothing.", "Check that it is there and readable."),
    "no-history": Kind(
        "error", "Without its log nothing can be saved or taken back.", "Look at its rights, or at what lies in its place."
    ),
    # the index
    "no-pointer": Kind("warning", "Agents learn of a file from its line in the index.", "Give it a line.", is_fixable=True),
    "dead-pointer": Kind("warning", "An agent that follows the line finds nothing.", "Take the line away.", is_fixable=True),
    "dead-link": Kind("info", "A reader of the index who follows it finds nothing.", "Mend the link."),
    "double-pointer": Kind("info", "The file takes two lines of an index with few.", "Keep the one that says more."),
    "other-words": Kind(
        "info", "The index says something else than the file; your words stay, as they may be better.", "Compare the two."
    ),
    "inline-content": Kind(
        "warning", "Text in the index is in every prompt and is not found by search.", "Move it to a memory file of its own."
    ),
    "index-full": Kind(
        "info", "Files without a line are found by hints and search only.", "Merge small files, delete what is done, pin the rest."
    ),
}
