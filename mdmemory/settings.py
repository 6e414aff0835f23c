"""The configuration file: one YAML file that says where a memory is, what is mounted in it, and every setting. Floor 5.

Each key is checked against the dataclass that takes it, and an error names the line. `${NAME}` in a value is an environment
variable. The file is only read.
"""

from __future__ import annotations

import collections.abc
import os
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from mdmemory.agent.tools import Mode
from mdmemory.agent.write_back import When
from mdmemory.config import Config
from mdmemory.errors import ConfigError
from mdmemory.folder.mounts import Mount

if TYPE_CHECKING:
    import yaml

_VARIABLE = re.compile(r"\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NULL = "tag:yaml.org,2002:null"
_SCALARS: Mapping[Any, tuple[str, re.Pattern[str]]] = {
    str: ("text", re.compile(r".*", re.DOTALL)),
    bool: ("true or false", re.compile(r"true|false", re.IGNORECASE)),
    int: ("a whole number", re.compile(r"[+-]?[0-9][0-9_]*")),
    float: ("a number", re.compile(r"[+-]?(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a configuration file says.

    Args:
        location: of the home.
        mounts: by prefix.
        model: as `open_memory` takes it.
        mode, write_back: of sessions, as `Memory.session` takes them.
    """

    config: Config = field(default_factory=Config)
    location: str | os.PathLike[str] | None = None
    mounts: Mapping[str, Mount] = field(default_factory=dict)
    model: str | None = None
    mode: Mode = "both"
    write_back: When = "background"


class _Wrong(Exception):
    """A value that is not of the type that is wanted."""


def read_settings(file: str | os.PathLike[str], environ: Mapping[str, str] | None = None) -> Settings:
    """Read a configuration file; its relative paths begin where it lies.

    Args:
        environ: the variables that `${NAME}` stands for; None for those of this process.

    Raises:
        ConfigError: it can't be read, or says something that can't be; names the line.
    """
    import yaml

    place = Path(file).expanduser()
    try:
        node = yaml.compose(place.read_text(encoding="utf-8-sig"), yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"The configuration file {place.name} can't be read: {what}.") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{place.name}, line {line}: this is not YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{place.name} is not YAML: {error}") from error
    return _Reader(place, os.environ if environ is None else environ).settings(node)


class _Reader:
    """Makes settings of the nodes of one file."""

    def __init__(self, place: Path, environ: Mapping[str, str]) -> None:
        self._name, self._folder, self._environ = place.name, place.absolute().parent, environ

    def settings(self, node: yaml.Node | None) -> Settings:
        if node is None:
            return Settings()
        own = {name: hint for name, hint in get_type_hints(Settings).items() if name != "config"}
        nodes = self._nodes(node, {*own, *get_type_hints(Config)})
        mounts = self._mounts(nodes.pop("mounts")) if "mounts" in nodes else {}
        config = self._made(Config, {name: value for name, value in nodes.items() if name not in own})
        given = {name: self._value(name, value, own[name]) for name, value in nodes.items() if name in own}
        return Settings(config, mounts=mounts, **given)

    def _mounts(self, node: yaml.Node) -> dict[str, Mount]:
        known, mounts = get_type_hints(Mount), {}
        for prefix, value in self._nodes(node).items():
            nodes = self._nodes(value, known)
            if "location" not in nodes:
                self._fail(value, f"the mount {prefix} needs a location")
            mounts[prefix] = self._made(Mount, nodes)
        return mounts

    def _made(self, kind: type[Any], nodes: Mapping[str, yaml.Node]) -> Any:
        hints = get_type_hints(kind)
        values = {name: self._value(name, node, hints[name]) for name, node in nodes.items()}
        try:
            return kind(**values)
        except ConfigError as error:
            place = next((node for name, node in nodes.items() if name in str(error)), None)
            if place is None:
                raise ConfigError(f"{self._name}: {error}") from error
            self._fail(place, str(error))

    def _nodes(self, node: yaml.Node, known: Collection[str] | None = None) -> dict[str, yaml.Node]:
        """The values of a mapping by key."""
        import yaml

        if not isinstance(node, yaml.MappingNode):
            self._fail(node, f"here a mapping is wanted{', with ' + ', '.join(sorted(known)) if known else ''}")
        found: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = str(key.value)
            if known is not None and name not in known:
                near = get_close_matches(name, known, 1)
                there = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
                self._fail(key, f"unknown key {name!r}; {there}")
            if name in found:
                self._fail(key, f"{name} stands here a second time")
            found[name] = value
        return found

    def _value(self, name: str, node: yaml.Node, hint: Any) -> Any:
        try:
            return self._converted(node, hint)
        except _Wrong:
            wanted = _said(hint)
            why = f"must be {wanted}" if wanted else "is a function, which a file can't say: give it to Config in Python"
            self._fail(node, f"{name} {why}")

    def _converted(self, node: yaml.Node, hint: Any) -> Any:
        """The value as this type; of several, as the first that it can be."""
        import yaml

        origin, parts = get_origin(hint), get_args(hint)
        if origin in (Union, UnionType):
            for part in parts:
                with suppress(_Wrong):
                    value = self._converted(node, part)
                    return self._path(value) if part is str and any(get_origin(each) is os.PathLike for each in parts) else value
        elif hint is NoneType and node.tag == _NULL:
            return None
        elif origin is collections.abc.Mapping and isinstance(node, yaml.MappingNode):
            return {name: self._converted(value, parts[1]) for name, value in self._nodes(node).items()}
        elif origin in (tuple, collections.abc.Collection) and isinstance(node, yaml.SequenceNode):
            return tuple(self._converted(item, parts[0]) for item in node.value)
        elif origin in (tuple, collections.abc.Collection) and isinstance(node, yaml.ScalarNode):
            return (self._converted(node, parts[0]),)
        elif isinstance(node, yaml.ScalarNode) and node.tag != _NULL:
            text = self._expanded(node)
            if origin is Literal and text in parts:
                return text
            if hint in _SCALARS and _SCALARS[hint][1].fullmatch(text):
                return text.lower() == "true" if hint is bool else hint(text)
        raise _Wrong

    def _path(self, text: str) -> str:
        """A relative path begins at the file's folder; a URL stays as it is."""
        return text if "://" in text or not text else str(self._folder / Path(text).expanduser())

    def _expanded(self, node: yaml.ScalarNode) -> str:
        """The text with the variables in it; `$${NAME}` stands for `${NAME}` itself."""

        def value(found: re.Match[str]) -> str:
            if found[1]:
                return found[0][1:]
            if found[2] not in self._environ:
                self._fail(node, f"the environment variable {found[2]} is not set")
            return self._environ[found[2]]

        return _VARIABLE.sub(value, node.value)

    def _fail(self, node: yaml.Node, what: str) -> NoReturn:
        raise ConfigError(f"{self._name}, line {node.start_mark.line + 1}: {what}")


def _said(hint: Any) -> str:
    """What is wanted, in words; empty for what a file can't say."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(filter(None, map(_said, parts))))
    if origin is Literal:
        return f"one of {', '.join(parts)}"
    if origin is collections.abc.Mapping:
        return f"a mapping of names to {_said(parts[1])}"
    if origin in (tuple, collections.abc.Collection):
        return f"a list, each {_said(parts[0])}"
    return _SCALARS[hint][0] if hint in _SCALARS else ""
