"""open_memory: locations, models by string, settings, and what closing ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from openai_server import OpenAIServer

from mdmemory import Config, Create, MdmemoryError, ScriptedModel, open_memory
from mdmemory.errors import ConfigError

NOTE = b"---\nname: Coffee\ndescription: how the user takes coffee\ntype: user\n---\n\nBlack.\n"


@pytest.mark.parametrize("kind", ["str", "path", "url", "home"])
async def test_a_location_is_a_path_or_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A folder is named by a string, a Path, a file URL or from the home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / "my memory"
    location = {"str": str(root), "path": root, "url": root.as_uri(), "home": "~/my memory"}[kind]
    async with open_memory(location) as memory:
        await memory.folder.apply([Create("coffee.md", NOTE)], "person", "test")
    assert (root / "coffee.md").read_bytes() == NOTE


async def test_opening_creates_nothing(tmp_path: Path) -> None:
    """A folder that is not there yet is an empty memory, and is made by the first save only."""
    async with open_memory(tmp_path / "later") as memory:
        assert await memory.search("coffee") == []
    async with open_memory(tmp_path / "later", config=Config(journal=False)) as memory, memory.session().turn("Hello") as turn:
        assert "The memory is empty." in await turn.system_prompt()
        assert await turn.take_hint() is None
    assert list(tmp_path.iterdir()) == []


UNUSABLE = [("file://name", "three slashes"), ("file://", "three slashes"), ("", "does not name"), ("a\0b", "does not name")]


@pytest.mark.parametrize(("location", "said"), [("s3://bucket/x", "no backend for s3://"), *UNUSABLE])
async def test_an_unknown_location_says_what_there_is(location: str, said: str) -> None:
    """A URL that no backend serves is refused with what can be given."""
    with pytest.raises(ConfigError, match=said):
        async with open_memory(location):
            pass


async def test_an_unknown_model_shows_the_forms(tmp_path: Path) -> None:
    """A model string of another form is refused with examples, before anything is opened."""
    with pytest.raises(ConfigError, match="openai:"):
        async with open_memory(tmp_path, model="gpt"):
            pass


async def test_a_model_by_string_chooses_hints_over_the_wire(tmp_path: Path) -> None:
    """One string is enough for an LLM selector: the real client asks a real server and its choice is the hint."""
    (tmp_path / "coffee.md").write_bytes(NOTE)
    with OpenAIServer(['{"files": [{"path": "coffee.md", "reason": "it is morning"}]}']) as server:
        async with open_memory(tmp_path, model=f"openai:small@{server.base_url}") as memory:
            turn = await memory.session().turn("Good morning!")
            hint = await turn.take_hint(wait_s=20)
    assert hint is not None and hint.files[0].reason == "it is morning"
    assert "how the user takes coffee" in str(server.requests[0])


async def test_a_dead_endpoint_leaves_recall_by_words(tmp_path: Path) -> None:
    """H4: with the selector's endpoint down, the hint comes from recall and the status says what happened."""
    (tmp_path / "coffee.md").write_bytes(NOTE)
    async with open_memory(tmp_path, model="openai:small@http://127.0.0.1:9/v1") as memory:
        turn = await memory.session().turn("Make me a coffee")
        hint = await turn.take_hint(wait_s=30)
    assert hint is not None and hint.files[0].path == "coffee.md"
    assert turn.status.degraded is not None and "lexical recall was used" in turn.status.degraded


async def test_an_own_type_is_allowed_and_explained(tmp_path: Path) -> None:
    """A configured type is accepted by the tools and explained in the instructions."""
    config = Config(extra_types={"recipe": "what the user likes to cook"})
    async with open_memory(tmp_path, config=config) as memory:
        turn = await memory.session().turn("Hello")
        assert "- `recipe`: what the user likes to cook" in await turn.system_prompt()
        result = await turn.tools.call("Write", {"file_path": "soup.md", "content": NOTE.decode().replace("user\n", "recipe\n")})
    assert not result.is_error, result.text


async def test_prompts_are_overridden_by_file(tmp_path: Path) -> None:
    """A file of the same name in the user's folder replaces a prompt; one that asks for the unknown says what is given."""
    (tmp_path / "instructions.md.j2").write_text("Mine: {{ index }}")
    async with open_memory("memory://", config=Config(prompts_dir=tmp_path)) as memory:
        await memory.folder.apply([Create("coffee.md", NOTE)], "person", "test")
        assert (
            await (await memory.session().turn("Hi")).system_prompt() == "Mine: - [Coffee](coffee.md) — how the user takes coffee"
        )
        (tmp_path / "instructions.md.j2").write_text("{{ idnex }}")
        turn = await memory.session().turn("Hi")
        assert await turn.system_prompt("BASE") == "BASE"
    assert turn.status.degraded is not None and "idnex" in turn.status.degraded and "index" in turn.status.degraded


async def test_sessions_are_kept_by_id(tmp_path: Path) -> None:
    """The same id is the same conversation until it is closed; without an id each is new."""
    async with open_memory(tmp_path) as memory:
        first = memory.session("a")
        assert memory.session("a") is first and memory.session() is not memory.session()
        await first.close()
        assert memory.session("a") is not first


async def test_a_backend_can_be_given(tmp_path: Path) -> None:
    """Any backend object is a location."""
    from mdmemory.backends.memory import MemoryBackend

    backend = MemoryBackend()
    async with open_memory(backend, model=ScriptedModel([])) as memory:
        await memory.folder.apply([Create("coffee.md", NOTE)], "person", "test")
    async with open_memory(backend) as memory:
        assert [match.path for match in await memory.search("coffee")] == ["coffee.md"]


@pytest.mark.parametrize("setting", [{"index_max_lines": 0}, {"min_score": 2.0}, {"hint_wait_s": -1.0}, {"half_life_days": 0.0}])
def test_impossible_settings_are_refused(setting: dict[str, float]) -> None:
    """A setting out of its range is an error that names it."""
    with pytest.raises(MdmemoryError, match=next(iter(setting))):
        Config(**setting)  # type: ignore[arg-type]  # the wrong values are the test
