"""The errors, all of them.

MdmemoryError
├── InvalidPath           a path that no memory may have
├── InvalidMemoryFile     frontmatter or encoding that can't be read (path, line)
├── InvalidArguments      a tool or command called the wrong way
├── Conflict              the file changed meanwhile (path, etag, current text)
├── PermissionDenied      the policy, or the person asked, said no
├── ConfigError           a location, model or setting that can't be used
├── BackendError
│   ├── Unavailable       could not look or could not write: says nothing about what is there
│   ├── NotThere          it is known to be absent
│   └── UnsafeFile        a link, a device, a hard link, or too large to take in
└── ModelError
    ├── ModelUnavailable  no answer: network, key, time-out
    └── InvalidReply      an answer that does not have the asked-for form

A message says what happened and what to do, and names files by their path inside the folder, never by a path of the host:
models read these messages.
"""

from __future__ import annotations


class MdmemoryError(Exception):
    """Base of every error that mdmemory raises on purpose."""


class InvalidPath(MdmemoryError):
    """A path that no memory may have."""


class InvalidMemoryFile(MdmemoryError):
    """A file whose bytes or frontmatter can't be read.

    Args:
        path: path inside the folder.
        reason: what is wrong and how to mend it.
        line: 1-based line in the file, where one can be named.
    """

    def __init__(self, path: str, reason: str, line: int | None = None) -> None:
        self.path, self.reason, self.line = path, reason, line
        where = path if line is None else f"{path}, line {line}"
        super().__init__(f"{where}: {reason}")


class InvalidArguments(MdmemoryError):
    """A tool or a command was called the wrong way; the message says how to call it."""


class Conflict(MdmemoryError):
    """The file is not what the change was based on.

    Args:
        path: path inside the folder.
        etag: sha256 of the current bytes, None when the file is absent.
        current: the current text, where the raiser has it.
        reason: what to say in place of the usual.
    """

    def __init__(self, path: str, etag: str | None, current: str | None = None, reason: str = "") -> None:
        self.path, self.etag, self.current = path, etag, current
        if reason:
            text = reason
        elif etag is None:
            text = f"{path} does not exist, or no longer. Nothing was changed: look at the index for what is there."
        else:
            text = f"{path} is there with other content. Nothing was written: Read it and repeat the change on what is there now."
        super().__init__(text)


class PermissionDenied(MdmemoryError):
    """The policy, or the person who was asked, said no."""


class ConfigError(MdmemoryError):
    """A location, a model or a setting that can't be used."""


class BackendError(MdmemoryError):
    """Something below the three verbs failed."""


class Unavailable(BackendError):
    """Could not look or could not write; says nothing about what is there."""


class NotThere(BackendError):
    """Known to be absent."""


class UnsafeFile(BackendError):
    """A link, a device, a hard link that would be written through, or a file too large to take in."""


class ModelError(MdmemoryError):
    """A model did not help."""


class ModelUnavailable(ModelError):
    """No answer: network, key or time-out."""


class InvalidReply(ModelError):
    """An answer that does not have the asked-for form."""
