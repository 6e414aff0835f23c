"""The summary of a long conversation: a memory file of a line for each extraction, with links to what was said. Floor 4.

It replaces nothing: the conversation stays in its journal, word for word. The lines come from the replies that extraction got
anyway, so a summary costs no call of a model; what people write into the file stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from urllib.parse import quote

from mdmemory.agent.waiting import NOTHING, Waiting
from mdmemory.backends.protocol import File, FileProblem, etag_of, problem_error
from mdmemory.files.changes import Create, Replace
from mdmemory.files.history import Forgotten
from mdmemory.files.journal import SUMMARIES, Message
from mdmemory.files.memory_file import new_file, parse, set_field
from mdmemory.files.naming import shortened
from mdmemory.folder.any_folder import Folder

INTRODUCTION = "What was said, in short; word for word it stands in the journal."
MAX_DESCRIPTION_CHARS = 300


async def summary_of(
    folder: Folder, session: str, journal: str, marks: Sequence[Message], forgotten: Forgotten, waiting: Waiting = NOTHING
) -> Create | Replace | None:
    """The change that brings a conversation's summary up to date; None when it is.

    Args:
        journal: the path of the conversation's file.
        marks: its `extracted` entries.
        forgotten: a summary that was deleted begins anew after that, and lines that a person rejected do not come again.
        waiting: a summary that waits for a person goes on where it ends.

    Raises:
        BackendError, InvalidMemoryFile: it is not known what the summary says.
    """
    path = f"{SUMMARIES}{PurePosixPath(journal).name}"
    name = f"Conversation {session}"
    found = (await folder.read_many([path]))[path]
    if isinstance(found, FileProblem) and found.kind != "absent":
        raise problem_error(path, found)
    data = waiting.files.get(path, found.data if isinstance(found, File) else None)
    known = () if data is None else parse(path, data).header.source
    entries = {f"{session}#{mark.data.get('through')}": mark for mark in marks if mark.text.strip()}
    wanted = {entry: mark for entry, mark in entries.items() if mark_entry(session, mark) not in forgotten.sources}
    told = [mark for entry, mark in wanted.items() if entry not in known and not forgotten.covers(path, name, mark.at)]
    if not told:
        return None
    link = f"{'../' * path.count('/')}{quote(journal)}"
    lines = [f"- {mark.at:%Y-%m-%d}: {' '.join(mark.text.split())} ([{_part(mark)}]({link}))" for mark in told]
    if data is None:
        description = shortened(" ".join(mark.text for mark in told), MAX_DESCRIPTION_CHARS)
        body = "\n".join([INTRODUCTION, "", *lines])
        return Create(path, new_file(name, description, "project", body, source=list(entries)))
    longer = set_field(path, data, "source", list(dict.fromkeys([*known, *entries]))).rstrip()
    return Replace(path, b"\n".join([longer, *(line.encode() for line in lines), b""]), etag_of(data), data)


def mark_entry(session: str, mark: Message) -> str:
    """What a line of a summary was drawn from: the `extracted` entry itself, not the message that it names."""
    return f"{session}#{mark.id}"


def _part(mark: Message) -> str:
    return f"entries {mark.data.get('from')} to {mark.data.get('through')}"
