"""What others changed: other processes tell of it in the log, people and their editors don't. Floor 3, no input or output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mdmemory.backends.paths import fault
from mdmemory.backends.protocol import MAX_FILE_BYTES, TAIL_BYTES, File, FileProblem, Range, etag_of
from mdmemory.files.history import UNKNOWN, Intent, read_log
from mdmemory.folder.known import Difference, etag_in, is_memory_path, is_same

OVERLAP_BYTES = 64
MAX_OUTSIDE_KEPT = 20  # of more changes than this, as from a git checkout, the history keeps the hashes only


@dataclass(frozen=True, slots=True)
class Told:
    """What a part of the log tells.

    Args:
        finished: the commits that are done, in the order written.
        unfinished: those that are under way, or were cut short.
        more: whether the log goes on.
    """

    finished: tuple[Intent, ...] = ()
    unfinished: tuple[Intent, ...] = ()
    more: bool = False


class LogReader:
    """Reads the log from its last lines on, and from then on what is added."""

    def __init__(self) -> None:
        self._position: int | None = None
        self._before = b""
        """The last of what stands before the position: read again, as it shows whether the log was rewritten."""
        self._tail = TAIL_BYTES

    @property
    def wanted(self) -> Range:
        """The part to read next."""
        if self._position is None:
            return Range(-self._tail, self._tail)
        return Range(self._position - len(self._before), MAX_FILE_BYTES)

    def take(self, log: File | FileProblem) -> Told:
        """Take in what was read of `wanted`."""
        if isinstance(log, FileProblem):
            if log.kind == "absent":
                self._position, self._before = 0, b""
            return Told()
        start = max(0, log.size - self._tail) if self._position is None else self._position
        if not log.data.startswith(self._before) or log.size < start:  # it was rewritten, as by a purge
            self._position, self._before = None, b""
            return Told(more=True)
        data = log.data[len(self._before) :]
        if self._position is None and start and b"\n" not in data[:-1] and self._tail < MAX_FILE_BYTES:
            self._tail = MAX_FILE_BYTES  # the last line is longer than what was read
            return Told(more=True)
        more = start + len(data) < log.size
        end = data.rfind(b"\n") + 1  # a line that is being written is left for the next time
        tail = read_log(data[:end])
        for intent in tail.unfinished[:1]:  # and so is a commit that is under way
            end = max(0, data.find(f'"id":"{intent.id}"'.encode()) - 1)
        end = end or (len(data) if more else 0)
        self._position = start + end
        self._before = (self._before + data[:end])[-OVERLAP_BYTES:]
        return Told(_usable(intent for intent in tail.intents if intent not in tail.unfinished), _usable(tail.unfinished), more)


def _usable(intents: Iterable[Intent]) -> tuple[Intent, ...]:
    """The commits without what no commit of ours can name: the log is a file, and anyone may have written there."""
    return tuple(
        replace(
            intent,
            files=tuple(change for change in intent.files if not fault(change.path)),
            added=tuple(added for added in intent.added if is_memory_path(added.path) and not fault(added.path)),
        )
        for intent in intents
    )


class Outside:
    """Changes that no line of the log tells of: a person made them."""

    def __init__(self) -> None:
        self.changes: dict[str, Difference] = {}
        """Of each path, what was known before the first of them and what is known now."""

    def notice(self, changed: Mapping[str, Difference]) -> None:
        """Add what a look at the folder found."""
        for path, (before, now) in changed.items():
            first, _ = self.changes.pop(path, (before, now))
            if not is_same(first, now):  # else it was put back
                self.changes[path] = (first, now)

    def explain(self, commits: Iterable[Intent]) -> None:
        """Drop what the log tells of."""
        for change in (change for intent in commits for change in intent.files):
            _, now = self.changes.get(change.path, (None, None))
            if (now.etag or UNKNOWN if now else None) == change.after:
                self.changes.pop(change.path, None)

    def explain_added(self, grown: Mapping[str, File | FileProblem]) -> None:
        """Drop files to which the log says that something was added, and which begin with all that was known of them."""
        for path, file in grown.items():
            before, now = self.changes.get(path, (None, None))
            if before is None or now is None or not isinstance(file, File):
                continue
            if before.etag in (None, etag_of(file.data[: before.size])):
                del self.changes[path]

    def kept(self) -> list[str]:
        """The paths whose bytes the history keeps."""
        there = [path for path, (_, now) in self.changes.items() if now is not None]
        return there if len(self.changes) <= MAX_OUTSIDE_KEPT else []

    def moved(self) -> Mapping[str, str]:
        """New path by old path of each file that a person moved: one went, and another with its bytes came."""
        gone = {etag_in(before): path for path, (before, now) in self.changes.items() if now is None}
        came: dict[str, list[str]] = {}
        for path, (before, now) in self.changes.items():
            if before is None and (etag := etag_in(now)):
                came.setdefault(etag, []).append(path)
        return {gone[etag]: paths[0] for etag, paths in came.items() if etag in gone and len(paths) == 1}
