"""From a conversation to memory files, with a scripted model."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conversations import memory, reply, said
from folders import log_of, on_disk, visible
from folders import memory as note

from mdmemory import Config, ScriptedModel
from mdmemory.agent.extractor import Extraction, extract, pending
from mdmemory.errors import InvalidReply, MdmemoryError, PermissionDenied
from mdmemory.files.changes import Change, Create, Delete
from mdmemory.files.journal import MARK, Message, new_message
from mdmemory.files.memory_file import MemoryFile, parse
from mdmemory.folder.memory_folder import MemoryFolder

TALK = said("I live in Hangzhou and I drink green tea.", "Noted!")
HOME = memory("Home", "Lives in Hangzhou.", path="user/home.md")
TEA = memory("Tea", "Drinks green tea.", path="user/tea.md")


async def drawn(folder: MemoryFolder, talk: list[Message], *replies: Any, session: str = "s1") -> Extraction:
    """One extraction, whose mark is added to the conversation."""
    result = await extract(folder, ScriptedModel(list(replies)), session, talk)
    assert result is not None
    talk.append(result.mark)
    return result


def file(root: Path, path: str) -> MemoryFile:
    """A memory file on disk."""
    return parse(path, (root / path).read_bytes())


def statuses(result: Extraction) -> list[tuple[str, str]]:
    """Status and path of each outcome."""
    return [(outcome.status, outcome.path) for outcome in result.outcomes]


async def test_a_fact_becomes_a_file_that_names_its_source(tmp_path: Path) -> None:
    """M1: what the user said is a typed file with the journal's entry as its source, its line is in the index, one commit."""
    talk = list(TALK)
    result = await drawn(on_disk(tmp_path), talk, reply(HOME, TEA, summary="Where the user lives."))
    assert statuses(result) == [("created", "user/home.md"), ("created", "user/tea.md")]
    home = file(tmp_path, "user/home.md")
    assert (home.header.name, home.header.type, home.header.source, home.body) == (
        "Home",
        "user",
        ("s1#m1",),
        "\nLives in Hangzhou.\n",
    )
    assert "- [Home](user/home.md) — about Home" in (tmp_path / "MEMORY.md").read_text()
    (intent, _) = log_of(tmp_path)
    assert intent["author"] == "agent:s1/extractor" and intent["reason"] == "extracted: it was said; it was said"
    assert result.mark.role == MARK and result.mark.data["through"] == "m2" and result.mark.text == "Where the user lives."
    assert pending(talk) == [] and await extract(on_disk(tmp_path), ScriptedModel([]), "s1", talk) is None


async def test_prose_around_the_reply_is_read(tmp_path: Path) -> None:
    """M1: prose and a fence around the JSON, numbers as text, and fields too many do no harm."""
    odd = {**HOME, "confidence": 1, "sources": "1"}
    text = f"Here you are:\n```json\n{json.dumps(reply(odd))}\n```\nAnything else?"
    assert statuses(await drawn(on_disk(tmp_path), list(TALK), text)) == [("created", "user/home.md")]


@pytest.mark.parametrize(
    "answer",
    [
        "I found nothing, sorry.",
        "{}",
        {"memories": "none"},
        {"memories": ["x"]},
        reply({**HOME, "action": "invent"}),
        reply({**HOME, "type": "person"}),
        reply({**HOME, "body": ""}),
        reply({**HOME, "name": None}),
        reply({**HOME, "sources": [[1]]}),
        OSError("no route"),
    ],
)
async def test_a_reply_that_is_none_loses_nothing(tmp_path: Path, answer: Any) -> None:
    """M1: whatever is wrong with a reply, nothing is written and nothing is taken; the next try draws it all."""
    folder, talk = on_disk(tmp_path), list(TALK)
    with pytest.raises((InvalidReply, OSError)):
        await extract(folder, ScriptedModel([answer]), "s1", talk)
    assert visible(tmp_path) == {} and [message.id for message in pending(talk)] == ["m1", "m2"]
    with pytest.raises(InvalidReply) as caught:
        await extract(folder, ScriptedModel(["The password is hunter2x"]), "s1", talk)
    assert "hunter2x" not in f"{caught.value}{caught.value.__cause__}"
    assert statuses(await drawn(folder, talk, reply(HOME))) == [("created", "user/home.md")]


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


