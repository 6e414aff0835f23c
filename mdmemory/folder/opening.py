"""From locations to folders: which backend serves one, where its cache is, and several mounted as one. Floor 3."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mdmemory.backends.protocol import Backend
from mdmemory.config import Config
from mdmemory.errors import ConfigError
from mdmemory.folder.any_folder import Folder
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.mounted_folder import MountedFolder
from mdmemory.folder.mounts import Mount, Part, checked_prefix
from mdmemory.folder.permissions import Confirm, Policy, allow_all, read_only
from mdmemory.recall.cache import Cache, open_cache

Location = str | os.PathLike[str] | Backend


def open_folder(
    location: Location, mounts: Mapping[str, Mount], config: Config, policy: Policy = allow_all, confirm: Confirm | None = None
) -> Folder:
    """The folder at a location, with others mounted in it.

    Args:
        mounts: by prefix, such as `team/`.

    Raises:
        ConfigError: a location, a prefix or a stage can't be used.
    """
    backend = backend_of(location)
    if not mounts:
        return MemoryFolder(backend, config, policy, confirm, _cache(backend, config))
    opened = {"": (Mount(location), backend)}
    for prefix, mount in mounts.items():
        if unknown := next((stage for stage in mount.stages if stage not in config.stages), None):
            there = ", ".join(config.stages) or "none yet"
            raise ConfigError(f"the mount {prefix} has the stage {unknown!r}, which is not among Config.stages: {there}")
        opened[checked_prefix(prefix, opened)] = (mount, backend_of(mount.location))
    parts = {}
    for prefix, (mount, each) in opened.items():
        is_open = mount.can_add and policy is not read_only  # `policy` itself is asked before, with whole paths
        own = allow_all if is_open else read_only
        parts[prefix] = Part(mount, MemoryFolder(each, config, own, cache=_cache(each, config)))
    return MountedFolder(parts, policy, confirm)


def _cache(backend: Backend, config: Config) -> Cache | None:
    location = getattr(backend, "location", None)
    if config.cache is False or not isinstance(location, str):
        return None
    return open_cache(location, config.languages, None if config.cache is True else Path(config.cache).expanduser())


def backend_of(location: Location) -> Backend:
    """The backend for a path, or a `file://`, `memory://`, `docker://`, `e2b://` or `postgres://` URL; a backend is its own.

    Raises:
        ConfigError: the location can't be used.
    """
    if not isinstance(location, (str, os.PathLike)):
        return location
    text = os.fspath(location)
    url = urlsplit(text) if "://" in text else None
    if (
        not text
        or "\0" in text
        or (url is not None and url.scheme == "file" and (url.netloc not in ("", "localhost") or not url.path))
    ):
        raise ConfigError(f"{text!r} does not name a folder. Give a path, or a URL with three slashes such as file:///srv/memory.")
    match url.scheme if url is not None else "file":
        case "file":
            from mdmemory.backends.local import LocalBackend

            return LocalBackend(Path(unquote(url.path) if url else text).expanduser())
        case "memory":
            from mdmemory.backends.memory import MemoryBackend

            return MemoryBackend()
        case "docker":
            from mdmemory.backends.docker import DockerBackend

            return DockerBackend.from_url(text)
        case "e2b":
            from mdmemory.backends.e2b import E2BBackend

            return E2BBackend.from_url(text)
        case "postgres" | "postgresql":
            from mdmemory.backends.postgres import PostgresBackend

            return PostgresBackend.from_url(text)
        case scheme:
            known = "a folder's path, a file://, memory://, docker://, e2b:// or postgres:// URL, or a backend"
            raise ConfigError(f"There is no backend for {scheme}:// locations. Give {known}.")
