"""What happened to a memory, and how to take it back: views of the log and the objects that every commit writes. Floor 4.

from mdmemory.care import history

for event in await history.events(memory.folder, limit=20): ...
await history.undo(memory.folder, event)
"""

from __future__ import annotations

from mdmemory.care.history.contents import Content, Kept, show
from mdmemory.care.history.log import Event, FileEvent, Moment, events, find
from mdmemory.care.history.undoing import restore, undo
from mdmemory.care.history.views import FileDiff, Line, blame, diff
from mdmemory.files.diffs import unified

__all__ = [
    "Content",
    "Event",
    "FileDiff",
    "FileEvent",
    "Kept",
    "Line",
    "Moment",
    "blame",
    "diff",
    "events",
    "find",
    "restore",
    "show",
    "undo",
    "unified",
]
