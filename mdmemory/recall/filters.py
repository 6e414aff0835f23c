"""Which files a search may find: by type, path, tags, date, validity and any other field. Floor 2.

Filters come before ranking, so that the only file that passes is found however many there are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, TypedDict

from mdmemory.errors import InvalidArguments
from mdmemory.files.days import first_of, last_of
from mdmemory.files.memory_file import Header

Condition = Mapping[str, Any]
"""`{"and": […]}`, `{"or": […]}`, `{"not": …}`, or fields with a value or operators: `{"status": "open", "cost": {"gte": 10}}`."""


class Filters(TypedDict, total=False):
    """What a search may be narrowed by; a file must pass all that are given.

    Args:
        type: a type, or several of which one is enough.
        path: a folder, a file, or a pattern such as `projects/*.md`; or several of which one is enough.
        mount: the name of a mount, such as `team`, or `.` for the home; or several of which one is enough.
        tags: all of these; one as text, or several.
        after, before: of the file's date, a day as `2024-05-17` (included), or a month or a year.
        as_of: a day; what was valid then, superseded since or not. Without it, what has expired or is superseded is left out.
        where: any field of the frontmatter; operators eq, ne, in, nin, gt, gte, lt, lte, contains; combined by and, or, not.
    """

    type: str | Sequence[str]
    path: str | Sequence[str]
    mount: str | Sequence[str]
    tags: str | Sequence[str]
    after: str | date
    before: str | date
    as_of: str | date
    where: Condition


@dataclass(frozen=True, slots=True)
class Filed:
    """A file as filters see it.

    Args:
        day: its date.
        mount: the prefix of the mount that it lies in; "" for the home.
    """

    path: str
    header: Header
    day: date
    mount: str = ""

    def field(self, name: str) -> Any:
        """A field's value; None where the file has none."""
        if name in ("path", "day"):
            return self.path if name == "path" else self.day.isoformat()
        fields = self.header.fields or {}
        return fields[name] if name in fields else getattr(self.header, name, None) if name in _HEADER_FIELDS else None


_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEADER_FIELDS = ("name", "description", "type", "pinned", "tags", "source")


def narrow(files: Iterable[Filed], filters: Filters) -> set[str]:
    """The paths of the files that pass.

    Raises:
        InvalidArguments: an unknown filter or operator, or a date that is none.
    """
    unknown = set(filters) - set(Filters.__annotations__)
    if unknown:
        raise InvalidArguments(f"unknown filter {', '.join(sorted(unknown))}; there are {', '.join(Filters.__annotations__)}")
    tests = list(_tests(filters))
    every = list(files)
    hidden = outdated(every, first_day(filters["as_of"], "as_of") if "as_of" in filters else None)
    return {file.path for file in every if file.path not in hidden and all(test(file) for test in tests)}


def outdated(files: Iterable[Filed], as_of: date | None = None) -> set[str]:
    """The paths of files that have expired or are superseded; with `as_of`, those that were not valid on that day.

    A file supersedes from its `valid_from` on, or its date, and what it superseded does not come back when it expires itself.
    """
    when, every = as_of or date.today(), {file.path: file for file in files}
    found = set[str]()
    for path, file in every.items():
        begins, ends = first_of(file.header.valid_from), last_of(file.header.valid_until)
        if (ends and ends < when) or (as_of and begins and begins > when):
            found.add(path)
    replaced = superseded(every.values())
    return found | {path for path, newer in replaced.items() if any(begins_on(every[each]) <= when for each in newer)}


def superseded(files: Iterable[Filed]) -> dict[str, tuple[str, ...]]:
    """By path, the files that say they supersede it, now or from a day to come.

    A file names what it supersedes, in its own mount, by path, with or without `.md`, or by name; several with commas between.
    """
    every, newer = list(files), defaultdict[tuple[str, str], set[str]](set)
    for file in every:
        if file.header.supersedes:
            for name in _names(file.header.supersedes):
                newer[file.mount, name].add(file.path)
    if not newer:
        return {}
    found = {
        file.path: {path for name in _called(file) for path in newer.get((file.mount, name), ())} - {file.path} for file in every
    }
    return {path: tuple(sorted(paths)) for path, paths in found.items() if paths}


def begins_on(file: Filed) -> date:
    """The day from which a file counts: its `valid_from`, else its date."""
    return first_of(file.header.valid_from) or file.day


def _names(text: str) -> Iterable[str]:
    for part in (text, *text.split(",")):
        name = part.strip().strip("[]")
        yield from (name, _folded(name), PurePosixPath(name).as_posix())


def _called(file: Filed) -> tuple[str, str, str]:
    inside = file.path.removeprefix(file.mount)
    return inside, inside.removesuffix(".md"), _folded(file.header.name)


def _folded(name: str) -> str:
    return f"name:{name.casefold()}"


