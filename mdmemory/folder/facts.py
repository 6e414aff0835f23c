"""Facts of all files, by subject, predicate, object and day, and the timeline of one entity. Floor 3.

Nothing is indexed: only files whose text may hold facts or links are read, each once while it stays as it is.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

from mdmemory.backends.protocol import File
from mdmemory.files.days import first_of, last_of
from mdmemory.files.facts import Fact, facts_of
from mdmemory.files.facts import fold as fold_predicate
from mdmemory.files.fields import Link, links_in, links_of
from mdmemory.folder.any_folder import Folder
from mdmemory.folder.entities import Entities, fold
from mdmemory.folder.known import Known
from mdmemory.folder.search import filed
from mdmemory.recall.filters import Filed, begins_on, first_day, outdated, superseded

logger = logging.getLogger("mdmemory")


@dataclass(frozen=True, slots=True)
class Event:
    """Something about an entity, in time.

    Args:
        kind: a fact, a file that supersedes another, or the first link or the tag of a file that speaks of it.
        text: for people.
        valid_from, valid_until: as written; None for an open end, or where no date is known.
        contradicts: other facts that are open at the same time, for people.
    """

    kind: Literal["fact", "supersedes", "link", "tag"]
    path: str
    line: int | None
    text: str
    valid_from: str | None
    valid_until: str | None
    fact: Fact | None = None
    contradicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Read:
    """What one version of a file says."""

    version: str | tuple[int, int]
    facts: tuple[Fact, ...]
    links: tuple[Link, ...]


class Facts:
    """Every fact of a folder, as of its last `refresh`."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._kept: dict[str, _Read] = {}

    async def find(
        self, subject: str | None, predicate: str | None, object: str | None, as_of: str | date | None = None
    ) -> list[Fact]:
        """The facts that are valid on a day, today by default, by path and line.

        Raises:
            InvalidArguments: a name that could mean several files, or no day.
        """
        now = _Now(self._folder, as_of)
        about, what = now.entity(subject), now.entity(object)
        paths = {path for path, known in self._folder.files.items() if known.may_state} - now.outdated
        found = now.dated(await self._read(paths & about.paths if about else paths))
        return [
            fact
            for fact in sorted(found, key=lambda fact: (fact.path, fact.line))
            if is_valid(fact, now.day)
            and (predicate is None or fold_predicate(fact.predicate) == fold_predicate(predicate))
            and (what is None or now.is_object(fact, what))
        ]

    async def timeline(self, entity: str, as_of: str | date | None = None) -> list[Event]:
        """What is known of an entity in the order of time; what has no date comes first.

        These are facts whose subject or object it is, its files that supersede one another, and files that link to it or have
        its name as a tag.

        Args:
            as_of: a day; only what was valid then.

        Raises:
            InvalidArguments: a name that could mean several files, or no day.
        """
        now = _Now(self._folder, as_of)
        it = now.entity(entity) or _Entity(frozenset(), frozenset())
        read = await self._read([path for path, known in self._folder.files.items() if known.may_state or known.may_link])
        facts = now.dated(read)
        rivals = _rivals(fact for fact in facts if as_of is None or is_valid(fact, now.day))
        events = [_of_fact(fact, rivals) for fact in facts if fact.path in it.paths or now.is_object(fact, it)]
        events += now.supersessions(it)
        events += now.mentions(it, read, it.paths | {event.path for event in events})
        if as_of is not None:
            events = [event for event in events if event.path not in now.outdated and is_valid(event, now.day)]
        return sorted(events, key=lambda event: (_when(event), event.path, event.line or 0))

    async def _read(self, paths: Iterable[str]) -> dict[str, _Read]:
        """What these files say; those that are as they were are not read again."""
        files = self._folder.files
        versions = {path: _version(files[path]) for path in paths}
        left = [path for path, version in versions.items() if path not in self._kept or self._kept[path].version != version]
        for path, found in (await self._folder.read_many(left) if left else {}).items():
            if isinstance(found, File):
                facts, links = facts_of(path, found.data), links_of(path, found.data)
                self._kept[path] = _Read(versions[path], tuple(facts), tuple(links))
            else:
                self._kept.pop(path, None)
                logger.warning("%s is left out of the facts: %s", path, found.reason)
        self._kept = {path: read for path, read in self._kept.items() if path in files}
        return {path: self._kept[path] for path in versions if path in self._kept}


@dataclass(frozen=True, slots=True)
class _Entity:
    """Who or what is meant.

    Args:
        paths: its file, and the versions of it; empty when no file is called so.
        names: of these, or the one it was asked by, folded.
    """

    paths: AbstractSet[str]
    names: AbstractSet[str]


