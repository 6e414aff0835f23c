"""Text that reads like instructions to a model: found, named, never removed. Floor 1, pure.

A memory is data. What a file says may come from a web page or another agent, so hints quote it, and this scan tells people and
models where a file speaks to the reader as if it gave orders. It is a help, not a wall: the fence around a hint is the wall.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

_PATTERNS = (
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|prior|above|earlier|your|all|system)\b.{0,40}\b(?:instruction|prompt|rule|guideline)s?\b",
    r"\byou (?:are|must) now\b.{0,60}\b(?:act|mode|assistant|role|unrestricted|obey)\b",
    r"\b(?:reveal|print|repeat|show|send)\b.{0,40}\b(?:system prompt|hidden instructions|api[ _-]?keys?|password|secret)s?\b",
    r"\bdo not (?:tell|inform|mention to) the user\b",
    r"</?(?:system|assistant|memory-hint|instructions)\b[^>]{0,200}>",
    r"(?:忽略|无视|忘记).{0,12}(?:指令|指示|提示|规则)",
    r"(?:指示|命令|ルール|プロンプト).{0,8}(?:無視|忘れ)",
    r"\bignorier\w*\b.{0,40}\b(?:anweisung|regel|vorgabe)\w*\b",
)
_INSTRUCTION = re.compile("|".join(_PATTERNS), re.IGNORECASE | re.DOTALL)  # an order may be wrapped over lines


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A place that reads like an instruction to a model."""

    line: int
    text: str


def instructions_in(text: str, *, limit: int = 5) -> list[Suspicion]:
    """Where the text speaks to a model, by 1-based line; at most `limit` places."""
    matches = islice(_INSTRUCTION.finditer(text), limit)
    return [Suspicion(text.count("\n", 0, match.start()) + 1, " ".join(match[0].split())[:80]) for match in matches]
