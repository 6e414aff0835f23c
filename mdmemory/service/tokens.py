"""The file of tokens: for each the hash, what it allows, and whose it is. Floor 7.

A line is `HASH [read-only] [until=2027-01-31] [per-minute=60] … USER`; `#` begins a comment. The hash is the sha256 of the token,
which is long and random, so the file lets nobody in. A line that can't be read lets nobody in either.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import re
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from mdmemory.errors import ConfigError, InvalidArguments
from mdmemory.service.users import Limits, User

logger = logging.getLogger("mdmemory.service")
LOOK_S: Final = 1.0  # how long what was read counts, without a look at the file's date
_YOUNG_NS: Final = 2_000_000_000  # a file changed so lately may change again under the same date
_NOTHING: Final = (0, 0, 0, 0)
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_USUAL: Final = Limits()
_LIMITS: Final = {each.name.replace("_", "-"): each.name for each in fields(Limits)}


def hash_of(token: str) -> str:
    """What stands for a token in the file: sha256, hexadecimal."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class TokenFile:
    """Knows whose a token is, as the file says it now.

    Args:
        limits: of users whose line says nothing of them.
    """

    def __init__(self, file: Path, limits: Limits) -> None:
        self._file, self._limits = file, limits
        self._looked, self._state = float("-inf"), _NOTHING
        self._users: Mapping[str, User] = {}
        self._known = ""  # the text that they stand in

    def check(self) -> None:
        """Refuse a file in which something is wrong; without this, what is wrong lets nobody in.

        Raises:
            ConfigError: the file can't be read, or a line of it.
        """
        _, faults = self._read(self._text())
        if faults:
            raise ConfigError(f"{self._file.name}, {faults[0]}")

    async def __call__(self, token: str) -> User | None:
        """Whose it is; None for nobody's, or when it has run out."""
        self._look()
        user = self._users.get(hash_of(token))
        return None if user is None or (user.expires and user.expires <= datetime.now(UTC)) else user

    def _look(self) -> None:
        if time.monotonic() - self._looked < LOOK_S:
            return
        self._looked = time.monotonic()
        try:
            state = self._state_now()
            if state != self._state or abs(time.time_ns() - state[0]) < _YOUNG_NS:  # a date to come is none that is young
                if (text := self._text()) != self._known:
                    self._users, faults = self._read(text)
                    self._known = text
                    if faults:
                        logger.warning("the tokens in these lines let nobody in: %s", "; ".join(faults[:5]))
                self._state = state
        except ConfigError as error:
            if self._users or self._state != _NOTHING:
                logger.error("%s Until it can be read, nobody is let in.", error)
            self._users, self._state, self._known = {}, _NOTHING, ""

    def _state_now(self) -> tuple[int, int, int, int]:
        try:
            found = os.stat(self._file)
        except OSError as error:
            raise ConfigError(f"The file of tokens {self._file.name} can't be read: {error.strerror}.") from error
        return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino

    def _text(self) -> str:
        try:
            return self._file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            what = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ConfigError(f"The file of tokens {self._file.name} can't be read: {what}.") from error

    def _read(self, text: str) -> tuple[Mapping[str, User], list[str]]:
        users: dict[str, User] = {}
        faults: list[str] = []
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            try:
                if entry := parse_line(line, self._limits):
                    users[entry[0]] = entry[1]
            except (InvalidArguments, ConfigError) as error:
                faults.append(f"line {number}: {error}")
        return users, faults


def parse_line(line: str, limits: Limits = _USUAL) -> tuple[str, User] | None:
    """The hash and the user of a line; None for an empty one and for a comment.

    Args:
        line: with its end: one without may have been written only in part.

    Raises:
        InvalidArguments, ConfigError: it can't be read; nothing of the hash is said.
    """
    words = line.partition("#")[0].split()
    if not words:
        return None
    if not line.endswith("\n"):
        raise InvalidArguments("it does not end, so it may be cut off: end the file with a line end")
    digest, *options, name = words if len(words) > 1 else (words[0], "")
    if not _HASH.fullmatch(digest):
        raise InvalidArguments("it must begin with the sha256 of a token; `mdmemory token` writes such a line")
    user = User(name)
    own: dict[str, int] = {}
    for option in options:
        key, _, value = option.partition("=")
        if option == "read-only":
            user = replace(user, read_only=True)
        elif key == "until":
            user = replace(user, expires=_end_of(value))
        elif key in _LIMITS and value.isascii() and value.isdigit() and len(value) < 12:
            own[_LIMITS[key]] = int(value)
        else:
            known = ", ".join(f"{limit}=N" for limit in _LIMITS)
            raise InvalidArguments(f"{option!r:.40} is none of read-only, until=YYYY-MM-DD, {known}")
    return digest, replace(user, limits=replace(limits, **own)) if own else user


def _end_of(day: str) -> datetime:
    """The end of a day, UTC."""
    try:
        return datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC) + timedelta(days=1)
    except (ValueError, OverflowError):
        raise InvalidArguments(f"until={day!r:.20} is no day, such as until=2027-01-31") from None


def new_token(file: Path, name: str, *options: str) -> str:
    """Make a token for a user, and add its hash to the file, which is made if there is none.

    Args:
        options: as they stand in a line, such as `read-only`.

    Raises:
        InvalidArguments: no user can have this name, or there is no such option.
        ConfigError: the file can't be written.
    """
    token = f"mdm_{secrets.token_urlsafe(32)}"
    line = f"{' '.join([hash_of(token), *options, name])}\n"
    parse_line(line)
    with _alone(file) as text:
        _replace(file, f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{line}")
    return token


def revoke(file: Path, name: str) -> int:
    """Take every token of a user out of the file.

    Returns:
        How many there were.

    Raises:
        ConfigError: the file can't be read or written.
    """

    def is_theirs(line: str) -> bool:
        with suppress(InvalidArguments, ConfigError):
            entry = parse_line(f"{line.rstrip()}\n")  # a last line without an end opens nothing, until another is put below it
            return entry is not None and entry[1].name == name
        return False

    return _without(file, is_theirs)


def _without(file: Path, is_gone: Callable[[str], bool]) -> int:
    with _alone(file) as text:
        lines = text.splitlines(keepends=True)
        kept = [line for line in lines if not is_gone(line)]
        if len(kept) < len(lines):
            _replace(file, "".join(kept))
    return len(lines) - len(kept)


@contextmanager
def _alone(file: Path) -> Iterator[str]:
    """The text of the file, which no other `mdmemory token` changes meanwhile."""
    try:
        while True:
            with open(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "rb") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                if os.path.exists(file) and os.path.samestat(os.fstat(held.fileno()), os.stat(file)):
                    yield held.read().decode("utf-8")
                    return
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"The file of tokens {file.name} can't be changed: {what}.") from error


def _replace(file: Path, text: str) -> None:
    """Put a new file in its place at once, so that no line is ever read in part; who may read it stays the same."""
    place = file.resolve()
    was = os.stat(place)
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}-")
    try:
        with open(handle, "wb") as made:
            made.write(text.encode())
            made.flush()
            os.fchmod(handle, was.st_mode & 0o777)
            with suppress(PermissionError):
                os.fchown(handle, was.st_uid, was.st_gid)
            os.fsync(handle)
        os.replace(name, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