class _Now:
    """The folder's files as of a day."""

    def __init__(self, folder: Folder, as_of: str | date | None) -> None:
        self.day = date.today() if as_of is None else first_day(as_of, "as_of")
        self.files: Mapping[str, Filed] = {file.path: file for file in filed(folder.files, folder.catalog.mount_of)}
        self.outdated = outdated(self.files.values(), self.day if as_of is not None else None)
        self.superseded = superseded(self.files.values())
        self._entities = Entities(self.files.values(), self.outdated, self.superseded)

    def entity(self, name: str | None) -> _Entity | None:
        """Who is meant; a name that no file has may be one that facts, links and tags use."""
        if name is None:
            return None
        path = self._entities.resolve(name)
        paths = self._entities.versions(path) if path else set()
        return _Entity(paths, {fold(name)} | self._entities.names(paths))

    def is_object(self, fact: Fact, entity: _Entity) -> bool:
        """Whether a fact's object is it."""
        if fact.link is not None:
            return self.leads_to(fact.link, fact.path, entity)
        return fold(fact.object) in entity.names or any(
            self.leads_to(link.target, fact.path, entity) for link in links_in(fact.object)
        )

    def leads_to(self, link: str, path: str, entity: _Entity) -> bool:
        """Whether a link leads to it; where no file is meant, by its name."""
        found = self._entities.target(link, path)
        return found in entity.paths if found else fold(link) in entity.names

    def dated(self, read: Mapping[str, _Read]) -> list[Fact]:
        """The facts, with the file's dates where their own line has none."""
        return [
            replace(
                fact,
                valid_from=fact.valid_from or self.files[path].header.valid_from,
                valid_until=fact.valid_until or self._end(path),
            )
            for path, each in read.items()
            for fact in each.facts
        ]

    def _end(self, path: str) -> str | None:
        newer = [self.files[each] for each in self.superseded.get(path, ())]
        return self.files[path].header.valid_until or (_since(min(newer, key=begins_on)) if newer else None)

    def supersessions(self, entity: _Entity) -> Iterator[Event]:
        """The versions of an entity's file, one after the other."""
        for old in sorted(entity.paths & self.superseded.keys()):
            for new in self.superseded[old]:
                newer = self.files[new]
                text = f"{newer.header.name} supersedes {self.files[old].header.name} ({old})"
                yield Event("supersedes", new, None, text, _since(newer), None)

    def mentions(self, entity: _Entity, read: Mapping[str, _Read], known: AbstractSet[str]) -> Iterator[Event]:
        """The other files that link to it or have its name as a tag."""
        names = {fold_predicate(name) for name in entity.names}
        for path in self.files.keys() - known:
            file, links = self.files[path], read[path].links if path in read else ()
            link = next((link for link in links if self.leads_to(link.target, path, entity)), None)
            about = " — ".join(part for part in (file.header.name, file.header.description) if part)
            if link:
                yield Event("link", path, link.line, about, _since(file), file.header.valid_until)
            elif any(fold_predicate(tag) in names for tag in file.header.tags):
                yield Event("tag", path, None, about, _since(file), file.header.valid_until)


def is_valid(thing: Fact | Event, day: date) -> bool:
    """Whether something is valid on a day."""
    first, last = first_of(thing.valid_from), last_of(thing.valid_until)
    return (first is None or first <= day) and (last is None or day <= last)


def _since(file: Filed) -> str:
    return file.header.valid_from or file.day.isoformat()


def _of_fact(fact: Fact, rivals: Mapping[tuple[str, str], list[Fact]]) -> Event:
    others = [other for other in rivals.get(_key(fact), ()) if _contradicts(fact, other)]
    text = f"{fact.subject} — {fact.predicate}: {fact.object}"
    named = tuple(f"{other.object} ({other.path}, line {other.line})" for other in others)
    return Event("fact", fact.path, fact.line, text, fact.valid_from, fact.valid_until, fact, named)


def _rivals(facts: Iterable[Fact]) -> Mapping[tuple[str, str], list[Fact]]:
    """Open facts by file and predicate."""
    found = defaultdict[tuple[str, str], list[Fact]](list)
    for fact in facts:
        if fact.valid_until is None:
            found[_key(fact)].append(fact)
    return found


def _key(fact: Fact) -> tuple[str, str]:
    return fact.path, fold_predicate(fact.predicate)


def _contradicts(fact: Fact, other: Fact) -> bool:
    """Whether both are open and say different things; what has no dates at all may well be true beside another."""
    is_dated = fact.valid_from is not None or other.valid_from is not None
    is_open = fact.valid_until is None and other.valid_until is None
    return is_open and is_dated and fact.line != other.line and fold(fact.object) != fold(other.object)


def _when(event: Event) -> date:
    return first_of(event.valid_from) or last_of(event.valid_until) or date.min


def _version(known: Known) -> str | tuple[int, int]:
    return known.etag or (known.mtime_ns, known.size)
