"""What the tools accept: paths, arguments, and the schemas that say so."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_calls import ROLE, call, refused

from mdmemory import Toolset


@pytest.mark.parametrize(
    "path",
    [
        "../x.md",
        "/etc/passwd",
        "memory-evil/../../x.md",
        "a\0.md",
        "a\nb.md",
        "a\x1b.md",
        "-a.md",
        "x" * 300 + ".md",
        "a//b.md",
        ".git/config",
    ],
)
@pytest.mark.parametrize("tool", ["Read", "Write", "Edit", "Delete"])
async def test_paths_outside_are_refused(tools: Toolset, folder: Path, tool: str, path: str) -> None:
    """N1: paths that lead out, hide or can't be typed are refused by every tool, and no answer shows a path of the host."""
    more = {"Write": {"content": ROLE}, "Edit": {"old_string": "a", "new_string": "b"}}.get(tool, {})
    text = await refused(tools, tool, file_path=path, **more)
    assert "not a usable path" in text and str(folder) not in text and str(folder.parent) not in text
    assert not folder.exists()


@pytest.mark.parametrize("path", ["report..final.md", "two words.md", "大明科技.md", "🚀 launch.md", "./user/role.md"])
async def test_usual_names_are_accepted(tools: Toolset, path: str) -> None:
    """N2: dots, spaces, Chinese and emoji are names like others; a leading `./` is understood."""
    await call(tools, "Write", file_path=path, content=ROLE)
    assert "A surveyor." in await call(tools, "Read", file_path=path)
    await call(tools, "Delete", file_path=path)


@pytest.mark.parametrize(
    ("first", "second"), [("site-roadmap.md", "Site Roadmap.md"), ("café.md", "cafe\u0301.md"), ("A.md", "a.md")]
)
async def test_lookalike_names_are_reported(tools: Toolset, first: str, second: str) -> None:
    """P2: a name that a person, or some disk, takes for an existing one is refused and the existing one is named."""
    await call(tools, "Write", file_path=first, content=ROLE)
    assert f"would be taken for {first}" in await refused(tools, "Write", file_path=second, content=ROLE)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "file_path is missing"),
        ({"file_path": 3}, "must be of type string"),
        ({"file_path": "a.md", "path": "b"}, "path is not known"),
        ({"file_path": "a.md", "offset": 0}, "at least 1"),
        ({"file_path": "a.md", "limit": "many"}, "must be of type integer"),
        ({"file_path": "a.md", "limit": "²"}, "must be of type integer"),
        ({"file_path": "a.md", "limit": "9" * 400}, "must be of type integer"),
        ("not json", "not valid JSON"),
        ("[]", "takes an object"),
    ],
)
async def test_wrong_arguments_say_how_to_call(tools: Toolset, arguments: dict[str, object] | str, said: str) -> None:
    """A call with wrong arguments is answered with what is wrong and what the tool takes."""
    result = await tools.call("Read", arguments)
    assert result.is_error and said in result.text


async def test_numbers_in_quotes_are_understood(tools: Toolset) -> None:
    """Models like to quote numbers and booleans; what is meant is clear."""
    await call(tools, "Write", file_path="a.md", content=ROLE)
    assert "\tname: Role" in await call(tools, "Read", file_path="a.md", offset="2", limit="1")
    await call(tools, "Edit", file_path="a.md", old_string="A surveyor", new_string="A carpenter", replace_all="false")


async def test_an_unknown_tool_names_the_known_ones(tools: Toolset) -> None:
    """A call of a tool that is not there lists those that are."""
    result = await tools.call("Remember", {})
    assert result.is_error and "Read, Write, Edit, Delete" in result.text


async def test_schemas_for_both_apis(tools: Toolset) -> None:
    """The tools come in the shape each API takes, with the names and parameters agents know."""
    assert tools.names == ["Read", "Write", "Edit", "Delete", "Search", "Add"]
    parameters = {tool["function"]["name"]: list(tool["function"]["parameters"]["properties"]) for tool in tools.openai()}
    assert parameters["Read"] == ["file_path", "offset", "limit"] and parameters["Write"] == ["file_path", "content"]
    assert parameters["Edit"] == ["file_path", "old_string", "new_string", "replace_all"] and parameters["Delete"] == ["file_path"]
    assert [tool["input_schema"]["required"] for tool in tools.anthropic()] == [
        ["file_path"],
        ["file_path", "content"],
        ["file_path", "old_string", "new_string"],
        ["file_path"],
        ["keywords"],
        ["thinking", "content"],
    ]
    assert [tool.name for tool in tools.tools if tool.read_only] == ["Read", "Search"]
