"""What the doctor found, one by one. Floor 4."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mdmemory.care.doctor.kinds import KINDS, Kind


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong, or worth knowing.

    Args:
        code: its kind, one of `KINDS`.
        path: the file, inside the folder; "" for the folder itself.
        line: 1-based, where one can be named.
        message: what is there.
        is_fixable: whether `fix` mends it.
        mount: the prefix of the mount in which it was found; "" for the home.
    """

    code: str
    path: str
    line: int | None
    message: str
    is_fixable: bool = False
    mount: str = ""

    def seen_from(self, prefix: str) -> Finding:
        """The same, of a folder that is mounted there."""
        return replace(self, path=prefix + self.path, mount=prefix)

    @property
    def inside(self) -> Finding:
        """The same, as the folder in which it was found sees it."""
        return replace(self, path=self.path.removeprefix(self.mount), mount="")

    @property
    def kind(self) -> Kind:
        """How bad it is, why it matters, and what to do."""
        return KINDS[self.code]

    @property
    def place(self) -> str:
        """`path:line`, or the path alone."""
        return self.path if self.line is None else f"{self.path}:{self.line}"

    def as_json(self) -> dict[str, Any]:
        """For `doctor --json`."""
        level, why, remedy, _ = self.kind
        here = {"code": self.code, "level": level, "path": self.path, "line": self.line, "message": self.message}
        return {**here, "why": why, "remedy": remedy, "fixable": self.is_fixable}