async def test_hints_and_what_the_memory_answers_are_not_extracted(tmp_path: Path) -> None:
    """P3, X1: of hints, of the memory's own tools and of system messages the model sees nothing; other tools' answers it does."""
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for n, name in enumerate(["Read", "curl"])
    ]
    talk = said(
        {"role": "system", "content": "SYSTEM TEXT"},
        {"role": "user", "content": "Where do I live?\n<memory-hint>\n> HINT TEXT\n</memory-hint>"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c0", "content": "READ TEXT"},
        {"role": "tool", "tool_call_id": "c1", "content": "CURL TEXT"},
        {"role": "tool", "tool_call_id": "unknown", "content": "UNKNOWN TEXT"},
        {"role": "assistant", "content": "In Hangzhou."},
        {"role": "user", "content": "<memory-hint>\nALONE"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "RESULT TEXT"}]},
    )
    model = ScriptedModel([reply()])
    await extract(on_disk(tmp_path), model, "s1", talk)
    prompt = model.calls[0][0]["content"]
    assert "Where do I live?" in prompt and "CURL TEXT" in prompt and "In Hangzhou." in prompt
    for hidden in ("SYSTEM TEXT", "HINT TEXT", "READ TEXT", "UNKNOWN TEXT", "ALONE", "RESULT TEXT"):
        assert hidden not in prompt


async def test_what_only_the_assistant_said_is_not_remembered(tmp_path: Path) -> None:
    """X1: what the assistant says may come from the memory itself, so a proposal needs a message of the user or of a tool."""
    result = await drawn(on_disk(tmp_path), list(TALK), reply({**HOME, "sources": [2]}, {**TEA, "sources": []}))
    assert [outcome.status for outcome in result.outcomes] == ["dropped", "dropped"] and visible(tmp_path) == {}


async def test_fifty_recalls_leave_one_note(tmp_path: Path) -> None:
    """X1: fifty turns that recall one note, extracted each time by a model that proposes it again and again, leave one note."""
    folder, talk = on_disk(tmp_path), list(TALK)
    await drawn(folder, talk, reply(HOME))
    before = visible(tmp_path)
    for number in range(3, 103, 2):
        talk += said("Where do I live?", "You live in Hangzhou.", first=number)
        echo = memory(f"Home {number}", "Lives in Hangzhou.", 1, 2), memory("City", f"You live in Hangzhou ({number}).", 2)
        await drawn(folder, talk, reply(*echo))
    assert visible(tmp_path) == before


async def test_a_kill_before_the_mark_repeats_nothing(tmp_path: Path) -> None:
    """M1: when the process dies between the files and the mark, the next try makes no fact twice, and takes what came since."""
    folder, talk = on_disk(tmp_path), list(TALK)
    await extract(folder, ScriptedModel([reply(HOME, TEA)]), "s1", talk)
    talk += said("My cat is Miso.", "Cute.", first=3)
    again = [memory("Where", "Hangzhou is home.", 1), memory("Cat", "The cat is called Miso.", 3, path="user/cat.md")]
    result = await drawn(on_disk(tmp_path), talk, reply(*again))
    assert [outcome.status for outcome in result.outcomes] == ["existing", "created"]
    assert set(visible(tmp_path)) == {"MEMORY.md", "user/home.md", "user/tea.md", "user/cat.md"}


async def test_what_was_forgotten_stays_forgotten(tmp_path: Path) -> None:
    """D3: a deleted file's entries are never shown to the model again, and neither its path nor its name comes back from before."""
    folder, talk = on_disk(tmp_path), list(TALK)
    await extract(folder, ScriptedModel([reply(HOME)]), "s1", talk)
    await folder.apply([Delete("user/home.md")], "person", "forget")
    model = ScriptedModel([reply(HOME, memory("HOME", "Lives in Hangzhou.", 1, path="user/city.md"))])
    result = await extract(folder, model, "s1", talk)
    assert result is not None and "I live in Hangzhou" not in model.calls[0][0]["content"]
    assert [outcome.status for outcome in result.outcomes] == ["dropped", "dropped"]
    assert set(visible(tmp_path)) == {"MEMORY.md"}


