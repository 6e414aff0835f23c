"""The versions of all files in one piece, which loads as fast as a look at the files takes. Floor 2."""

from __future__ import annotations

import json
from array import array

from mdmemory.backends.listing import Listing, Versions
from mdmemory.backends.protocol import Version

_STATE = 4  # numbers in a version of a disk
_LIMIT = 2**63


def packed(versions: Versions) -> tuple[str, bytes]:
    """Folders with their names, as JSON, and the versions of a disk, each four numbers of eight bytes; the JSON has the others."""
    numbers, folders, others = array("q"), [], dict[str, Version]()
    for prefix, listing in versions.listings.items():
        folders.append((prefix, listing.mark, listing.folders, "/".join(listing.files)))
        for name, version in listing.files.items():
            if isinstance(version, str) or len(version) != _STATE or not all(-_LIMIT <= number < _LIMIT for number in version):
                others[prefix + name], version = version, (0,) * _STATE
            numbers.extend(version)
    return json.dumps([folders, others]), numbers.tobytes()


def unpacked(text: str, data: bytes) -> Versions:
    """Read what `packed` wrote.

    Raises:
        ValueError, TypeError: it makes no sense.
    """
    folders, others = json.loads(text)
    numbers = array("q")
    numbers.frombytes(data)
    versions, each = Versions(), zip(*(numbers[n::_STATE] for n in range(_STATE)), strict=True)
    for prefix, mark, below, names in folders:
        files = dict(zip(names.split("/"), each)) if names else {}  # noqa: B905  # it goes on with the next folder
        versions.listings[prefix] = Listing(tuple(mark), tuple(below), files)
    for path, version in others.items():
        versions.put(path, as_version(version))
    return versions


def as_version(version: str | list[int]) -> Version:
    """A version as JSON has it."""
    return version if isinstance(version, str) else tuple(version)
