"""Two processes with one cache, and a person: whatever they do, in any order, each finds what is there."""

from __future__ import annotations

import asyncio
import os

import pytest
from caching import known_of, opened
from folders import memory, on_disk
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.files.changes import Create

PATHS = st.sampled_from(["a.md", "b.md", "sub/a.md", "sub/deep/b.md", "other/a.md"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), PATHS, st.sampled_from("deploy friday coffee 备份 tea".split())),
        st.tuples(st.just("delete"), PATHS, st.just("")),
        st.tuples(st.just("move"), st.just("sub"), st.just("other")),
        st.tuples(st.just("touch"), PATHS, st.just("")),
        st.tuples(st.just("save"), PATHS, st.sampled_from("monday zebra".split())),
        st.tuples(st.just("look"), st.sampled_from(["0", "1"]), st.just("")),
        st.tuples(st.just("reopen"), st.sampled_from(["0", "1"]), st.just("")),
    ),
    max_size=12,
)


@given(steps=STEPS)
def test_whatever_happens_the_answers_are_those_without_a_cache(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str]]
) -> None:
    """Two processes, a person, and any order of what they do: each look is that of a process that reads everything."""
    top = tmp_path_factory.mktemp("any")
    root, cache = top / "memory", top / "cache"
    root.mkdir()

    async def run() -> None:
        folders = [opened(root, cache)[0] for _ in range(2)]
        for action, subject, word in steps:
            place = root / subject
            if action == "write":
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(memory(word, body=f"About {word}."))
            elif action == "delete":
                place.unlink(missing_ok=True)
            elif action == "touch" and place.exists():
                os.utime(place)
            elif action == "move" and place.exists() and not (root / word).exists():
                place.rename(root / word)
            elif action == "save" and not place.exists():
                await folders[0].refresh()
                await folders[0].apply([Create(subject, memory(word))], "person", "test")
            elif action == "look":
                assert await known_of(folders[int(subject)]) == await known_of(on_disk(root))
            elif action == "reopen":
                await folders[int(subject)].close()
                folders[int(subject)], _ = opened(root, cache)
        for folder in folders:
            assert await known_of(folder) == await known_of(on_disk(root))
            await folder.close()

    asyncio.run(run())
