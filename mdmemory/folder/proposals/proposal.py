"""A proposal: a patch of a few files that waits for a person, and how it is written down. Floor 3, no input or output."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, Literal, get_args

from mdmemory.backends.protocol import etag_of
from mdmemory.files.changes import Change, Create, Delete, Replace
from mdmemory.files.diffs import unified
from mdmemory.files.safety import instructions_in
from mdmemory.folder.proposals.losses import Losses, measure

Kind = Literal["merge", "split", "rewrite", "retire", "add", "update", "supersede"]
"""The first four are of consolidation, the others of what is drawn from conversations."""
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
DRAWN: Final[tuple[Kind, ...]] = ("add", "update", "supersede")
CONSOLIDATED: Final[tuple[Kind, ...]] = tuple(kind for kind in KINDS if kind not in DRAWN)
CONSOLIDATION: Final = "consolidation"
MAX_WAITING: Final = 100  # in one folder
Status = Literal["asked", "rejected", "accepted"]
Texts = Mapping[str, tuple[str | None, str | None]]


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is to become of some files of one folder.

    Args:
        id: the same for the same changes.
        reason: the model's.
        texts: by path, each file before and after; None for absent.
        rare: words of the sources that no other file had.
        limit: the share of lines or bytes that may go without being asked for.
        run: why this run had removed enough before; "" if it had not.
        stale: which source has changed since, or whose place is taken; "" while it can be accepted.
        sessions: the conversations that it was drawn from; none for consolidation.
        entries: of their journals, those that say it, as `source` names them.
    """

    id: str
    kind: Kind
    reason: str
    texts: Texts
    rare: tuple[str, ...] = ()
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    is_edited: bool = False
    limit: float = 1.0
    run: str = ""
    stale: str = ""
    languages: tuple[str, ...] = ("english",)
    sessions: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """Where it comes from, in words."""
        return f"conversation {', '.join(self.sessions)}" if self.sessions else CONSOLIDATION

    @property
    def author(self) -> str:
        """Who the history says made the changes once they are accepted; the policy is asked about this one."""
        return extractor_of(self.sessions[-1]) if self.sessions else CONSOLIDATION

    @property
    def title(self) -> str:
        """What it does, in a line."""
        made = ", ".join(path for path, (_, after) in self.texts.items() if after is not None)
        sources = ", ".join(self.sources)
        new = ", ".join(path for path, (before, _) in self.texts.items() if before is None)
        told = {"merge": f"merge {sources} into {made}", "split": f"split {sources} into {made}", "add": f"add {new}"}
        told["supersede"] = f"supersede {sources} by {new}"
        return told.get(self.kind, f"{self.kind} {sources}")

    @property
    def sources(self) -> Mapping[str, str]:
        """The etag of each file that it is made from, by path."""
        return {path: etag_of(before.encode()) for path, (before, _) in self.texts.items() if before is not None}

    @property
    def results(self) -> Mapping[str, str]:
        """The etag of each file that there is afterwards, by path."""
        return {path: etag_of(after.encode()) for path, (_, after) in self.texts.items() if after is not None}

    @property
    def diffs(self) -> Mapping[str, str]:
        """Each file before and after, as `diff -u` shows them, by path."""
        return {path: unified(path, _bytes(before), _bytes(after)) for path, (before, after) in self.texts.items()}

    @property
    def changes(self) -> list[Change]:
        """What `apply` does when it is accepted; a file that has changed since is a conflict."""
        changes: list[Change] = []
        for path, (before, after) in self.texts.items():
            if after is None:
                changes.append(Delete(path, self.sources[path], absorbed=True))
            elif before is None:
                changes.append(Create(path, after.encode()))
            else:
                changes.append(Replace(path, after.encode(), self.sources[path]))
        return changes

    @property
    def is_stale(self) -> bool:
        """Whether it can no longer be accepted."""
        return bool(self.stale)

    @property
    def way_on(self) -> str:
        """What a person can do once it is stale, in words."""
        return f"reject it, {'and save by hand what of it still holds' if self.sessions else 'or consolidate anew'}"

    @property
    def losses(self) -> Losses:
        """What is lost, and what is new."""
        losses = _measured(tuple(self.texts.items()), self.rare, self.languages)
        return replace(losses, new=()) if self.kind == "retire" or self.sessions else losses  # what is new is what was said

    @property
    def guard(self) -> str:
        """Why it is only accepted on an explicit yes; "" when nothing speaks against it."""
        found, losses = list[str](), self.losses
        if self.kind == "retire":
            found.append(f"agents no longer see {_count(len(self.texts), 'file')}")
        elif losses.share > self.limit:
            (gone, gone_lines), (total, lines) = losses.gone, losses.total
            told = f"{gone_lines} of {_count(lines, 'line')} and {gone / total:.0%} of the text"
            found.append(f"it removes {told}, and {self.limit:.0%} may go unasked")
        found += [f"it loses {', '.join(losses.details)}"] if losses.details else []
        found += [f"it says what no source does: {', '.join(losses.new)}"] if losses.new else []
        known = {place.text for before, _ in self.texts.values() for place in instructions_in(before or "", limit=50)}
        found += [
            f"{path} reads like an instruction to a model: {place.text}"
            for path, (_, after) in self.texts.items()
            for place in instructions_in(after or "")
            if place.text not in known
        ]
        return "; ".join([*found, *([self.run] if self.run else [])])

    @property
    def is_lossless(self) -> bool:
        """Whether the guard says nothing, and every word stays in some file."""
        return not (self.guard or self.losses.words)

    @property
    def when_accepted(self) -> tuple[Settled, ...]:
        """What is noted then: what consolidation wrote need not be looked at again."""
        return () if self.sessions else (Settled(self.id, "accepted", frozenset(self.results.values())),)

    @property
    def when_rejected(self) -> tuple[Settled, ...]:
        """What is noted then, so that no run proposes the same; of a conversation, the folder's tombstones name the entries."""
        return () if self.sessions else (Settled(self.id, "rejected", frozenset(self.sources.values())),)

    def after(self, accepted: Proposal) -> Proposal:
        """The same once one that it goes on from was accepted, whose changes are then no longer its own."""
        if not (self.sessions and accepted.sessions and set(accepted.entries) <= set(self.entries)):
            return self
        done = accepted.texts
        texts = {
            path: (done[path][1], after) if path in done and done[path][0] == before else (before, after)
            for path, (before, after) in self.texts.items()
        }
        texts = {path: (before, after) for path, (before, after) in texts.items() if before != after}
        return replace(self, kind=kind_of(texts), texts=texts) if texts else self

    def as_json(self) -> dict[str, Any]:
        """For `review --json`."""
        losses = self.losses
        lines = [{"path": each.path, "line": each.line, "text": each.text, "reworded": each.is_reworded} for each in losses.lines]
        lost = {"share": round(losses.share, 3), "details": losses.details, "words": losses.words, "lines": lines}
        about = {"id": self.id, "kind": self.kind, "title": self.title, "from": self.origin, "reason": self.reason}
        about |= {"at": self.at.isoformat()}
        state = {"stale": self.stale or None, "guard": self.guard or None, "edited": self.is_edited}
        return {**about, **state, "sources": self.sources, "lost": lost, "new": losses.new, "diff": self.diffs}


