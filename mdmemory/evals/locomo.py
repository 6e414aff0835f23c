"""LoCoMo (https://github.com/snap-research/locomo, CC BY-NC 4.0): long conversations of two people. Floor 6."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

from mdmemory.errors import InvalidArguments
from mdmemory.evals.conversations import Conversation, Question, Recorded, Spoken

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_SESSION = re.compile(r"session_(\d+)")
_TURN_ID = re.compile(r"D(\d+):(\d+)")


def load(path: str | PathLike[str]) -> list[Conversation]:
    """The conversations of a file of this schema.

    Raises:
        InvalidArguments: it is not one.
    """
    try:
        samples = json.loads(Path(path).read_text(encoding="utf-8"))
        return [_conversation(number, sample) for number, sample in enumerate(samples)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArguments(f"{Path(path).name} can't be read as LoCoMo data: {error!r}") from error


def _conversation(number: int, sample: Mapping[str, Any]) -> Conversation:
    talk = sample["conversation"]
    numbers = sorted(int(match[1]) for key in talk if (match := _SESSION.fullmatch(key)) and talk[key])
    sessions = [_session(n, talk[f"session_{n}"], talk.get(f"session_{n}_date_time", "")) for n in numbers]
    there = {turn.id for session in sessions for turn in session.turns}
    return Conversation(str(sample.get("sample_id", number)), sessions, list(_questions(sample["qa"], there)))


def _session(number: int, turns: list[Mapping[str, Any]], when: str) -> Recorded:
    spoken = [Spoken(_id(turn["dia_id"]), turn["speaker"], _text(turn)) for turn in turns]
    try:
        moment = datetime.strptime(when, "%I:%M %p on %d %B, %Y")
    except ValueError:
        return Recorded(str(number), None, spoken)
    return Recorded(str(number), moment.date(), spoken, when.split(" on ")[0])


def _text(turn: Mapping[str, Any]) -> str:
    """What was said, and what the picture shows that was sent with it."""
    picture = turn.get("blip_caption")
    return f"{turn['text']} [picture: {picture}]" if picture else str(turn["text"])


def _questions(items: list[Mapping[str, Any]], there: set[str]) -> Iterator[Question]:
    """Those whose evidence is in the conversation; a few name none, or turns that don't exist."""
    for item in items:
        named = _TURN_ID.findall(" ".join(item.get("evidence") or ()))
        turns = frozenset(f"D{int(session)}:{int(turn)}" for session, turn in named) & there
        if turns:
            category = CATEGORIES.get(item.get("category", 0), str(item.get("category")))
            sessions = frozenset(turn[1:].split(":")[0] for turn in turns)
            yield Question(item["question"], category, sessions, turns)


def _id(text: str) -> str:
    match = _TURN_ID.fullmatch(text)
    return f"D{int(match[1])}:{int(match[2])}" if match else text
