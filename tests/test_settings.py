"""The configuration file: everything that can be set can be said in it, and what is wrong is named with its line."""

from __future__ import annotations

import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from command import REPOSITORY
from folders import everything, memory
from hypothesis import given
from hypothesis import strategies as st
from mounting import put

from mdmemory import Config, Mount, open_memory
from mdmemory.errors import ConfigError
from mdmemory.settings import Settings, read_settings

EXAMPLE = REPOSITORY / "examples/memory.yaml"


def written(root: Path, text: str) -> Path:
    """A configuration file with this text."""
    place = root / "memory.yaml"
    place.write_text(text, encoding="utf-8")
    return place


def read(root: Path, text: str, **environ: str) -> Settings:
    """What the text says."""
    return read_settings(written(root, text), environ)


async def test_the_example_is_a_memory(tmp_path: Path) -> None:
    """C9: the example opens with its mounts, their rights, limits and stages, and its settings; opening makes nothing."""
    place = written(tmp_path, EXAMPLE.read_text(encoding="utf-8"))
    settings = read_settings(place)
    assert (settings.mode, settings.write_back, settings.config.extra_types) == (
        "both",
        "background",
        {"recipe": "what the user likes to cook"},
    )
    docs = settings.mounts["docs/"]
    assert (docs.access, docs.top_k, docs.min_score, docs.stages) == (("read",), 3, 0.2, ("plan",))
    before = everything(tmp_path)
    async with open_memory(config=place) as memory_:
        assert await memory_.search("anything", stage="plan") == [] and everything(tmp_path) == before
        put(tmp_path, {"docs/a.md": "# Kiwi\n", "shared/team/b.md": memory("Kiwi")})
        assert {match.path for match in await memory_.search("kiwi")} == {"docs/a.md", "team/b.md"}


def test_every_setting_can_be_said(tmp_path: Path) -> None:
    """C9: each field of Config that is no function has a value in YAML, and arrives as it was."""
    values: dict[str, Any] = {
        "extra_types": {"recipe": "what to cook"}, "prompts_dir": str(tmp_path / "prompts"), "cache": str(tmp_path / "cache"),
        "languages": ("german", "english"), "stages": ("plan",), "secrets": "refuse", "window_tokens": 9, "min_score": 0.5,
        "watch": False, "journal": False, "consolidate": "apply", "extract": "propose",
    }  # fmt: skip
    default = Config()
    for field in fields(Config):
        if field.name not in ("embed", "scorer", *values):
            values[field.name] = getattr(default, field.name) * 2
    lines = [f"{name}: {yaml_of(value)}" for name, value in values.items()]
    assert read(tmp_path, "\n".join(lines)).config == Config(**values)