async def test_what_an_agent_wrote_and_was_told_to_forget(tmp_path: Path) -> None:
    """D3: a file without sources that was deleted is not made anew from older messages; said again later, it is."""
    folder, talk = on_disk(tmp_path), said("I live in Hangzhou.", "Saved.", "Forget it.", "Done.")
    await folder.apply([Create("user/home.md", note("Home"))], "agent:s1", "Write")
    await folder.apply([Delete("user/home.md")], "agent:s1", "Delete")
    result = await drawn(folder, talk, reply(HOME, {**HOME, "path": "other.md", "name": "home"}))
    assert {outcome.reason for outcome in result.outcomes} == {"it was forgotten, and has not been said since"}
    talk.append(
        new_message(
            {"role": "user", "content": "Remember after all that I live in Hangzhou."}, "m9", datetime(2999, 1, 1, tzinfo=UTC)
        )
    )
    assert statuses(await drawn(folder, talk, reply(HOME))) == [("created", "user/home.md")]


async def test_a_conversation_that_was_forgotten_whole_costs_no_call(tmp_path: Path) -> None:
    """D3: where every new message belongs to what was forgotten, no model is asked, and the mark still moves on."""
    folder, talk = on_disk(tmp_path), list(TALK)
    await extract(folder, ScriptedModel([reply({**HOME, "sources": [1, 2]})]), "s1", talk)
    await folder.apply([Delete("user/home.md")], "person", "forget")
    result = await drawn(folder, talk)
    assert result.outcomes == () and pending(talk) == []


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


async def test_the_extractor_obeys_the_policy(tmp_path: Path) -> None:
    """AM8: the policy is asked as for agents; what it denies is dropped with the reason, the rest is written."""

    def policy(change: Change, author: str) -> Any:
        assert author.startswith("agent:")
        return "deny" if change.path.startswith("user/") else "allow"

    work = memory("Work", "Is a surveyor.", path="project/work.md", type="project")
    desk = memory("Desk", "Has a standing desk.", path="project/desk.md", type="project")
    result = await drawn(on_disk(tmp_path, policy=policy), list(TALK), reply(HOME, work, desk))
    assert [outcome.status for outcome in result.outcomes] == ["dropped", "created", "created"]
    assert "not allowed" in result.outcomes[0].reason
    assert set(visible(tmp_path)) == {"MEMORY.md", "project/work.md", "project/desk.md"}


async def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    """A dry run says what each file would be before and after, and writes nothing."""
    result = await extract(on_disk(tmp_path), ScriptedModel([reply(HOME)]), "s1", TALK, dry_run=True)
    assert result is not None and [(item.path, item.before) for item in result.files] == [("user/home.md", None)]
    assert visible(tmp_path) == {} and log_of(tmp_path) == []


async def test_a_long_conversation_comes_in_parts(tmp_path: Path) -> None:
    """M1: what does not fit one call waits for the next, which sees the last few messages before it, and the nearest files."""
    folder = on_disk(tmp_path, {"a.md": note("Alpha", "the word quokka", body="Quokka.")})
    talk = said(*(f"quokka {number} " + "word " * 5_000 for number in range(1, 8)))
    model = ScriptedModel([reply()] * 9)
    calls = 0
    while result := await extract(folder, model, "s1", talk):
        talk.append(result.mark)
        calls += 1
    assert 1 < calls < 8 and all("File a.md" in call[0]["content"] for call in model.calls)
    assert "quokka 1 " in model.calls[0][0]["content"] and "quokka 1 " not in model.calls[-1][0]["content"]
    assert pending(talk) == [] and "Earlier in the conversation" in model.calls[-1][0]["content"]


async def test_a_mark_that_names_no_message_stands_for_its_place() -> None:
    """When a person has taken the named entry out of the journal, what stands before the mark counts as taken."""
    talk = [*said("One"), new_message({"role": MARK, "content": "", "through": "gone"}), *said("Three", first=3)]
    assert [message.id for message in pending(talk)] == ["m3"]


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
