"""What each idea of recall is worth: evidence recall on LoCoMo data with each of them left out, beside plain rank-bm25.

python benchmarks/recall_ideas.py PATH
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rank_bm25 import BM25Okapi
from timing import table

from mdmemory.evals import locomo
from mdmemory.evals.conversations import Conversation
from mdmemory.evals.measures import result_of, summary
from mdmemory.evals.run import evaluate
from mdmemory.recall import passages, scoring, tokens

Switch = tuple[object, str, Any]
IDEAS: Mapping[str, Sequence[Switch]] = {
    "short passages borrow from neighbours": [(passages, "BORROWED", ())],
    "question → reply": [(passages, "_given", lambda *_: ())],
    "turns that only ask count less": [(scoring, "ONLY_ASKS", 1.0)],
    "the person named": [(scoring.Asked, "_speakers", lambda *_: {})],
    "dates in the query": [(scoring, "asked_parts", lambda _: {})],
    "irregular forms, number words": [(tokens, "regular_forms", lambda _: {})],
    "words side by side": [(scoring, "ADJACENT", 0.0)],
    "passages in the file's score": [(scoring, "FACTORS", ("file",))],
}


def main(path: str) -> None:
    """Print one table."""
    conversations = locomo.load(path)
    rows = [
        ("rank-bm25, words at spaces", *plain(conversations, str.split)),
        ("rank-bm25 on our tokens", *plain(conversations, tokens.tokens)),
        ("**all ideas**", *measure(conversations)),
    ]
    for idea, switches in IDEAS.items():
        with switched(switches):
            rows.append((f"without: {idea}", *measure(conversations)))
    print(table(["", "session R@5", "R@10", "turn R@5", "R@10"], rows))


@contextmanager
def switched(switches: Sequence[Switch]) -> Iterator[None]:
    """Other values for some names, for as long as it lasts."""
    before = [(place, name, getattr(place, name)) for place, name, _ in switches]
    for place, name, value in switches:
        setattr(place, name, value)
    tokens._terms.cache_clear()
    try:
        yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)
        tokens._terms.cache_clear()


def measure(conversations: Sequence[Conversation]) -> list[str]:
    """Recall as it is now."""
    return figures(asyncio.run(evaluate(conversations)))


def plain(conversations: Sequence[Conversation], cut: Any) -> list[str]:
    """The library's own ranking of sessions and of turns."""
    levels: dict[str, list[Any]] = {"session": [], "turn": []}
    for conversation in conversations:
        for level, texts in (("session", sessions(conversation)), ("turn", turns(conversation))):
            index, ids = BM25Okapi([cut(text) for text in texts.values()]), list(texts)
            for question in conversation.questions:
                scores = index.get_scores(cut(question.text)).tolist()
                found = sorted(range(len(ids)), key=scores.__getitem__, reverse=True)
                evidence = question.sessions if level == "session" else question.turns
                levels[level].append(result_of(question.category, [ids[place] for place in found], evidence))
    return figures({level: summary(results) for level, results in levels.items()})


def sessions(conversation: Conversation) -> dict[str, str]:
    """The text of each session."""
    return {each.id: "\n".join(f"{turn.speaker}: {turn.text}" for turn in each.turns) for each in conversation.sessions}


def turns(conversation: Conversation) -> dict[str, str]:
    """The text of each turn."""
    return {turn.id: f"{turn.speaker}: {turn.text}" for each in conversation.sessions for turn in each.turns}


def figures(measured: Mapping[str, Any]) -> list[str]:
    """R@5 and R@10 by session and by turn, in percent."""
    return [f"{100 * measured[level]['frac'][depth]:.1f}" for level in ("session", "turn") for depth in ("5", "10")]


if __name__ == "__main__":
    if sys.argv[1:]:
        main(sys.argv[1])
    else:
        print("!! NOT MEASURED: give the path of a file of LoCoMo's schema; none comes with the project.", file=sys.stderr)
