"""A new memory file from nothing but its content: its name, its description and a free path. Floor 4."""

from __future__ import annotations

from collections.abc import Iterable

from mdmemory.backends.paths import collision_key
from mdmemory.backends.protocol import etag_of
from mdmemory.errors import InvalidArguments
from mdmemory.files.changes import Create
from mdmemory.files.memory_file import encode, new_file, parse
from mdmemory.files.naming import shortened, slug
from mdmemory.folder.any_folder import Folder

DEFAULT_TYPE = "project"
MAX_NAME_CHARS = 60
MAX_DESCRIPTION_CHARS = 200


def from_content(folder: Folder, content: str, type: str | None = None) -> Create:
    """A typed memory file that holds the content as it is; content with frontmatter of its own is the whole file.

    Args:
        type: `project` unless given.

    Raises:
        InvalidArguments: there is no content, or no such type.
        InvalidMemoryFile: it is no text, or its frontmatter can't be read.
    """
    if not content.strip():
        raise InvalidArguments("content is empty; give what is to be remembered")
    data = encode("the new file", content)
    header = parse("the new file", data).header
    kind = type or (header.type if header.fields else None) or DEFAULT_TYPE
    if kind not in folder.types:
        raise InvalidArguments(f"there is no type {kind!r}; it must be one of {', '.join(folder.types)}")
    if not header.fields:
        first, _, rest = content.strip().partition("\n")
        name = shortened(first.strip(" \t\r#>*-") or first, MAX_NAME_CHARS)
        is_title = not name.endswith("…") and rest.strip()
        data = new_file(name, shortened(rest if is_title else content, MAX_DESCRIPTION_CHARS), kind, content)
    else:
        name = header.name
    return Create(free_path(folder, f"{kind}/{slug(name)}", data), data)


def free_path(folder: Folder, stem: str, data: bytes, taken: Iterable[str] = ()) -> str:
    """`stem.md`, or with the first number for which no file looks like it; that of a file with these bytes is free too.

    Args:
        taken: further paths that are not free.
    """
    there = {collision_key(path): known.etag for path, known in folder.files.items()}
    there |= dict.fromkeys(map(collision_key, taken))
    paths = (f"{stem}{f'-{number}' if number > 1 else ''}.md" for number in range(1, len(there) + 2))
    return next(path for path in paths if there.get(collision_key(path), etag_of(data)) == etag_of(data))
