"""The extractor: from the new messages of a conversation to changes of the memory, with one call of a model. Floor 4.

Where it stands is told by the conversation itself: an entry `extracted` names the last message that was taken. It is appended after
the changes were applied; a kill in between repeats nothing, since each file names the messages it was drawn from.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from mdmemory.agent.drafts import Drafts, Ground, Outcome, without_secrets
from mdmemory.agent.selector import resolve_name
from mdmemory.agent.suggestions import Suggestion, read_suggestions, schema
from mdmemory.agent.waiting import Proposing, Waiting, read_waiting
from mdmemory.backends.protocol import File, FileProblem, problem_error
from mdmemory.errors import InvalidMemoryFile, InvalidPath, InvalidReply, PermissionDenied
from mdmemory.files.history import TOMBSTONES, Forgotten, read_tombstones
from mdmemory.files.journal import MARK, SUMMARIES, Message, new_message
from mdmemory.files.memory_file import parse
from mdmemory.folder.any_folder import Folder, backends_of
from mdmemory.folder.proposals.proposal import extractor_of
from mdmemory.folder.settle import Settled
from mdmemory.models import Model
from mdmemory.render import estimate_tokens, render

logger = logging.getLogger("mdmemory")
MEMORY_TOOLS = frozenset(("Read", "Write", "Edit", "Delete", "Search", "Add"))
MAX_BATCH_TOKENS = 8_000
MAX_MESSAGE_CHARS = 8_000
MAX_FILE_CHARS = 4_000
MAX_FILES = 12
FILES_A_MESSAGE = 3
MESSAGES_BEFORE = 4
LIMIT = 10
_WRITTEN = ("created", "updated", "superseded")
_HINT = re.compile(r"<memory-hint>.*?(?:</memory-hint>|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was drawn from some messages.

    Args:
        outcomes: what became of each suggestion.
        files: each changed file's bytes before and after; of what waits for a person, what accepting it would change.
        mark: the entry that says how far it came, to be appended to the journal.
    """

    outcomes: tuple[Outcome, ...]
    files: tuple[Settled, ...]
    mark: Message


def pending(messages: Sequence[Message]) -> list[Message]:
    """What was said since the last extraction: no system messages, no hints, and nothing that tools of the memory answered.

    Args:
        messages: the whole conversation, its `extracted` entries included.
    """
    return list(sayings(messages, _taken(messages)))


async def extract(
    folder: Folder, model: Model, session: str, messages: Sequence[Message], *, dry_run: bool = False
) -> Extraction | None:
    """Draw what is worth remembering from the new messages, as many as fit one call; apply it, or have it wait for a person.

    Args:
        session: names the conversation in the files' `source` and in the history.
        messages: the whole conversation as its journal has it.
        dry_run: only say what would be written.

    Returns:
        None when nothing was said since the last one.

    Raises:
        MdmemoryError: nothing was written, or what was written will be known as such by the next try.
    """
    await folder.refresh()
    forgotten = await read_forgotten(folder)
    without_secrets(folder, "")  # so that a missing scanner is known before a model is asked
    new = pending(messages)
    if not new:
        return None
    usable = [message for message in new if f"{session}#{message.id}" not in forgotten.sources]
    batch = _batch(usable)
    last = new[-1] if batch == usable else batch[-1]
    if not batch:
        return Extraction((), (), _mark("", new[0], last))
    waiting = await read_waiting(folder, room=LIMIT + 1)  # one for the summary
    ground = await _ground(folder, session, batch, forgotten, waiting)
    earlier = [message for message in sayings(messages) if f"{session}#{message.id}" not in forgotten.sources]
    place = earlier.index(batch[0])
    prompt = _prompt(ground, earlier[max(0, place - MESSAGES_BEFORE) : place])
    reply = await model([{"role": "user", "content": prompt}], schema=schema(folder.types))
    try:
        suggestions, summary = read_suggestions(reply, folder.types)
    except InvalidReply as error:  # which quotes the reply
        raise InvalidReply(without_secrets(folder, str(error))[0]) from None
    ground = await _with_named(await _as_of_now(ground), suggestions)
    outcomes, files = await (_apply if folder.config.extract == "apply" else _propose)(ground, suggestions, dry_run=dry_run)
    for outcome in outcomes:
        logger.info("extracted from %s: %s %s", session, outcome.status, "" if outcome.status == "dropped" else outcome.path)
    return Extraction(tuple(outcomes), tuple(files), _mark(without_secrets(folder, summary)[0], batch[0], last))


