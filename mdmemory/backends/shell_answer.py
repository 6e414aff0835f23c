"""What the helper of ShellBackend says first, and why a tool could not do its work. Floor 1."""

from __future__ import annotations

from typing import Final, NamedTuple

from mdmemory.errors import Unavailable

KINDS: Final = {
    "link": "a symbolic link, which is never followed",
    "folder": "a folder, not a file",
    "fifo": "a FIFO, not a file",
    "socket": "a socket, not a file",
    "device": "a device, not a file",
}
_REASONS: Final = {
    "No space left on device": "the disk is full",
    "Disk quota exceeded": "the disk quota is used up",
    "File too large": "the file would be larger than this system allows",
    "Read-only file system": "the folder is read-only",
    "Permission denied": "the folder is read-only for this user",
    "Operation not permitted": "the folder is read-only for this user",
    "Input/output error": "the disk reports an error",
    "Cannot allocate memory": "the sandbox has no memory left",
    "can't fork": "the sandbox can start no more processes",
    "Cannot fork": "the sandbox can start no more processes",
    "Resource temporarily unavailable": "the sandbox can start no more processes",
}


class Answer(NamedTuple):
    """What came back: the words of the first line, and the rest."""

    status: str
    words: str
    body: bytes
    stderr: str


def parse(verb: str, code: int, stdout: bytes, stderr: bytes) -> Answer:
    """Split an answer.

    Raises:
        Unavailable: this is none.
    """
    said = stderr[-4000:].decode("utf-8", "replace")
    first, _, body = stdout.partition(b"\n")
    if code or not first.startswith(b"mdmemory "):
        reason = reason_of(said) or f"the command ended with {code} and no answer"
        raise Unavailable(
            f"the sandbox could not {verb} the memory: {reason}. Check that it runs and has sh, stat, find, awk and tar."
        )
    status, _, words = first.decode("utf-8", "surrogateescape").removeprefix("mdmemory ").partition(" ")
    return Answer(status, words, body, said)


def could_not_look(reason: str) -> Unavailable:
    """The error when nothing is known of what is there."""
    return Unavailable(f"could not look into the memory folder: {reason}. Check that it is mounted and readable.")


def reason_of(said: str) -> str | None:
    """What a tool's complaint comes to; its words may hold paths, and are not passed on."""
    return next((words for phrase, words in _REASONS.items() if phrase in said), None)
