"""Clusters: files of one folder and one type that say much the same, small enough for one prompt. Floor 4."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from mdmemory.backends.paths import owner
from mdmemory.backends.protocol import File, etag_of
from mdmemory.care.alike import alike, clusters
from mdmemory.care.progress import Progress
from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.days import first_of
from mdmemory.files.journal import SUMMARIES
from mdmemory.files.memory_file import parse
from mdmemory.folder.any_folder import Folder, parts_of
from mdmemory.folder.entities import fold
from mdmemory.folder.known import Known, etag_in
from mdmemory.folder.proposals.queue import Place, Queue
from mdmemory.folder.reading import read_all
from mdmemory.recall.tokens import terms_with_words
from mdmemory.render import estimate_tokens

MAX_FILES: Final = 8  # in a cluster
MAX_BYTES: Final = 16_000  # of one file
MAX_TOKENS: Final = 6_000  # of a cluster
LEAST_OF_SMALLER, LEAST_OF_BOTH = 0.45, 0.2  # less than for a finding of the doctor, as a model judges, and then a person
_LINK: Final = re.compile(r"\[\[([^\[\]|#\n]+)")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Files that say much the same.

    Args:
        place: the folder in which they are.
        texts: by whole path.
        only: by path, the words of each that no file outside of the cluster has, by their terms.
        linked: what links in files of the folder call their targets, folded.
        tokens: what they take in a prompt, estimated.
    """

    place: Place
    texts: Mapping[str, str]
    etags: frozenset[str]
    only: Mapping[str, Mapping[str, str]]
    linked: AbstractSet[str]
    tokens: int


@dataclass(frozen=True, slots=True)
class Ground:
    """What there is to consolidate.

    Args:
        clusters: the largest first.
        files, lines, size: how many files there are in all, and their lines and bytes.
    """

    clusters: Sequence[Cluster]
    files: int
    lines: int
    size: int


@dataclass(slots=True)
class _Seen:
    """What a look at every file of one folder brings.

    Args:
        terms: by the path inside the folder, the words of each file that is not broken, by their terms.
    """

    terms: dict[str, Mapping[str, str]] = field(default_factory=dict)
    linked: set[str] = field(default_factory=set)
    lines: int = 0
    size: int = 0

    def add(self, files: Mapping[str, bytes], languages: tuple[str, ...]) -> None:
        """Take in some files."""
        for path, data in files.items():
            with suppress(InvalidMemoryFile):
                file = parse(path, data)
                text = "\n".join((file.header.name, file.header.description, file.body))
                self.terms[path] = terms_with_words(text, languages)
                self.linked.update(map(fold, _LINK.findall(file.body)))
            self.lines, self.size = self.lines + data.count(b"\n") + 1, self.size + len(data)


async def survey(folder: Folder, queues: Mapping[str, Queue], limit: int, progress: Progress) -> Ground:
    """Read everything, and find at most `limit` clusters in what may be changed.

    Args:
        queues: of each folder that may be changed, by prefix.

    Raises:
        Unavailable, UnsafeFile: a folder can't be read.
    """
    parts, found, looks = parts_of(folder), list[Cluster](), list[_Seen]()
    total, done = sum(len(parts[prefix].files) for prefix in queues), 0
    for prefix, queue in queues.items():
        place, seen = Place(prefix, parts[prefix]), _Seen()
        paths = [path for path in place.part.files if owner(prefix + path, parts) == prefix]
        async for some in read_all(place.part, paths):
            there = {path: file.data for path, file in some.items() if isinstance(file, File)}
            await asyncio.to_thread(seen.add, there, folder.config.languages)
            done += len(some)
            progress(done, total)
        found += await _clusters(place, queue, seen, limit)
        looks.append(seen)
    found.sort(key=lambda cluster: -len(cluster.texts))  # stable: among those of one size, as they were found
    sums = (sum(values) for values in zip(*((len(seen.terms), seen.lines, seen.size) for seen in looks), strict=True))
    return Ground(found[:limit], *sums)


async def _read(place: Place, paths: Sequence[str]) -> dict[str, bytes]:
    """The files that can be read, with the paths inside their folder."""
    return {path: file.data for path, file in (await place.part.read_many(paths)).items() if isinstance(file, File)}


async def _clusters(place: Place, queue: Queue, seen: _Seen, limit: int) -> list[Cluster]:
    ours = frozenset[str]().union(*queue.etags("accepted"), *(each.sources.values() for each in queue.waiting))
    types = dict[str, str | None]()
    for path in seen.terms:
        known = place.part.files.get(path)
        if known and known.header and known.etag and known.etag not in ours and _may_change(path, known, place.part.outdated):
            types[path] = known.header.type
    pairs = await asyncio.to_thread(alike, {path: seen.terms[path].keys() for path in types}, LEAST_OF_SMALLER, LEAST_OF_BOTH)
    alikes = clusters([pair for pair in pairs if types[pair.path] == types[pair.other]], MAX_FILES)
    holding = Counter(term for each in seen.terms.values() for term in each)
    asked, found = queue.etags("asked", "rejected"), list[Cluster]()
    for paths in alikes:
        cluster = await _cluster(place, paths, seen, holding) if len(found) < limit else None
        if cluster and not any(cluster.etags <= each for each in asked):
            found.append(cluster)
    return found


def _may_change(path: str, known: Known, outdated: AbstractSet[str]) -> bool:
    """Whether a file may become part of another: not when it is pinned, ends some day, or is a summary, which grows by itself."""
    header = known.header
    if header is None or header.pinned or header.valid_until or known.size > MAX_BYTES:
        return False
    begins = first_of(header.valid_from)
    return path not in outdated and not path.startswith(SUMMARIES) and not (begins and begins > date.today())


async def _cluster(place: Place, paths: Sequence[str], seen: _Seen, holding: Mapping[str, int]) -> Cluster | None:
    """The files as they are now, without the longest where all are too much for one prompt; None where one is left."""
    data = await _read(place, paths)
    texts = {path: each.decode() for path, each in data.items() if etag_of(each) == etag_in(place.part.files.get(path))}
    sizes = {path: estimate_tokens(text) for path, text in texts.items()}
    while sum(sizes.values()) > MAX_TOKENS:
        del sizes[max(sizes, key=lambda path: sizes[path])]
    if len(sizes) < 2:
        return None
    inside = Counter(term for path in sizes for term in seen.terms[path])
    only = {
        place.prefix + path: {term: word for term, word in seen.terms[path].items() if holding[term] == inside[term]}
        for path in sizes
    }
    shown = {place.prefix + path: texts[path] for path in sorted(sizes)}
    return Cluster(place, shown, frozenset(etag_of(data[path]) for path in sizes), only, seen.linked, sum(sizes.values()))