def _tests(filters: Filters) -> Iterable[Callable[[Filed], bool]]:
    if "type" in filters:
        types = _several(filters["type"])
        yield lambda file: file.header.type in types
    if "path" in filters:
        patterns = [pattern.strip("/") for pattern in _several(filters["path"])]
        yield lambda file: any(_is_below(file.path, pattern) for pattern in patterns)
    if "mount" in filters:
        mounts = {mount_name(mount) for mount in _several(filters["mount"])}
        yield lambda file: mount_name(file.mount) in mounts
    if "tags" in filters:
        tags = {tag.removeprefix("#").casefold() for tag in _several(filters["tags"])}
        yield lambda file: tags <= {tag.casefold() for tag in file.header.tags}
    if "after" in filters:
        earliest = first_day(filters["after"], "after")
        yield lambda file: file.day >= earliest
    if "before" in filters:
        latest = first_day(filters["before"], "before", last=True)
        yield lambda file: file.day <= latest
    if "where" in filters:
        yield condition(filters["where"])


def mount_name(mount: str) -> str:
    """How a mount is called in a filter and in a message: its prefix without the last `/`; the home is `.`."""
    return mount.strip("/") or "."


def _several(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _is_below(path: str, pattern: str) -> bool:
    return path == pattern or path.startswith(f"{pattern}/") or not pattern or fnmatchcase(path, pattern)


def condition(where: Condition) -> Callable[[Filed], bool]:
    """A condition as a test.

    Raises:
        InvalidArguments: not a condition, or an unknown operator.
    """
    if not isinstance(where, Mapping):
        raise InvalidArguments(f"a condition maps fields to values or operators, not {where!r:.80}")
    tests: list[Callable[[Filed], bool]] = []
    for key, value in where.items():
        match key.casefold():
            case "and" | "or":
                if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
                    raise InvalidArguments(f"{key!r} takes a list of conditions")
                tests.append(_combined(all if key.casefold() == "and" else any, [condition(part) for part in value]))
            case "not":
                tests.append(_negated(condition(value)))
            case _:
                operators = value if isinstance(value, Mapping) else {"eq": value}
                tests.extend(_comparison(key, operator, wanted) for operator, wanted in operators.items())
    return _combined(all, tests)


def _combined(how: Callable[[Iterable[bool]], bool], tests: Sequence[Callable[[Filed], bool]]) -> Callable[[Filed], bool]:
    return lambda file: how(test(file) for test in tests)


def _negated(test: Callable[[Filed], bool]) -> Callable[[Filed], bool]:
    return lambda file: not test(file)


def _comparison(field: str, operator: str, wanted: Any) -> Callable[[Filed], bool]:
    if operator not in _OPERATORS:
        raise InvalidArguments(f"unknown operator {operator!r}; there are {', '.join(_OPERATORS)}, and and, or, not around them")
    if operator in ("in", "nin") and (isinstance(wanted, str) or not isinstance(wanted, Iterable)):
        raise InvalidArguments(f"{operator!r} takes a list of values")
    compare = _OPERATORS[operator]
    return lambda file: compare(file.field(field), wanted)


def _equals(value: Any, wanted: Any) -> bool:
    if isinstance(value, (list, tuple)) and not isinstance(wanted, (list, tuple)):
        return any(_equals(item, wanted) for item in value)
    if isinstance(value, (list, tuple)) or value is None or wanted is None:
        return value == wanted or (isinstance(value, (list, tuple)) and list(value) == list(wanted))
    one, other = _comparable(value, wanted)
    return bool(one == other)


def _ordered(value: Any, wanted: Any) -> int | None:
    """-1, 0 or 1; None where there is no order."""
    if value is None or wanted is None or isinstance(value, (list, tuple, dict)):
        return None
    one, other = _comparable(value, wanted)
    return 1 if one > other else -1 if one < other else 0


def _comparable(value: Any, wanted: Any) -> tuple[Any, Any]:
    """Both as numbers if both are, else as text: frontmatter knows text only, and ISO dates sort as text."""
    one, other = _number(value), _number(wanted)
    if one is not None and other is not None:
        return one, other
    return str(value).casefold(), str(wanted).casefold()


def _number(value: Any) -> Decimal | None:
    """The number that a value is, exactly: ids may have many digits, and a person may be called Nan."""
    text = str(int(value) if isinstance(value, bool) else value).strip()
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond all bounds
        return None


def _contains(value: Any, wanted: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return _equals(value, wanted)
    return value is not None and str(wanted).casefold() in str(value).casefold()


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": _equals,
    "ne": lambda value, wanted: not _equals(value, wanted),
    "in": lambda value, wanted: any(_equals(value, item) for item in wanted),
    "nin": lambda value, wanted: not any(_equals(value, item) for item in wanted),
    "gt": lambda value, wanted: _ordered(value, wanted) == 1,
    "gte": lambda value, wanted: _ordered(value, wanted) in (0, 1),
    "lt": lambda value, wanted: _ordered(value, wanted) == -1,
    "lte": lambda value, wanted: _ordered(value, wanted) in (-1, 0),
    "contains": _contains,
}


def first_day(value: str | date, name: str, *, last: bool = False) -> date:
    """The day that a filter means.

    Raises:
        InvalidArguments: it is none.
    """
    found = value if isinstance(value, date) else last_of(value) if last else first_of(value)
    if found is None:
        raise InvalidArguments(f"{name} must be a day such as 2024-05-17, a month or a year, not {value!r:.40}")
    return date(found.year, found.month, found.day)
