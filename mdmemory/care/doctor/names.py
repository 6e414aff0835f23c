"""What is wrong between files: names, copies, what supersedes what, and what says the same. Floor 4, no input or output."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from mdmemory.backends.paths import collision_key
from mdmemory.care.alike import Pair
from mdmemory.care.doctor.findings import Finding
from mdmemory.folder.known import INDEX, Known, etag_in
from mdmemory.recall.filters import Filed, superseded

# How sync programs name the other copy: Dropbox and ownCloud, Syncthing, Nextcloud, Seafile.
_CONFLICTED = re.compile(
    r"[ _]?\((?:[^()]*['’]s )?(?:conflicted copy|case conflict|SFConflict)[^()]*\)|\.sync-conflict-[\dA-Z-]+|_conflict-\d{8}-\d{6}",
    re.IGNORECASE,
)


def original_of(path: str) -> str | None:
    """The file of which a sync program left this one as the other copy; None when it is no such copy."""
    original = _CONFLICTED.sub("", path)
    return None if original == path else original


def check_names(files: Mapping[str, Known]) -> Iterator[Finding]:
    """Copies of sync programs, and names that are easily taken for each other."""
    twins: defaultdict[str, list[str]] = defaultdict(list, {collision_key(INDEX): [INDEX]})
    for path, known in files.items():
        twins[collision_key(path)].append(path)
        if original := original_of(path):
            there = "" if original in files or original == INDEX else ", which is gone"
            is_same = original in files and etag_in(known) is not None and etag_in(known) == etag_in(files[original])
            what = "it has the same bytes" if is_same else "merge the two by hand"
            yield Finding("conflicted-copy", path, None, f"a sync program's other copy of {original}{there}; {what}", is_same)
    for paths in twins.values():
        for path in sorted(paths)[1:]:
            yield Finding("lookalike", path, None, f"is easily taken for {min(paths)}")


def check_order(filed: list[Filed]) -> Iterator[Finding]:
    """What supersedes nothing, or each other."""
    newer = superseded(filed)
    named = {path for paths in newer.values() for path in paths}
    for file in filed:
        if file.header.supersedes and file.path not in named:
            yield Finding("supersedes-nothing", file.path, None, f"it supersedes {file.header.supersedes!r}, which is not there")
    for path in sorted(newer):
        if any(path in newer.get(other, ()) for other in newer[path]):
            yield Finding("supersedes-each-other", path, None, f"it and {', '.join(newer[path])} supersede each other")


def check_alike(pairs: list[Pair], named: Collection[str]) -> Iterator[Finding]:
    """What says much the same as another file.

    Args:
        named: copies that are told of for their names.
    """
    for pair in pairs:
        if pair.path in named or pair.other in named:
            continue
        yield Finding("duplicate", pair.other, None, f"says much the same as {pair.path}: {pair.share:.0%} of the words that count")
