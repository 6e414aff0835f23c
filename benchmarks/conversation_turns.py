"""The conversation of conversation.yaml, and the facts in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True, slots=True)
class Fact:
    """Something worth remembering, as a memory file.

    Args:
        about: when it is useful; says nothing of the answer.
        answer: words of the body that a question about it needs.
        replaces: the path of what was true before.
    """

    path: str
    name: str
    about: str
    body: str
    answer: str
    replaces: str = ""

    @property
    def type(self) -> str:
        """The memory's type, after which its folder is named."""
        return self.path.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Turn:
    """What the user says and what is answered.

    Args:
        tells: the fact that the user states, for the first time or again.
        asks: the fact that the reply needs.
    """

    user: str
    reply: str
    tells: Fact | None = None
    asks: Fact | None = None


def read_turns() -> tuple[Turn, ...]:
    """All 40 turns."""
    text = (Path(__file__).parent / "conversation.yaml").read_text(encoding="utf-8")
    whole = yaml.load(text, Loader=yaml.CSafeLoader)
    facts: dict[str, Fact] = {}
    for key, given in whole["facts"].items():
        before = given.pop("replaces", None)
        facts[key] = Fact(**given, replaces=facts[before].path if before else "")
    return tuple(
        Turn(turn["user"], turn["reply"], facts.get(turn.get("tells")), facts.get(turn.get("asks"))) for turn in whole["turns"]
    )
