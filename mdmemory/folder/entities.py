"""What a name means: the file that is called so, by path, name or alias, and its earlier and later versions. Floor 3."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import PurePosixPath

from mdmemory.errors import InvalidArguments
from mdmemory.files.memory_file import Header
from mdmemory.recall.filters import Filed


class Entities:
    """The names of all files, whatever their case.

    Args:
        outdated: files to which a name gives way when another file has it too.
        superseded: by path, the files that supersede it.
    """

    def __init__(self, files: Iterable[Filed], outdated: AbstractSet[str], superseded: Mapping[str, Sequence[str]]) -> None:
        self._outdated = outdated
        self._names: dict[str, list[str]] = {}
        self._paths, self._called, self._aliases = (defaultdict[str, list[str]](list) for _ in range(3))
        for file in files:
            path, aliases = file.path, aliases_of(file.header)
            self._paths[fold(path)].append(path)
            for name in {fold(PurePosixPath(path).stem), fold(file.header.name)}:
                self._called[name].append(path)
            for name in {fold(alias) for alias in aliases}:
                self._aliases[name].append(path)
            self._names[path] = [PurePosixPath(path).stem, file.header.name, *aliases]
        self._beside: defaultdict[str, set[str]] = defaultdict(set)
        for old, newer in superseded.items():
            for new in newer:
                self._beside[old].add(new)
                self._beside[new].add(old)

    def resolve(self, name: str) -> str | None:
        """The file that a person means; None when there is none.

        Raises:
            InvalidArguments: it could be several; lists them.
        """
        found = self._find(name)
        if len(found) > 1:
            raise InvalidArguments(f"{name!r:.100} could be {', '.join(sorted(found))}; give the path")
        return found[0] if found else None

    def target(self, link: str, path: str) -> str | None:
        """The file that a link in another one leads to; None when there is none, or it could be several."""
        found = self._find(posixpath.normpath(posixpath.join(posixpath.dirname(path), link))) or self._find(link)
        return found[0] if len(found) == 1 else None

    def versions(self, path: str) -> set[str]:
        """The file, those that it supersedes, those that supersede it, and so on."""
        found, left = set[str](), [path]
        while left:
            path = left.pop()
            if path not in found:
                found.add(path)
                left += self._beside[path]
        return found

    def names(self, paths: Iterable[str]) -> set[str]:
        """What these files are called, folded."""
        return {fold(name) for path in paths for name in self._names[path]}

    def _find(self, name: str) -> list[str]:
        folded = fold(name)
        for known, key in ((self._paths, folded), (self._paths, f"{folded}.md"), (self._called, folded), (self._aliases, folded)):
            if found := known.get(key):
                return [path for path in found if path not in self._outdated] or found
        return []


def aliases_of(header: Header) -> tuple[str, ...]:
    """Other names of a file, as Obsidian keeps them: `aliases`, a list or text with commas."""
    fields = header.fields or {}
    given = fields.get("aliases", fields.get("alias"))
    parts = given.split(",") if isinstance(given, str) else given if isinstance(given, list) else []
    return tuple(part.strip() for part in parts if isinstance(part, str) and part.strip())


def fold(name: str) -> str:
    """A name as it is compared, also of a wikilink: `[[Acme#History|the firm]]` is `acme`."""
    bare = name.strip()
    if bare.startswith("[[") and bare.endswith("]]"):
        bare = bare[2:-2].partition("|")[0].partition("#")[0]
    return " ".join(bare.removeprefix("./").casefold().split())
