"""Secrets in what is imported: taken out, or the file stays out, as the settings say. Floor 4, pure."""

from __future__ import annotations

from hashlib import sha256
from pathlib import PurePosixPath

from mdmemory.care.importers.plan import Left, Plan
from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.changes import Create
from mdmemory.files.memory_file import decode, parse, set_field
from mdmemory.files.secrets import redact
from mdmemory.folder.known import INDEX


def without_secrets(plan: Plan, setting: str) -> tuple[dict[str, tuple[Create, str]], list[Left]]:
    """Each file of a plan as the setting wants it, with what was taken out of it, and those that may not come.

    Args:
        setting: `Config.secrets`.

    Raises:
        ConfigError: the scanner is not installed.
    """
    if setting == "keep":
        return {key: (change, "") for key, change in plan.files.items()}, []
    wanted, left = dict[str, tuple[Create, str]](), list[Left]()
    for key, change in plan.files.items():
        kinds = redact(decode(change.path, change.data))[1]
        found = ", ".join(sorted(set(kinds)))
        data = _redacted(change) if kinds and setting == "redact" else None
        if not kinds:
            wanted[key] = change, ""
        elif data is None:
            left.append(Left(key, f"it holds a secret ({found}); take it out, or set secrets to keep"))
        else:
            path = named_by(key, change.path) if names_its_source(key, change) else change.path  # which its text gave it
            wanted[key] = Create(path, data), f"redacted: {found}"
    return wanted, left


def _redacted(change: Create) -> bytes | None:
    """The file without its secrets; None when they can't all be taken out of it."""
    path, data = change.path, change.data
    try:
        file = parse(path, data)
        for name, value in (file.header.fields or {}).items():
            if isinstance(value, str) and redact(value)[1]:
                data = set_field(path, data, name, redact(value)[0])
        text = decode(path, data)
        head = text.removesuffix(file.body)
        text = head + redact(file.body)[0]
    except InvalidMemoryFile:
        return None
    return None if redact(text)[1] else text.encode()


def names_its_source(key: str, change: Create) -> bool:
    """Whether the file can be known by its `source`, so that its path is of no matter."""
    return change.path != INDEX and key in parse(change.path, change.data).header.source


def named_by(key: str, path: str) -> str:
    """A path in the same folder that says nothing but which one it is."""
    return (PurePosixPath(path).parent / f"{sha256(key.encode()).hexdigest()[:16]}.md").as_posix()