def _mark(summary: str, first: Message, last: Message) -> Message:
    whole = summary.encode(errors="replace").decode().strip()  # a model may give half of a character
    return new_message({"role": MARK, "content": whole, "from": first.id, "through": last.id})


def _taken(messages: Sequence[Message]) -> int:
    """How many of the messages extraction has dealt with."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role == MARK:
            through = messages[place].data.get("through")
            return next((number for number, message in enumerate(messages, 1) if message.id == through), place + 1)
    return 0


def sayings(messages: Sequence[Message], start: int = 0) -> Iterator[Message]:
    """What people, the assistant and tools that are not the memory's said, from `start` on, without hints."""
    called: dict[object, object] = {}
    for place, message in enumerate(messages):
        called.update((call["id"], call["function"]["name"]) for call in _calls(message))
        name = message.data.get("name") or called.get(message.data.get("tool_call_id"))
        is_said = message.role in ("user", "assistant") or (message.role == "tool" and name and name not in MEMORY_TOOLS)
        text = _HINT.sub("", message.text).strip() if is_said and place >= start else ""
        if text:
            yield Message(message.id, message.at, {"role": message.role, "content": text})


def _calls(message: Message) -> Iterator[Mapping[str, Any]]:
    calls = message.data.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        match call:
            case {"id": _, "function": {"name": _}}:
                yield call


async def read_forgotten(folder: Folder) -> Forgotten:
    """What was deleted from the folder on purpose.

    Raises:
        BackendError: it can't be told, so that nothing may be drawn from a conversation.
    """
    lists: list[bytes] = []
    for backend in backends_of(folder).values():
        found = (await backend.read({TOMBSTONES: None}))[TOMBSTONES]
        if isinstance(found, FileProblem) and found.kind != "absent":
            raise problem_error("the list of what was forgotten", found)
        lists.append(found.data if isinstance(found, File) else b"")
    home, *others = map(read_tombstones, lists)
    for other in others:  # whose paths are others
        home = home.with_names(other)
    return home


def _batch(messages: Sequence[Message]) -> list[Message]:
    """The first of the messages, as many as fit one call."""
    batch: list[Message] = []
    tokens = 0
    for message in messages:
        tokens += estimate_tokens(message.text[:MAX_MESSAGE_CHARS])
        if batch and tokens > MAX_BATCH_TOKENS:
            break
        batch.append(message)
    return batch


async def _ground(folder: Folder, session: str, batch: Sequence[Message], forgotten: Forgotten, waiting: Waiting) -> Ground:
    """The memory files nearest to the messages, and what else suggestions are judged by."""
    scores: dict[str, float] = {}
    for message in batch:
        for match in await folder.search(message.text[:MAX_MESSAGE_CHARS], limit=FILES_A_MESSAGE):
            if not match.path.startswith(SUMMARIES):
                scores[match.path] = max(scores.get(match.path, 0), match.score)
    nearest = sorted(scores, key=lambda path: -scores[path])[:MAX_FILES]
    nearest += waiting.nearest("\n".join(message.text[:MAX_MESSAGE_CHARS] for message in batch), MAX_FILES)
    files = await _read(folder, nearest, waiting)
    cut = frozenset(path for path, data in files.items() if len(data.decode("utf-8", "replace")) > MAX_FILE_CHARS)
    return Ground(folder, session, batch, files, cut, _sources(folder, waiting), forgotten, waiting)


def _sources(folder: Folder, waiting: Waiting) -> frozenset[str]:
    saved = frozenset(entry for known in folder.files.values() if known.header for entry in known.header.source)
    return saved | waiting.entries


async def _as_of_now(ground: Ground) -> Ground:
    """The same with what was forgotten, or drawn by others from these messages, while the model thought."""
    folder = ground.folder
    await folder.refresh()
    waiting = await read_waiting(folder)
    now = replace(ground, sources=_sources(folder, waiting), forgotten=await read_forgotten(folder), waiting=waiting)
    if folder.config.extract == "apply":  # which merges
        return now
    files = await _read(folder, list(ground.files), waiting)
    return replace(now, files=files, cut=ground.cut | {path for path, data in files.items() if data != ground.files[path]})


