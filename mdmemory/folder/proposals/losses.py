"""What texts no longer say once others stand in their place: lines, details and words, by comparison alone. Floor 3, pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from mdmemory.recall.tokens import tokens

REWORDED: Final = 2 / 3  # of a line's words stand in the new text: then it is said there otherwise
_ADDRESS: Final = re.compile(r"https?://[^\s)>\]\"'`]+|(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+|\]\([^()\s]+\)")
_LINK: Final = re.compile(rf"{_ADDRESS.pattern}|\[\[[^\[\]\n]+\]\]")
_CODE: Final = re.compile(r"(?<!`)`++([^`\n]+)`+")
_NUMBER: Final = re.compile(r"(?<!\w)\w*\d\w*(?:[.,:/-]\w*\d\w*)*")
_WORD: Final = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_BEFORE_NAME: Final = re.compile(r"[\w,;('\"’-] ?\Z")  # else a sentence begins, which gives any word a capital
_ALIASES: Final = re.compile(r"^aliases:.*$", re.MULTILINE)  # names for links, which say nothing
_NOT: Final = re.compile(
    r"\b(?:not|never|no|none|nothing|nobody|cannot|without|except|unless"
    r"|nicht|kein\w*|nie|niemals|ohne|pas|jamais|sans|aucun\w*|nunca|jamás|sin|não|sem|nem|non|mai|senza"
    r"|не|нет|нельзя|никогда|без)\b|n['’]t\b|[不没沒无無]|ない|なく|ません|않|못|없",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"[.!?;](?:\s|\Z)|[\n。！？；]")
_NEAR: Final = 80  # characters in which stands what is negated
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_PIPE: Final = re.compile(r"\s*\|\s*")


@dataclass(frozen=True, slots=True)
class LostLine:
    """A line that does not stand in the new texts.

    Args:
        line: 1-based.
        is_reworded: whether most of its words, and all of its details, do.
    """

    path: str
    line: int
    text: str
    is_reworded: bool


@dataclass(frozen=True, slots=True)
class Losses:
    """What is lost, and what is new.

    Args:
        lines: every line of the old texts that does not stand in the new ones.
        details: numbers, dates, names, links, code and negations that the new texts lack.
        words: those that no file would hold any longer.
        new: numbers, dates, names, links and code that no old text has: a model may have made them up.
        gone, total: bytes and lines: of those that are neither kept nor reworded, and of all; a line that stood twice counts once.
    """

    lines: tuple[LostLine, ...] = ()
    details: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    gone: tuple[int, int] = (0, 0)
    total: tuple[int, int] = (0, 0)

    @property
    def share(self) -> float:
        """0 to 1: how much of the lines, or of the bytes, goes, whichever is more."""
        return max((gone / total for gone, total in zip(self.gone, self.total, strict=True) if total), default=0.0)


def measure(
    before: Mapping[str, str], after: Collection[str], rare: Collection[str] = (), languages: tuple[str, ...] = ("english",)
) -> Losses:
    """Compare texts with those that are to stand in their place.

    Args:
        before: by path.
        rare: words that no other file has.
    """
    new = _Text("\n".join(after), languages)
    lost = [line for path, text in before.items() for line in _lost_lines(path, text, new)]
    old = _Text("\n".join(before.values()), languages)
    every = {key for text in before.values() for _, _, key, _ in _lines(text)} - {""}
    gone = {key for key, line in lost if not line.is_reworded}
    details = tuple(dict.fromkeys(shown for kind, norm, shown in old.details if not new.has(kind, norm)))
    known = {detail.casefold() for detail in details}
    return Losses(
        tuple(line for _, line in lost),
        details,
        tuple(word for word in rare if word not in known and not new.terms.issuperset(tokens(word, languages))),
        tuple(dict.fromkeys(shown for kind, norm, shown in new.details if not old.has(kind, norm))),
        _size(gone),
        _size(every),
    )


class _Text:
    """A text, and what can be looked up in it."""

    def __init__(self, text: str, languages: tuple[str, ...]) -> None:
        self.keys = {key for _, _, key, _ in _lines(text)}
        self.text, self.languages = (text := _ALIASES.sub("", text)), languages
        self.terms = set(tokens(text, languages))
        plain = _ADDRESS.sub(" ", text)  # what is part of an address is not said
        self.names = {word.casefold() for word in _WORD.findall(plain)} | set(tokens(plain, languages))
        self.numbers = set(map(_number, _NUMBER.findall(plain)))
        self.details = list(details_of(text, languages))
        denied = (sentence for sentence in _SENTENCE.split(text) if _NOT.search(sentence))
        self.denied = {term for sentence in denied for term in tokens(sentence, languages)}

    def has(self, kind: str, norm: str) -> bool:
        """Whether a detail stands in it."""
        if kind == "number":
            return norm in self.numbers
        if kind == "name":
            return norm in self.names or (bool(terms := set(tokens(norm, self.languages))) and terms <= self.names)
        if kind == "not":
            return norm in self.denied
        return norm in self.text


def details_of(text: str, languages: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """The numbers, dates, names, links, code and negations of a text: of what kind, by what it is compared, and as it stands."""
    for match in _LINK.finditer(text):
        link = match[0].removeprefix("](").rstrip(").,;") if match[0].startswith("](") else match[0].rstrip(".,;")
        yield "link", link, link
    rest = _LINK.sub(" ", text)
    for match in _CODE.finditer(rest):
        yield "code", match[1].strip(), match[0]
    rest = _CODE.sub(" ", rest)
    for match in _NUMBER.finditer(rest):
        yield "number", _number(match[0]), match[0]
    for match in _WORD.finditer(rest):
        word = match[0]
        is_inside = _BEFORE_NAME.search(rest[max(0, match.start() - 2) : match.start()]) is not None
        if word[0].isupper() and (is_inside or (len(word) > 1 and word.isupper())):
            yield "name", word.casefold().removesuffix("'s").removesuffix("’s"), word
    yield from _negations(rest, languages)


def _negations(text: str, languages: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """Each negation with the word that it is said of: the next one in its sentence, or else the last one before."""
    for sentence in _SENTENCE.split(text):
        for found in _NOT.finditer(sentence):
            rest = sentence[found.end() : found.end() + _NEAR]
            after, before = tokens(rest, languages), tokens(sentence[max(0, found.start() - _NEAR) : found.start()], languages)
            if after or before:
                word = sentence[: found.start()][-_NEAR:].rpartition(" ")[2] if found[0][1:2] in ("'", "’") else ""
                shown = f"{word}{found[0]}{rest}" if after else sentence[: found.end()]
                yield "not", after[0] if after else before[-1], " ".join(shown.split()[:4] if after else shown.split()[-4:])


def _number(text: str) -> str:
    return re.sub(r"(?<=\d),(?=\d{3}\b)", "", text).casefold()


def _key(line: str) -> str:
    """A line as it is compared; "" for one that says nothing, such as a rule or a fence."""
    key = " ".join(line.strip("\ufeff").split())
    return key if key.strip("-*_=#>+`|: ") else ""


def _lines(text: str) -> Iterator[tuple[int, str, str, bool]]:
    """Each line: its number, itself, as it is compared, and whether it is data, which can't be said in other words.

    In a fence, what a line begins with counts, too.
    """
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        key, start = _key(line), _FENCE.match(line)
        is_data = bool(fence) or key.startswith("|")
        if start is not None and (not fence or (start[1].startswith(fence) and not line[start.end() :].strip())):
            fence, is_data = "" if fence else start[1], False
        elif fence and key:
            key = line.rstrip()
        elif is_data:
            key = _PIPE.sub("|", key)
        yield number, line, key, is_data


def _lost_lines(path: str, text: str, new: _Text) -> Iterator[tuple[str, LostLine]]:
    for number, line, key, is_data in _lines(text):
        if key and key not in new.keys:
            terms = set(tokens(key, new.languages))
            is_said = not is_data and len(terms & new.terms) >= REWORDED * len(terms)
            is_said = is_said and all(new.has(*each[:2]) for each in details_of(key, new.languages))
            yield key, LostLine(path, number, line.strip("\ufeff\r"), is_said)


def _size(keys: Collection[str]) -> tuple[int, int]:
    return sum(len(key.encode()) for key in keys), len(keys)
