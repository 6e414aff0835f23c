"""From a conversation to memory files, with a scripted model."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conversations import drawn, file, memory, reply, said, statuses
from folders import log_of, on_disk, visible
from folders import memory as note

from mdmemory import ScriptedModel
from mdmemory.agent.extractor import extract, pending
from mdmemory.errors import InvalidReply
from mdmemory.files.changes import Change, Create, Delete
from mdmemory.files.journal import MARK, new_message

TALK = said("I live in Hangzhou and I drink green tea.", "Noted!")
HOME = memory("Home", "Lives in Hangzhou.", path="user/home.md")
TEA = memory("Tea", "Drinks green tea.", path="user/tea.md")


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


async def test_what_happens_while_the_model_thinks(tmp_path: Path) -> None:
    """D3, M1: what is forgotten, or drawn by another process from the same messages, before the model answers, is not written."""
    folder, other = on_disk(tmp_path), on_disk(tmp_path)
    talk = said("I live in Hangzhou.", "Noted!", "I drink green tea.", "Noted!", "My cat is Miso.", "Cute.")
    tea, cat = memory("Tea", "Green, in the morning.", 3), memory("Cat", "Miso.", 5)
    await folder.apply([Create("user/address.md", note("Home"))], "person", "test")

    async def model(messages: Any, *, schema: Any = None) -> Any:
        await folder.apply([Delete("user/address.md")], "agent:s1", "forget it")
        await extract(other, ScriptedModel([reply(memory("Drinks", "Green tea.", 3), memory("Cat", "A cat.", 5))]), "s1", talk)
        await other.apply([Delete("user/cat.md")], "person", "forget it")
        return reply(memory("Home", "Hangzhou.", 1), tea, {**cat, "name": "Pet"})

    result = await extract(folder, model, "s1", talk)
    assert result is not None and [outcome.status for outcome in result.outcomes] == ["dropped", "existing", "dropped"]
    assert set(visible(tmp_path)) == {"MEMORY.md", "user/drinks.md"}


async def test_a_conversation_that_was_forgotten_whole_costs_no_call(tmp_path: Path) -> None:
    """D3: where every new message belongs to what was forgotten, no model is asked, and the mark still moves on."""
    folder, talk = on_disk(tmp_path), list(TALK)
    await extract(folder, ScriptedModel([reply({**HOME, "sources": [1, 2]})]), "s1", talk)
    await folder.apply([Delete("user/home.md")], "person", "forget")
    result = await drawn(folder, talk)
    assert result.outcomes == () and pending(talk) == []


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
