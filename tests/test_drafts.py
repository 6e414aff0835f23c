"""What becomes of a proposal: a new file, an update, a file that supersedes another, nothing, or the reason why not."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from conversations import drawn, file, memory, reply, said, statuses
from folders import memory as note
from folders import on_disk, visible

from mdmemory import Config, ScriptedModel
from mdmemory.agent.extractor import extract
from mdmemory.errors import MdmemoryError, PermissionDenied

TALK = said("I live in Hangzhou and I drink green tea.", "Noted!")
HOME = memory("Home", "Lives in Hangzhou.", path="user/home.md")
TEA = memory("Tea", "Drinks green tea.", path="user/tea.md")


async def test_the_same_fact_twice_is_one_file(tmp_path: Path) -> None:
    """M2: a fact that is there already stays one file, whether the model says so or proposes it again, in other spelling too."""
    folder, talk = on_disk(tmp_path), list(TALK)
    await drawn(folder, talk, reply(HOME))
    talk += said("As I said, I live in Hangzhou.", "Yes.", first=3)
    before = visible(tmp_path)
    result = await drawn(folder, talk, reply({**HOME, "action": "none"}, memory("City", "lives in  hangzhou", path="user/city.md")))
    assert statuses(result) == [("existing", "user/home.md")] * 2 and visible(tmp_path) == before


async def test_a_contradiction_supersedes(tmp_path: Path) -> None:
    """M2: "now at company B": the current file says B; the old one says A, with the day on which it ended, else unchanged."""
    old = note("Employer", "where the user works", body="Works at A.", x_mine="kept")
    folder, talk = on_disk(tmp_path, {"user/employer.md": old}), said("I now work at B.", "Congratulations!")
    new = memory("Employer", "Works at B.", action="supersede", path="user/employer.md", replaces="user/employer.md")
    result = await drawn(folder, talk, reply(new))
    assert statuses(result) == [("superseded", "user/employer-2.md")]
    current = file(tmp_path, "user/employer-2.md").header
    assert (current.supersedes, current.valid_from, current.source) == ("user/employer.md", "2026-03-02", ("s1#m1",))
    assert (tmp_path / "user/employer.md").read_bytes() == old.replace(b"---\n\n", b'valid_until: "2026-03-02"\n---\n\n')
    assert [match.path for match in await folder.search("where does the user work")] == ["user/employer-2.md"]
    assert [match.path for match in await folder.search("where the user works", as_of="2026-01-05")] == ["user/employer.md"]


async def test_an_update_keeps_what_people_wrote_meanwhile(tmp_path: Path) -> None:
    """M2, E4: an update changes body, description and source; an edit made while the model thought is merged, unknown keys stay."""
    old = note("Tea", "what the user drinks", body="Green tea.\n\nNo sugar.\n\nIn the morning.", x_mine="kept")
    folder, talk = on_disk(tmp_path, {"tea.md": old}), said("I take honey with my green tea.", "OK.")

    def think(_: Any) -> Any:
        (tmp_path / "tea.md").write_bytes(old.replace(b"In the morning", b"In the morning, said a person"))
        body = "Green tea, with honey.\n\nNo sugar.\n\nIn the morning."
        return reply(memory("Tea", body, action="update", path="tea.md", description="tea; honey"))

    assert statuses(await drawn(folder, talk, think)) == [("updated", "tea.md")]
    tea = file(tmp_path, "tea.md")
    assert tea.body == "\nGreen tea, with honey.\n\nNo sugar.\n\nIn the morning, said a person.\n"
    assert tea.header.description == "tea; honey" and (tea.header.fields or {})["x_mine"] == "kept"
    assert tea.header.source == ("s1#m1",)
    talk += said("And lemon.", "OK.", first=3)
    await drawn(folder, talk, reply(memory("Tea", "With lemon.", 1, path="tea.md")))
    tea = file(tmp_path, "tea.md")  # an `add` to a file that is there is appended, and the sources are a list
    assert tea.body.endswith("said a person.\n\nWith lemon.\n") and tea.header.source == ("s1#m1", "s1#m3")


async def test_odd_proposals_lose_nothing(tmp_path: Path) -> None:
    """M1: an update of a file that is not there is a new file; a path that no memory may have is replaced by one from the name."""
    odd = [
        memory("One", "First.", action="update", path="gone.md"),
        memory("Two", "Second.", path="../../etc/passwd"),
        memory("Three", "Third.", path="journal/x.md"),
        memory("Four", "Fourth.", action="supersede", replaces="nothing.md"),
        memory("Five" * 100, "Fifth.\ud83d", path="five.md"),
    ]
    result = await drawn(on_disk(tmp_path), list(TALK), reply(*odd, summary="\ud83d"))
    paths = ["gone.md", "user/two.md", "user/three.md", "user/four.md"]
    assert statuses(result) == [*(("created", path) for path in paths), ("dropped", "five.md")]
    assert set(visible(tmp_path)) == {*paths, "MEMORY.md"} and "surrogate" in result.outcomes[-1].reason


async def test_what_only_the_assistant_said_is_not_remembered(tmp_path: Path) -> None:
    """X1: what the assistant says may come from the memory itself, so a proposal needs a message of the user or of a tool."""
    result = await drawn(on_disk(tmp_path), list(TALK), reply({**HOME, "sources": [2]}, {**TEA, "sources": []}))
    assert [outcome.status for outcome in result.outcomes] == ["dropped", "dropped"] and visible(tmp_path) == {}


async def test_a_fact_superseded_twice_is_one_file(tmp_path: Path) -> None:
    """M2: when the model supersedes the old file again with the same words, the file that says so is kept as it is."""
    old = note("Employer", "where the user works", body="Works at A.")
    folder, talk = on_disk(tmp_path, {"user/employer.md": old}), said("I now work at B.", "Congratulations!")
    new = memory("Employer", "Works at B.", action="supersede", path="user/employer-b.md", replaces="employer")
    await drawn(folder, talk, reply(new))
    before = visible(tmp_path)
    talk += said("At B, as I said. My employer is B.", "Yes.", first=3)
    assert statuses(await drawn(folder, talk, reply(new))) == [("existing", "user/employer-b.md")] and visible(tmp_path) == before


@pytest.mark.parametrize("secrets", ["redact", "refuse", "keep"])
async def test_secrets_are_not_remembered(tmp_path: Path, secrets: Any, caplog: pytest.LogCaptureFixture) -> None:
    """M1: a password or key in what is proposed is taken out, or the memory refused, as the settings say; no log shows it."""
    caplog.set_level(logging.DEBUG, "mdmemory")
    token = "ghp_" + "a1B2" * 9
    wifi = memory("Wifi", f"The wifi password is hunter2x and the token {token}.", reason=f"has {token}", path=f"user/{token}.md")
    folder = on_disk(tmp_path, config=Config(secrets=secrets))
    result = await drawn(folder, list(TALK), reply(wifi, TEA, summary=f"A token {token} was given."))
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()).decode()
    assert (token in everything) == (token in result.mark.text) == (secrets == "keep")
    assert secrets == "keep" or token not in caplog.text
    expected = {"redact": ("created", "user/wifi.md"), "refuse": ("dropped", ""), "keep": ("created", f"user/{token}.md")}
    assert statuses(result) == [expected[secrets], ("created", "user/tea.md")]
    if secrets == "redact":
        text = "\nThe wifi password is [redacted: Secret Keyword] and the token [redacted: GitHub Token].\n"
        assert file(tmp_path, "user/wifi.md").body == text


async def test_a_denying_folder_and_a_conflict_are_errors(tmp_path: Path) -> None:
    """M1: when the file that is to be updated is changed in the same lines meanwhile, nothing is taken."""
    old = note("Tea", "what the user drinks", body="Green tea.")
    folder = on_disk(tmp_path, {"tea.md": old})

    def think(_: Any) -> Any:
        (tmp_path / "tea.md").write_bytes(old.replace(b"Green tea.", b"Black tea, said a person."))
        return reply(memory("Tea", "Green tea with honey.", action="update", path="tea.md"))

    with pytest.raises(MdmemoryError) as caught:
        await extract(folder, ScriptedModel([think]), "s1", said("Honey in my green tea."))
    assert not isinstance(caught.value, PermissionDenied) and b"said a person" in (tmp_path / "tea.md").read_bytes()