async def _with_named(ground: Ground, suggestions: Sequence[Suggestion]) -> Ground:
    """The same with the files that suggestions name without having seen them, which therefore may only be added to."""
    files = ground.folder.files.keys() | ground.waiting.files.keys()
    named = {resolve_name(name, files) for suggestion in suggestions for name in (suggestion.path, suggestion.replaces)}
    unknown = [path for path in named if path is not None and path not in ground.files]
    unseen = await _read(ground.folder, unknown, ground.waiting)
    return replace(ground, files={**ground.files, **unseen}, cut=ground.cut | unseen.keys())


async def _read(folder: Folder, paths: Sequence[str], waiting: Waiting) -> dict[str, bytes]:
    """The files that can be read, without those that are broken; those for which something waits, as they are to be."""
    found = await folder.read_many(paths) if paths else {}
    good = {path for path, known in folder.files.items() if known.header is not None}
    there = {path: file.data for path, file in found.items() if isinstance(file, File) and path in good}
    return there | {path: data for path, data in waiting.files.items() if path in paths}


def _prompt(ground: Ground, before: Sequence[Message]) -> str:
    files = []
    for path, data in ground.files.items():
        file = parse(path, data)
        text = file.body.strip()[:MAX_FILE_CHARS]
        about = {"type": file.header.type, "name": file.header.name, "description": file.header.description}
        files.append({"path": path, **about, "text": text, "cut": path in ground.cut})
    messages = [
        {"number": number, "role": message.role, "at": f"{message.at:%Y-%m-%d %H:%M} UTC", "text": message.text[:MAX_MESSAGE_CHARS]}
        for number, message in enumerate(ground.messages, 1)
    ]
    return render(
        "extract",
        ground.folder.config.prompts_dir,
        today=datetime.now(UTC).date().isoformat(),
        types=ground.folder.types,
        before=[{"role": message.role, "text": message.text[-1_000:]} for message in before],
        messages=messages,
        files=files,
        folders=sorted({path.rsplit("/", 1)[0] for path in ground.folder.files if "/" in path})[:30],
        limit=LIMIT,
    )


async def _apply(ground: Ground, suggestions: Sequence[Suggestion], *, dry_run: bool) -> tuple[list[Outcome], list[Settled]]:
    """Apply all suggestions in one commit; when one of them is refused, each by itself."""
    drafts = Drafts(ground)
    for suggestion in suggestions:
        drafts.add(suggestion)
    if not drafts.changes:
        return drafts.outcomes, []
    why = "; ".join(outcome.reason for outcome in drafts.outcomes if outcome.status not in ("existing", "dropped"))
    author = extractor_of(ground.session)
    try:
        applied = await ground.folder.apply(drafts.changes, author, f"extracted: {why}"[:500], dry_run=dry_run)
    except (InvalidMemoryFile, InvalidPath, PermissionDenied) as error:
        if len(suggestions) == 1:
            return [Outcome("dropped", drafts.outcomes[0].path, str(error))], []
    else:
        return drafts.outcomes, list(applied.files)
    outcomes, files = [], []
    for suggestion in suggestions:
        ground = replace(ground, files=await _read(ground.folder, list(ground.files), ground.waiting))
        some, changed = await _apply(ground, [suggestion], dry_run=dry_run)
        outcomes += some
        files += changed
    return outcomes, files


async def _propose(ground: Ground, suggestions: Sequence[Suggestion], *, dry_run: bool) -> tuple[list[Outcome], list[Settled]]:
    """Have each suggestion wait for a person, those that touch the same files together."""
    drafts, proposing = Drafts(ground), Proposing(ground.folder, ground.session, ground.waiting)
    for suggestion in suggestions:
        before = drafts.written
        drafts.add(suggestion)
        files = {path: data for path, data in drafts.written.items() if before.get(path) != data}
        if not files:
            continue
        try:
            entries = list(map(ground.entry, ground.said(suggestion)))
            await proposing.add(files, ground.files, entries, drafts.outcomes[-1].reason)
        except (InvalidMemoryFile, InvalidPath, PermissionDenied) as error:
            drafts.take_back(before, str(error))
    if not dry_run:
        await proposing.keep()
    outcomes = [replace(each, proposal=proposing.id_of(each.path) if each.status in _WRITTEN else "") for each in drafts.outcomes]
    return outcomes, proposing.settled
