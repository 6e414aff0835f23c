"""Who can be a user: no name leads to another's folder, and no location keeps two users in one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.errors import ConfigError, InvalidArguments
from mdmemory.folder.mounts import Mount
from mdmemory.service.serving import Serving
from mdmemory.service.users import Limits, User, location_of
from mdmemory.settings import Settings

SECRET = "s" * 40


@pytest.mark.parametrize("name", ["alice", "bob2", "a", "0", "ann.b-c_d", "a" * 64, "3f2b8c1e-77aa-4c0e-9d5a-1f1f5b8e9a10"])
def test_plain_names_are_taken(name: str) -> None:
    """Lower-case letters, digits and single signs between them name a user."""
    assert User(name).name == name and location_of("/srv/{user}/m", name) == f"/srv/{name}/m"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            ".",
            "..",
            "a/b",
            "../bob",
            "bob/",
            "/bob",
            "a\\b",
            "bob\0",
            "bob\n",
            " bob",
            "bob ",
            "{user}",
            "%2e%2e",
            "~",
            "-bob",
        ),
        *(
            "Bob",
            "BOB",
            "bоb",
            "bοb",
            "ｂｏｂ",
            "bob\u200b",
            "bob\u0301",
            "ſam",
            "ı",
            "bob٣",
            "a..b",
            "a.",
            ".a",
            "_health",
            "a--b",
        ),
        *("a" * 65, "bob?folder=x", "bob#x", "bob@host", "bob:x", "b*b", "$HOME", "a b"),
    ],
)
def test_other_names_are_refused(name: str) -> None:
    """What leads elsewhere, looks like another name, or is one in another case, names nobody."""
    with pytest.raises(InvalidArguments, match="can't name a user"):
        User(name)


@given(st.text(max_size=12), st.text(max_size=12))
def test_two_names_are_two_folders(one: str, other: str) -> None:
    """Whatever names are taken, each is one folder right below that of all, and two are never the same, in any case."""
    taken = []
    for name in (one, other):
        try:
            taken.append(User(name).name)
        except InvalidArguments:
            continue
    places = [Path(location_of("/srv/memories/{user}", name)) for name in taken]
    assert all(place.resolve() == place and place.parent == Path("/srv/memories") for place in places)
    assert len({str(place).casefold() for place in places}) == len(set(taken))


@pytest.mark.parametrize("location", ["/srv/memories", "", "/srv/{user}/{user}", "/srv/{USER}", "memory://{user}"])
def test_a_location_must_keep_users_apart(location: str) -> None:
    """A location without the user's place, with two, or that is gone when closed, is refused."""
    with pytest.raises(ConfigError):
        Serving(location, SECRET)


def test_what_can_not_be_served_is_refused() -> None:
    """A short secret, a bound of nothing, and a mount that all would share as one object are said at the start."""
    with pytest.raises(ConfigError, match="32 characters"):
        Serving("/srv/{user}", "short")
    with pytest.raises(ConfigError, match="end_s"):
        Serving("/srv/{user}", SECRET, end_s=0)
    with pytest.raises(ConfigError, match="per_minute"):
        Limits(per_minute=0)
    from mdmemory.backends.memory import MemoryBackend

    with pytest.raises(ConfigError, match="team/"):
        Serving("/srv/{user}", SECRET, Settings(mounts={"team/": Mount(MemoryBackend())}))
