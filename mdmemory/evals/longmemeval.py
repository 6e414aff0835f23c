"""LongMemEval (https://github.com/xiaowu0162/LongMemEval, MIT): chats with an assistant, a history for each question. Floor 6."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any

from mdmemory.errors import InvalidArguments
from mdmemory.evals.conversations import Conversation, Question, Recorded, Spoken
from mdmemory.recall.dates import stated_date

SPEAKERS = {"user": "User", "assistant": "Assistant"}


def load(path: str | PathLike[str]) -> list[Conversation]:
    """The questions of a file of this schema, each with its own history; those without an answer in it are left out.

    Raises:
        InvalidArguments: it is not one.
    """
    try:
        items = json.loads(Path(path).read_text(encoding="utf-8"))
        return [_conversation(item) for item in items if not str(item["question_id"]).endswith("_abs")]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArguments(f"{Path(path).name} can't be read as LongMemEval data: {error!r}") from error


def _conversation(item: Mapping[str, Any]) -> Conversation:
    evidence, sessions = set[str](), []
    for number, (id, when, turns) in enumerate(
        zip(item["haystack_session_ids"], item["haystack_dates"], item["haystack_sessions"], strict=True), 1
    ):
        spoken = []
        for place, turn in enumerate(turns, 1):
            spoken.append(Spoken(f"{id}:{place}", SPEAKERS.get(turn["role"], turn["role"]), turn["content"]))
            if turn.get("has_answer"):
                evidence.add(f"{id}:{place}")
        sessions.append(Recorded(str(number), _day(when), spoken))
    answers = {str(number) for number, id in enumerate(item["haystack_session_ids"], 1) if id in item["answer_session_ids"]}
    question = Question(item["question"], item["question_type"], frozenset(answers), frozenset(evidence))
    return Conversation(item["question_id"], sessions, [question] if answers else [])


def _day(when: str) -> date | None:
    return stated_date([when])