@dataclass(frozen=True, slots=True)
class Settled:
    """What need not be asked again, by the etags of the files concerned.

    Args:
        status: `asked`: a model has seen the cluster; `rejected`: a person does not want these sources changed; `accepted`: what
            a proposal made of them.
    """

    id: str
    status: Status
    etags: frozenset[str]


@lru_cache(maxsize=2 * MAX_WAITING)
def _measured(
    texts: tuple[tuple[str, tuple[str | None, str | None]], ...], rare: tuple[str, ...], languages: tuple[str, ...]
) -> Losses:
    """What is lost, which takes a second for ten large files: all that waits is measured once."""
    before = {path: text for path, (text, _) in texts if text is not None}
    return measure(before, [text for _, (_, text) in texts if text is not None], rare, languages)


def extractor_of(session: str) -> str:
    """Who the history says made what was drawn from a conversation; what holds for agents, policies included, holds for it."""
    return f"agent:{session}/extractor"


def kind_of(texts: Texts) -> Kind:
    """The kind of a proposal that was drawn from conversations."""
    is_new = {before is None for before, _ in texts.values()}
    return "supersede" if len(is_new) > 1 else "add" if is_new == {True} else "update"


def id_of(kind: Kind, texts: Texts) -> str:
    """The id of a proposal with these changes."""
    return hashlib.sha256(json.dumps([kind, sorted(texts.items())]).encode(errors="surrogatepass")).hexdigest()[:8]


def line_of(entry: Proposal | Settled, prefix: str) -> bytes:
    """The line by which a proposal, or what became of it, is written down, with the paths inside its folder."""
    if isinstance(entry, Settled):
        value: dict[str, Any] = {"id": entry.id, "status": entry.status, "etags": sorted(entry.etags)}
    else:
        files = [[path.removeprefix(prefix), *texts] for path, texts in entry.texts.items()]
        more = {"rare": entry.rare, "edited": entry.is_edited, "run": entry.run}
        more |= {"sessions": entry.sessions, "entries": entry.entries} if entry.sessions else {}
        value = {"id": entry.id, "kind": entry.kind, "at": entry.at.isoformat(), "reason": entry.reason, "files": files, **more}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace") + b"\n"


def read_lines(data: bytes, prefix: str) -> Iterable[Proposal | Settled]:
    """What was written down; lines that don't parse are passed over."""
    for line in data.split(b"\n"):
        try:
            entry = _read(_value(line), prefix) if line else None
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
            continue
        if entry is not None:
            yield entry


def _read(value: Any, prefix: str) -> Proposal | Settled | None:
    match value:
        case {"id": str(id), "status": "asked" | "rejected" | "accepted" as status, "etags": list(etags)}:
            return Settled(id, status, frozenset(map(str, etags)))
        case {"id": str(id), "kind": kind, "at": str(at), "reason": str(reason), "files": list(files)} if kind in KINDS:
            texts = {prefix + path: (_text(before), _text(after)) for path, before, after in files}
            rare, sessions, entries = (tuple(map(str, value.get(key, ()))) for key in ("rare", "sessions", "entries"))
            if bool(sessions) != (kind in DRAWN) or not (id and texts) or (None, None) in texts.values():
                return None
            when, run, edited = datetime.fromisoformat(at).astimezone(UTC), str(value.get("run", "")), value.get("edited") is True
            return Proposal(id, kind, reason, texts, rare, when, edited, run=run, sessions=sessions, entries=entries)
    return None


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TypeError("a text, or nothing")


def _value(line: bytes) -> Any:
    """What stands in a line.

    Raises:
        ValueError: it is no JSON, or has half of a character in it, which no file can hold.
    """
    value = json.loads(line)
    if b"\\u" in line:
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _count(number: int, name: str) -> str:
    return f"{number} {name}{'s' * (number != 1)}"
