"""What a coding agent's hooks are answered: instructions and index, a hint, and at the stop nothing. Floor 6.

An agent waits for the prompt's hook before it thinks, so only what that needs is imported, when it is needed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from mdmemory.errors import ConfigError, MdmemoryError, Unavailable
from mdmemory.hooks.state import State, remembered

if TYPE_CHECKING:
    from mdmemory.config import Config
    from mdmemory.files.journal import Message
    from mdmemory.folder.any_folder import Folder
    from mdmemory.settings import Settings

DEFAULT_FOLDER: Final = "memory"
MAX_CHARS: Final = 10_000  # of what is longer, Claude Code shows its model only the beginning
NEAREST: Final = 50  # lexical matches looked at: those already shown give way to the next
MAX_SAID: Final = 20  # prompts kept for the journal, where an agent tells of no stop
FLUSH_S: Final = 1.0  # how long the last words may take to stand in the transcript
Given = Mapping[str, Any]


def run_hook(event: str, folder: str | None = None, config: str | None = None) -> None:
    """Answer a hook on standard output, in a process of its own; what is wrong is said on standard error and stops no agent.

    Args:
        event: one of `EVENTS`.
        folder: of the memory; without one that of the settings, of MDMEMORY_FOLDER, or ./memory.
        config: the file with settings; else MDMEMORY_CONFIG.
    """
    if event == "user-prompt":
        _do_without_numpy()
    try:
        given = _given(sys.stdin.buffer.read())
        answer = asyncio.run(_answer(event, given, folder, config or os.environ.get("MDMEMORY_CONFIG")))
    except (MdmemoryError, OSError) as error:
        what = (error.strerror or "the system refused") if isinstance(error, OSError) else " ".join(str(error).split())
        print(f"mdmemory hook {event}: {what}", file=sys.stderr)
        return
    sys.stdout.buffer.write(f"{answer}\n".encode("utf-8", "replace") if answer else b"")


def _do_without_numpy() -> None:
    """Let rank-bm25 find an empty numpy: only methods that search replaces need it, and to import it takes as long as all else."""
    sys.modules.setdefault("numpy", ModuleType("numpy"))


def _given(data: bytes) -> Given:
    try:
        given = json.loads(data)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise ConfigError("the agent sent no JSON object")
    return given


async def _answer(event: str, given: Given, folder: str | None, config: str | None) -> str:
    settings = _settings(config)
    location = folder or (settings and settings.location) or os.environ.get("MDMEMORY_FOLDER") or DEFAULT_FOLDER
    place = os.fspath(location)
    if "://" not in place:
        place = os.path.abspath(os.path.expanduser(place))
        if settings is None and not os.path.isdir(place):
            raise ConfigError("there is no memory folder. Make one with `mdmemory init`, or name another with --folder")
    session = str(given.get("session_id") or given.get("conversation_id") or "")
    with remembered(_cache(settings.config if settings else None), place, session) as state:
        return _worded(given, await EVENTS[event](Hook(place, session, given, state, settings)))


def _settings(config: str | None) -> Settings | None:
    if config is None:
        return None
    from mdmemory.settings import read_settings

    return read_settings(config)


def _cache(config: Config | None) -> Path | None:
    if config is not None and config.cache is not True:
        return Path(config.cache).expanduser() if config.cache else None
    import platformdirs

    return platformdirs.user_cache_path("mdmemory")


def _worded(given: Given, context: str) -> str:
    """The answer as the agent wants it, which is told by how it calls the event."""
    name = given.get("hook_event_name")
    if not isinstance(name, str):
        return context
    if name == "beforeSubmitPrompt":  # Cursor, which has no place for a hint there
        return '{"continue": true}'
    if not context:
        return "{}"
    if name[:1].islower():
        return json.dumps({"additional_context": context}, ensure_ascii=False)
    return json.dumps({"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}}, ensure_ascii=False)


class Hook:
    """One call of a hook.

    Args:
        place: of the memory, a whole path or a URL.
        session: the agent's id of it, or "".
        given: what the agent sent.
        settings: of the configuration file, if there is one.
    """

    def __init__(self, place: str, session: str, given: Given, state: State, settings: Settings | None) -> None:
        self.place, self.session, self.given, self.state, self.settings = place, session, given, state, settings

    def text(self, *names: str) -> str:
        """The first of these fields that is a text."""
        return next((value for name in names if isinstance(value := self.given.get(name), str)), "")

    async def looked(self, index_max_bytes: int | None = None) -> Folder:
        """The folder as it is now; only to be read."""
        from dataclasses import replace

        from mdmemory.config import Config
        from mdmemory.folder.opening import open_folder

        config = replace(self.settings.config if self.settings else Config(), watch=False)
        config = config if index_max_bytes is None else replace(config, index_max_bytes=index_max_bytes)
        folder = open_folder(self.place, self.settings.mounts if self.settings else {}, config)
        await folder.refresh()
        return folder


async def session_start(hook: Hook) -> str:
    """How to use the memory, its index as far as there is room, and where its files are."""
    if hook.given.get("source") != "resume":  # what was shown before is not in the model's context
        hook.state.shown.clear()
    text, index = await _start(hook)
    for _ in range(3):
        if (excess := len(text) - MAX_CHARS) <= 0:
            break
        share = max(0.0, 1 - 1.05 * excess / (len(index) or 1))
        text, index = await _start(hook, int(share * len(index.encode("utf-8", "replace"))) or 1)
    return text


async def _start(hook: Hook, index_max_bytes: int | None = None) -> tuple[str, str]:
    """What the model is told, and the index in it."""
    from mdmemory.agent.instructions import instructions
    from mdmemory.render import render

    folder = await hook.looked(index_max_bytes)
    try:
        told, index = await instructions(folder), (await folder.prompt_index()).text
    finally:
        await folder.close()
    return (told if "://" in hook.place else f"{told}\n\n{render('workspace', folder=hook.place)}"), index


async def user_prompt(hook: Hook) -> str:
    """The hint for a prompt: the files that share its words, each once a session while it does not change."""
    from mdmemory.agent.hints import make_hint
    from mdmemory.agent.selector import lexical_picks

    state, prompt = hook.state, hook.text("prompt")
    state.turn += 1
    state.said = [*state.said, prompt][-MAX_SAID:]
    folder = await hook.looked()
    try:
        nearest = await folder.search(prompt, limit=NEAREST)
        news = [match for match in nearest if folder.files[match.path].etag != state.shown.get(match.path, "")]
        picks = lexical_picks(news, folder.config.min_score)[: folder.config.hint_max_files]
        hint = await make_hint(folder, picks, state.shown, "")
    finally:
        await folder.close()
    if hint is None:
        return ""
    state.shown.update((file.path, file.etag) for file in hint.files)
    return hint.text


async def stop(hook: Hook) -> str:
    """Put what was said into the journal, and with a model draw memories from it when enough was said."""
    from mdmemory.memory import open_memory

    said = await _said(hook)
    settings, spec = hook.settings, os.environ.get("MDMEMORY_MODEL")
    config, mounts, model = (settings.config, settings.mounts, settings.model or spec) if settings else (None, None, spec)
    async with open_memory(hook.place, mounts=mounts, model=model, config=config) as memory:
        await memory.folder.refresh()
        off = settings is not None and settings.write_back == "off"
        session = memory.session(hook.session or None, write_back="off" if off else "awaited")
        problems = []
        if session.is_journaled and (problem := await session.write(said)):
            problems.append(problem)
        await session.write_back.after_turn(problems.append)
        if problems:
            raise Unavailable("; ".join(problems))
    hook.state.said.clear()
    return ""


async def _said(hook: Hook) -> list[Message]:
    """What was said since the last stop."""
    from mdmemory.hooks.transcript import from_hooks, read_transcript

    state, reply, until = hook.state, hook.text("last_assistant_message", "prompt_response", "text"), time.monotonic() + FLUSH_S
    while path := hook.text("transcript_path"):
        found = read_transcript(Path(path), state.read, hook.place)
        if found is None:
            break
        if found.reply.strip() == reply.strip() or not reply or time.monotonic() > until:
            state.read = found.end
            return list(found.messages)
        await asyncio.sleep(0.05)
    turn = hook.text("turn_id", "generation_id") or str(state.turn)
    return from_hooks(hook.session, turn, state.said or [hook.text("prompt")], reply)


EVENTS: Final[Mapping[str, Callable[[Hook], Coroutine[Any, Any, str]]]] = {
    "session-start": session_start,
    "user-prompt": user_prompt,
    "stop": stop,
}
