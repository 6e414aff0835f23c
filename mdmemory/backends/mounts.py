"""Which disk a folder lies on: this machine's own, where every change shows, or a network's. Floor 1."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

MOUNTS: Final = Path("/proc/mounts")
_OWN: Final = frozenset(  # on these the system sees every change, and a folder's times tell of it; of others nobody knows
    "bcachefs btrfs ecryptfs ext2 ext3 ext4 f2fs jfs ntfs3 overlay ramfs reiserfs tmpfs xfs zfs".split()
)


def is_own_disk(root: Path, mounts: Path = MOUNTS) -> bool:
    """Whether the system sees every change below a folder: this is Linux, and all disks there are its own.

    Args:
        root: resolved.
        mounts: where the system lists its mounts.
    """
    if sys.platform != "linux":
        return False
    try:
        kinds = _kinds(mounts.read_bytes())
    except OSError:
        return False
    above = next(place for place in (str(root), *map(str, root.parents), "") if place in kinds or not place)
    here = [kind for place, kind in kinds.items() if place == above or place.startswith(f"{root}/")]
    return bool(here) and _OWN.issuperset(here)


@lru_cache(maxsize=1)  # opening a folder asks for its disk and for that of its cache
def _kinds(mounts: bytes) -> Mapping[str, str]:
    """Each place where a disk is mounted, with its kind; of several mounted one over the other, the last."""
    lines = [line.split(" ") for line in mounts.decode(errors="surrogateescape").splitlines()]
    return {_unescaped(line[1]): line[2] for line in lines if len(line) > 2}


def _unescaped(place: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), place) if "\\" in place else place