def yaml_of(value: Any) -> str:
    """The value in YAML's flow style."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {each}" for key, each in value.items()) + "}"
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("location: a\nmuonts: {}\n", r"line 2: unknown key 'muonts'; did you mean mounts\?"),
        ("zzz: 1\n", r"line 1: unknown key 'zzz'; there are .*hint_max_files, .*location"),
        ("mounts:\n  team/:\n    location: x\n    acess: read\n", r"line 4: unknown key 'acess'; did you mean access\?"),
        ("mounts:\n  team/:\n    access: read\n", "line 3: the mount team/ needs a location"),
        ("mounts:\n  team/: x\n", "line 2: here a mapping is wanted, with about, access, location"),
        ("mounts: 3\n", "line 1: here a mapping is wanted"),
        ("- a\n", "line 1: here a mapping is wanted"),
        ("mounts:\n  team/: {location: x, access: all}\n", "line 2: access must be a list, each one of read, append, write"),
        ("mounts:\n  team/: {location: x, top_k: many}\n", "line 2: top_k must be a whole number"),
        ("mounts:\n  team/: {location: x, top_k: 0}\n", "line 2: top_k must be more than 0"),
        ("hint_max_files: five\n", "line 1: hint_max_files must be a whole number"),
        ("hint_max_files: 1.5\n", "line 1: hint_max_files must be a whole number"),
        ("hint_max_files: [1]\n", "line 1: hint_max_files must be a whole number"),
        ("hint_max_files:\n", "line 1: hint_max_files must be a whole number"),
        ("\nmin_score: 2\n", "line 2: min_score is a share"),
        ("min_score: nan\n", "line 1: min_score must be a number"),
        ("watch: perhaps\n", "line 1: watch must be true or false"),
        ("languages: {a: b}\n", "line 1: languages must be a list, each text"),
        ("extra_types: [a]\n", "line 1: extra_types must be a mapping of names to text"),
        ("mode: all\n", "line 1: mode must be one of auto, agent, both"),
        ("secrets: show\n", "line 1: secrets must be one of redact, refuse, keep"),
        ("embed: openai\n", "line 1: embed is a function, which a file can't say"),
        ("location: a\nlocation: b\n", "line 2: location stands here a second time"),
        ("location: ${HOEM}/x\n", "line 1: the environment variable HOEM is not set"),
        ("location: [a\n", "line 2: this is not YAML"),
        ("location: \x07\n", "is not YAML"),
        ("a: &a [*a]\n", "unknown key"),
        ("extra_types: &a {x: *a}\n", "extra_types must be a mapping"),
        ("location: !!python/object/apply:os.system [x]\n", "location must be text"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    """C9: an unknown key names itself and the nearest one, and a wrong value says what is wanted; each with file and line."""
    with pytest.raises(ConfigError, match=said) as caught:
        read(tmp_path, text, HOME="/home/user/")
    assert "memory.yaml" in str(caught.value) and str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize(("name", "data"), [("none.yaml", None), ("a.yaml", b"caf\xe9"), ("folder", b"")])
def test_a_file_that_cannot_be_read_is_named(name: str, data: bytes | None, tmp_path: Path) -> None:
    """C9: no file, a folder, or bytes that are no text are one clear error."""
    (tmp_path / "folder").mkdir()
    if data:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(ConfigError, match=f"{name} can't be read: "):
        read_settings(tmp_path / name)


def test_variables_stand_in_values_only(tmp_path: Path) -> None:
    """C9: `${NAME}` is put in for values, numbers too, never read as YAML, and `$${NAME}` is that text."""
    text = "location: ${ROOT}/x\nhint_max_files: ${N}\nmodel: 'a${KEY}b $${KEY}'\nextra_types: {'${N}': '${N}'}\n"
    settings = read(tmp_path, text, ROOT="/srv", N="3", KEY="{x: [y]}\n# z")
    assert settings.location == "/srv/x" and settings.config.hint_max_files == 3
    assert settings.model == "a{x: [y]}\n# zb ${KEY}" and settings.config.extra_types == {"${N}": "3"}


def test_paths_begin_where_the_file_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C9: relative paths begin at the file, wherever the program runs; URLs, whole paths and the home folder are kept."""
    monkeypatch.setenv("HOME", "/home/user/")
    monkeypatch.chdir("/")
    text = "location: ../a\nprompts_dir: p\ncache: c\nmounts:\n  x/: {location: 'memory://'}\n  y/: {location: ~/y}\n"
    settings = read(tmp_path, text)
    assert Path(str(settings.location)).resolve() == (tmp_path / "../a").resolve()
    assert (settings.config.prompts_dir, settings.config.cache) == (str(tmp_path / "p"), str(tmp_path / "c"))
    assert [mount.location for mount in settings.mounts.values()] == ["memory://", "/home/user/y"]
    assert read(tmp_path, "cache: false\n").config.cache is False and read(tmp_path, "window_tokens: null\n") == Settings()
    assert read(tmp_path, "") == read(tmp_path, "# nothing\n") == Settings()
    assert str(read(tmp_path, "\ufefflocation: a\n").location).endswith("/a")


async def test_what_is_given_goes_before_the_file(tmp_path: Path) -> None:
    """C9: a location, a model or a mount given to open_memory replaces the file's, and the file's mode is the sessions' own."""
    put(tmp_path, {"a/x.md": memory("X"), "b/y.md": memory("Y"), "team/t.md": memory("T"), "other/o.md": memory("O")})
    place = written(tmp_path, "location: a\nmode: auto\nwrite_back: 'off'\nmounts: {team/: {location: team}}\n")
    async with open_memory(tmp_path / "b", config=place) as memory_:
        await memory_.folder.refresh()
        assert set(memory_.folder.files) == {"y.md", "team/t.md"}
        assert memory_.session().mode == "auto" and memory_.session(mode="agent").mode == "agent"
    async with open_memory(config=place, mounts={"team/": Mount(tmp_path / "other")}) as memory_:
        await memory_.folder.refresh()
        assert set(memory_.folder.files) == {"x.md", "team/o.md"}
    with pytest.raises(ConfigError, match="Which folder"):
        async with open_memory(config=written(tmp_path, "mode: auto\n")):
            pass


@given(st.text(max_size=200))
def test_any_text_is_settings_or_a_clear_error(text: str) -> None:
    """C9: whatever stands in the file, reading it ends in settings or in a ConfigError."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "memory.yaml"
        place.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            assert isinstance(read_settings(place, {}), Settings)
        except ConfigError as error:
            assert "memory.yaml" in str(error)
