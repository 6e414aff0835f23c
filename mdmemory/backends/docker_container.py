"""The container that a Docker memory is behind: hardened, found again by its name, its volume given to its user. Floor 1."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mdmemory.errors import ConfigError, Unavailable

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

Settings = dict[str, Any]
ROOT: Final = "/memory"
_LABEL: Final = "mdmemory.settings"
_STAY: Final = ["tail", "-f", "/dev/null"]
# A volume that nobody has written to belongs to root; one that holds something keeps its owner.
_GIVE: Final = 'names=$(ls -A "$1") && [ -z "$names" ] && chown "$2" "$1" || :'


@dataclass(frozen=True, slots=True)
class Limits:
    """What a container may use. `user` is a uid and gid in numbers; the image need not know them."""

    memory_mb: int = 256
    processes: int = 64
    tmp_mb: int = 64
    user: str = "1000:1000"


def settings_of(image: str, volume: str, root: str, limits: Limits) -> Settings:
    """The arguments for `containers.create`, hardened, with a mark by which a container made by the same ones is known."""
    settings: Settings = {
        "image": image,
        "entrypoint": _STAY[0],
        "command": _STAY[1:],
        "init": True,
        "user": limits.user,
        "working_dir": root,
        "mounts": [{"Type": "volume", "Source": volume, "Target": root, "VolumeOptions": {"NoCopy": True}}],
        "read_only": True,
        "tmpfs": {"/tmp": f"size={limits.tmp_mb}m,mode=1777,noexec,nosuid,nodev"},
        "network_mode": "none",
        "ipc_mode": "private",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": limits.processes,
        "mem_limit": f"{limits.memory_mb}m",
        "memswap_limit": f"{limits.memory_mb}m",
        "log_config": {"type": "none"},
    }
    mark = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    return {**settings, "labels": {_LABEL: mark}}


def find(client: DockerClient, name: str, settings: Settings | None) -> str:
    """The id of the container with this name, running; made by these settings when it is not there.

    Raises:
        ConfigError: it is there and was made otherwise.
        Unavailable: it is not there, and there are no settings.
    """
    from docker.errors import NotFound

    try:
        container = client.containers.get(name)
    except NotFound:
        container = _make(client, name, settings)
    if settings and container.labels.get(_LABEL) != settings["labels"][_LABEL]:
        raise ConfigError(
            f"The container {name} is there and was made otherwise. Remove it (its volume stays), name another, "
            "or give no image and no volume to use it as it is."
        )
    if container.status != "running":
        container.start()
    return str(container.id)


def _make(client: DockerClient, name: str, settings: Settings | None) -> Container:
    from docker.errors import APIError

    if settings is None:
        raise Unavailable(f"there is no container {name} on this Docker engine. Start it, or give an image and a volume.")
    give = ["-c", _GIVE, "sh", settings["working_dir"], settings["user"]]
    as_root = {"entrypoint": "sh", "command": give, "user": "0:0", "cap_add": ["CHOWN"], "labels": {}}
    once = client.containers.create(**{**settings, **as_root})
    try:
        once.start()
        once.wait()
    finally:
        once.remove(force=True)
    try:
        return client.containers.create(**settings, name=name)
    except APIError as error:
        if error.status_code != 409:
            raise
        return client.containers.get(name)  # another process was first
