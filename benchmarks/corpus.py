"""Notes for benchmarks, the same on every machine: words as common as in real text (Zipf), 40 to 400 of them, with frontmatter."""

from __future__ import annotations

import os
import random
from functools import cache
from itertools import accumulate, product
from pathlib import Path

COMMON = """the of and to a in is it that was for on are with as at be this by have from or had not but what all were we when
your can said there use an each which she do how their if will up other about out many then them these so some her would make
like him into time has look two more write go see number no way could people my than first been call who its now find long down
day did get come made may part""".split()
WORDS = 30_000
MID = (500, 6_000)  # ranks of the words that queries are made of: neither in every note nor in one alone
TYPES = ("user", "feedback", "project", "reference")
FOLDER_FILES = 50


@cache
def vocabulary() -> tuple[list[str], list[float]]:
    """The words, the most common first, and their weights added up."""
    starts = [a + b for a, b in product("bdfgklmnprstvz", "aeiou")]
    made = ["".join(parts) for parts in product(starts, starts, ("n", "r", "st", "l", "m", "x", "d", "k"))]
    random.Random(0).shuffle(made)
    words = [*COMMON, *made[: WORDS - len(COMMON)]]
    return words, list(accumulate(1 / (rank + 2.7) for rank in range(len(words))))


def text(chance: random.Random, length: int) -> str:
    """Some words, in sentences and paragraphs."""
    words, weights = vocabulary()
    drawn = chance.choices(words, cum_weights=weights, k=length)
    for end in range(11, length, 12):
        drawn[end] += ".\n\n" if end % 48 == 47 else "."
    return " ".join(drawn).replace("\n\n ", "\n\n")


def note(number: int) -> str:
    """A memory file."""
    chance = random.Random(number)
    name, description = text(chance, 4), text(chance, 10)
    body = text(chance, int(40 * 10 ** chance.random()))  # as many notes below 126 words as above
    kind, day = TYPES[number % 4], f"2025-{number % 12 + 1:02}-{number % 28 + 1:02}"
    return f"---\nname: {name}\ndescription: {description}\ntype: {kind}\ndate: {day}\n---\n\n{body}\n"


def path_of(number: int) -> str:
    """Where a note lies in the folder."""
    return f"topic-{number // FOLDER_FILES}/note-{number}.md"


def fill(folder: Path, size: int) -> None:
    """Write notes, an hour old."""
    for number in range(size):
        path = folder / path_of(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(note(number), encoding="utf-8")
        then = path.stat().st_mtime - 3_600
        os.utime(path, (then, then))


def queries(size: int, count: int, seed: int = 0) -> list[str]:
    """Questions of 2 to 10 words, neither common nor rare ones, each about one of the notes."""
    chance, found = random.Random(f"queries {seed}"), list[str]()
    telling = frozenset(vocabulary()[0][slice(*MID)])
    while len(found) < count:
        words = [word for word in note(chance.randrange(size)).replace(".", "").split() if word in telling]
        if len(words) >= 2:
            found.append(" ".join(chance.sample(words, min(len(words), chance.randint(2, 10)))))
    return found


def message(seed: int = 0) -> str:
    """What a person may paste: 300 words."""
    return text(random.Random(f"message {seed}"), 300)
