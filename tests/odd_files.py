"""Links, pipes and devices in a memory folder, for the tests of each backend that reads a real one."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

SECRET = b"secret " * 1000


def make_root(place: Path) -> Path:
    """A memory folder with one file, and a secret beside it."""
    (place / "outside").mkdir()
    (place / "outside/secret.md").write_bytes(SECRET)
    folder = place / "memory"
    folder.mkdir()
    (folder / "good.md").write_bytes(b"good")
    return folder


def plant_odd_files(root: Path) -> dict[str, str]:
    """Make one file of each odd kind, and return what the reason for skipping it says."""
    (root / "link.md").symlink_to("../outside/secret.md")
    (root / "folder").symlink_to("../outside")
    (root / "inner.md").symlink_to("good.md")
    (root / "dangling.md").symlink_to("nowhere")
    os.mkfifo(root / "fifo.md")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(os.path.relpath(root / "sock.md"))
    odd = {**dict.fromkeys(("link.md", "folder", "inner.md", "dangling.md"), "link"), "fifo.md": "FIFO", "sock.md": "socket"}
    if os.getuid() == 0:
        os.mknod(root / "device.md", 0o600 | stat.S_IFCHR, os.makedev(1, 5))
        odd["device.md"] = "device"
    return odd
