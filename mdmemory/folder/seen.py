"""What a scan saw, beside what was known before: which files are gone, and which are conversations. Floor 3, pure."""

from __future__ import annotations

from mdmemory.backends.listing import Versions
from mdmemory.backends.protocol import COULD_NOT_LOOK, Entry, Scan
from mdmemory.files.journal import JOURNAL, session_of


def seen(known: Versions, scan: Scan) -> tuple[Versions, list[str]]:
    """The versions as of a scan, which keep what it could not look at; and the paths of what is gone."""
    now = Versions.of({path: entry.version for path, entry in scan.files.items()} if scan.versions is None else scan.versions)
    unseen = tuple(path for path, reason in scan.skipped.items() if reason.startswith(COULD_NOT_LOOK))
    gone = []
    for path in known.missing_from(now):
        if any(path == place or path.startswith(f"{place}/") for place in unseen):  # it is not known to be gone
            now.put(path, known[path])
        else:
            gone.append(path)
    return now, sorted(gone)


def journals_in(versions: Versions, scan: Scan) -> dict[str, Entry]:
    """Each conversation's file."""
    found = {}
    for prefix in (prefix for prefix in versions.listings if prefix.startswith(JOURNAL)):
        for path in (prefix + name for name in versions.listings[prefix].files):
            if session_of(path) is not None and path in scan.files:
                found[path] = scan.files[path]
    return found
