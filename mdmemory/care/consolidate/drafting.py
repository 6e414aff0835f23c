"""From a suggestion to a proposal: each checked against the files that the model saw. Floor 4, no input or output.

What is there in the end says more than the model did: the frontmatter of the file that is written to, and of all sources the
journal entries they were drawn from, their tags, what they supersede, and the names by which links know them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import PurePosixPath
from typing import Final

from mdmemory.backends.paths import collision_key, fault, owner
from mdmemory.care.consolidate.clusters import Cluster
from mdmemory.care.consolidate.reply import Made, Suggestion
from mdmemory.errors import InvalidMemoryFile, InvalidPath, InvalidReply
from mdmemory.files.changes import Create, crlf, uses_crlf
from mdmemory.files.memory_file import MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS, MemoryFile, decode, encode, new_file, parse, set_field
from mdmemory.folder.any_folder import Folder, parts_of
from mdmemory.folder.entities import aliases_of, fold
from mdmemory.folder.known import is_memory_path
from mdmemory.folder.proposals.proposal import Kind, Proposal, Texts, id_of
from mdmemory.folder.settle import check_change

_SOURCES: Final[Mapping[Kind, tuple[int, int]]] = {"merge": (2, 100), "split": (1, 1), "rewrite": (1, 1), "retire": (1, 100)}
_FILES: Final[Mapping[Kind, tuple[int, int]]] = {"merge": (1, 1), "split": (2, 10), "rewrite": (1, 1), "retire": (0, 0)}
MAX_TIMES: Final = 2  # as long as its sources is what they come to at most
MAX_REASON_CHARS: Final = 300


def draft(folder: Folder, cluster: Cluster, suggestion: Suggestion) -> Proposal:
    """The proposal that a suggestion comes to.

    Raises:
        InvalidReply: it can't be done; says why.
    """
    kind, sources = suggestion.kind, list(dict.fromkeys(path.strip().removeprefix("./") for path in suggestion.sources))
    if unknown := [path for path in sources if path not in cluster.texts]:
        raise InvalidReply(f"{kind}: {_shown(unknown[0])} is none of the files that were shown")
    for what, counts, found in (("sources", _SOURCES, sources), ("files", _FILES, suggestion.files)):
        least, most = counts[kind]
        if not least <= len(found) <= most:
            raise InvalidReply(f"{kind} {', '.join(sources)}: {len(found)} {what}")
    if sum(len(made.body) for made in suggestion.files) > MAX_TIMES * sum(len(cluster.texts[path]) for path in sources) + 500:
        raise InvalidReply(f"{kind} {', '.join(sources)}: what it makes is much longer than what it is made from")
    try:
        texts = _texts(folder, cluster, sources, suggestion)
    except (InvalidMemoryFile, InvalidPath) as error:
        raise InvalidReply(f"{kind} {', '.join(sources)}: {error}") from error
    if all(before == after for before, after in texts.values()):
        raise InvalidReply(f"{kind} {', '.join(sources)}: it changes nothing")
    others = {term for path, own in cluster.only.items() if path not in sources for term in own}
    rare = {word: None for path in sources for term, word in cluster.only[path].items() if term not in others}
    config = folder.config
    reason = " ".join(suggestion.reason.encode(errors="replace").decode().split())[:MAX_REASON_CHARS]
    return Proposal(id_of(kind, texts), kind, reason, texts, tuple(rare), limit=config.max_loss, languages=config.languages)


def _texts(folder: Folder, cluster: Cluster, sources: Sequence[str], suggestion: Suggestion) -> Texts:
    """Each file before and after."""
    before = {path: cluster.texts[path] for path in sources}
    if suggestion.kind == "retire":
        return {path: (text, _set(path, text, "valid_until", date.today().isoformat())) for path, text in before.items()}
    files = {path: parse(path, text.encode()) for path, text in before.items()}
    places = [_place(folder, cluster, sources, made, suggestion.kind) for made in suggestion.files]
    if len({collision_key(path) for path in places}) < len(places):
        raise InvalidPath("two of its files have the same name")
    gone = [file for path, file in files.items() if path not in places]
    linked = {fold(name): name for file in gone for name in _names(file) if fold(name) in cluster.linked}
    texts: dict[str, tuple[str | None, str | None]] = {path: (text, None) for path, text in before.items()}
    for number, (path, made) in enumerate(zip(places, suggestion.files, strict=True)):
        texts[path] = (before.get(path), _written(made, path, before.get(path), files, {} if number else linked))
    return texts


def _place(folder: Folder, cluster: Cluster, sources: Sequence[str], made: Made, kind: Kind) -> str:
    """Where a file is to be: in place of a source, or where nothing is yet.

    Raises:
        InvalidPath
    """
    path, prefix, part = made.path.strip().removeprefix("./"), cluster.place.prefix, cluster.place.part
    if path in sources:
        return path
    if kind == "rewrite":
        raise InvalidPath(f"it would write to {_shown(path)}")
    if (reason := fault(path)) is not None:
        raise InvalidPath(f"{_shown(path)} is not a usable path: {reason}")
    inner = path.removeprefix(prefix)
    prefixes = {*parts_of(folder), *(place.prefix for place in folder.places)}
    if owner(path, prefixes) != prefix or not is_memory_path(inner):
        raise InvalidPath(f"{path} is not a place for a memory file of this folder")
    check_change(Create(inner, b""))
    twin = inner if inner in part.files else part.catalog.headers.lookalike(inner)
    if twin is not None:
        raise InvalidPath(f"{path} would be taken for {prefix}{twin}, which is there")
    return path


def _written(made: Made, path: str, before: str | None, files: Mapping[str, MemoryFile], linked: Mapping[str, str]) -> str:
    """The text of a file that is made.

    Args:
        before: what is there.
        files: the sources.
        linked: names, by how they are compared, of files that go: links that have them lead here from now on.
    """
    body = made.body.strip("\r\n")
    if not body.strip():
        raise InvalidMemoryFile(path, "there is no text in it")
    first = files.get(path) or next(iter(files.values()))
    if not first.header.fields:  # what people keep plain stays plain
        return decode(path, encode(path, f"{body}\n")) if before is None else _with_body(path, before, body)
    name = " ".join(made.name.split())[:MAX_NAME_CHARS] or first.header.name
    description = " ".join(made.description.split())[:MAX_DESCRIPTION_CHARS] or first.header.description
    if before is None:
        text = decode(path, new_file(name, description, first.header.type or "", body))
    else:
        text = _with_body(path, before, body)
        for key, value in (("name", name), ("description", description)):
            text = text if value == getattr(first.header, key) else _set(path, text, key, value)
    for key, there, wanted in _inherited(path, text, files, linked):
        if not set(wanted) <= set(there):
            text = _set(path, text, key, wanted[0] if len(wanted) == 1 and key != "aliases" else wanted)
    return text


def _with_body(path: str, text: str, body: str) -> str:
    """A file with another body; its frontmatter, the space below it and its line ends stay."""
    old = parse(path, text.encode()).body
    start = old[: len(old) - len(old.lstrip("\r\n"))] or "\n" * (len(old) < len(text))
    whole = f"{text[: len(text) - len(old)]}{start}{body}\n"
    return decode(path, encode(path, crlf(whole) if uses_crlf(text) else whole))


def _inherited(
    path: str, text: str, files: Mapping[str, MemoryFile], linked: Mapping[str, str]
) -> Iterator[tuple[str, Sequence[str], list[str]]]:
    """The fields in which what is made keeps what its sources had: what there is, and what is to be."""
    own, headers = parse(path, text.encode()).header, [file.header for file in files.values()]
    yield "source", own.source, list(dict.fromkeys(entry for header in headers for entry in header.source))
    yield "tags", own.tags, list(dict.fromkeys(tag for header in headers for tag in header.tags))
    known = {fold(own.name), fold(PurePosixPath(path).stem)}
    more = [name for folded, name in linked.items() if folded not in known]
    yield "aliases", aliases_of(own), list(dict.fromkeys([*aliases_of(own), *more]))
    replaced = [header.supersedes for header in headers if header.supersedes]
    yield "supersedes", [own.supersedes or ""], [", ".join(dict.fromkeys(replaced))] if replaced else []


def _names(file: MemoryFile) -> tuple[str, ...]:
    return file.header.name, PurePosixPath(file.path).stem, *aliases_of(file.header)


def _set(path: str, text: str, key: str, value: str | Sequence[str]) -> str:
    return decode(path, set_field(path, text.encode(), key, value))


def _shown(path: str) -> str:
    return repr(path if len(path) <= 60 else f"{path[:57]}...")
