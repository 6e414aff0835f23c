"""The evaluation, on tiny conversations of our own in the schemas of the public sets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_locomo import LOCOMO

from mdmemory.config import Config
from mdmemory.errors import InvalidArguments
from mdmemory.evals import locomo, longmemeval
from mdmemory.evals.conversations import session_file
from mdmemory.evals.measures import Result, result_of, summary
from mdmemory.evals.run import evaluate

LONGMEMEVAL = [
    {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "What instrument do I play?",
        "haystack_session_ids": ["s_a", "s_b"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
        "haystack_sessions": [
            [{"role": "user", "content": "Recipes for soup?"}, {"role": "assistant", "content": "Try leek.\n\nUser: no"}],
            [
                {"role": "user", "content": "I play the cello, the instrument of kings.", "has_answer": True},
                {"role": "assistant", "content": "Lovely."},
            ],
        ],
        "answer_session_ids": ["s_b"],
    },
    {"question_id": "q2_abs", "question": "Not to be answered"},
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The conversation as a file."""
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(LOCOMO), encoding="utf-8")
    return path


def test_a_conversation_is_read(data: Path) -> None:
    """Sessions come with their date, pictures with what they show, and only questions whose evidence is there."""
    (conversation,) = locomo.load(data)
    assert [(session.id, str(session.day), len(session.turns)) for session in conversation.sessions] == [
        ("1", "2023-05-08", 4),
        ("2", "2023-07-02", 4),
    ]
    assert conversation.sessions[0].turns[3].text == "Look at my cat. [picture: a tabby on a windowsill]"
    assert [(question.category, set(question.turns)) for question in conversation.questions] == [
        ("single-hop", {"D1:2"}),
        ("multi-hop", {"D1:3", "D2:2"}),
        ("single-hop", {"D1:4"}),
    ]
    assert conversation.questions[1].sessions == {"1", "2"}


def test_a_session_becomes_a_memory_file_with_known_lines(data: Path) -> None:
    """One turn a paragraph, the date in the description, and each turn's line as an editor counts."""
    content, lines = session_file(locomo.load(data)[0].sessions[0])
    text = content.decode().split("\n")
    assert "description: Conversation of Ida and Tom on 8 May 2023, 1:56 pm" in content.decode()
    assert [text[line - 1] for line in lines][1:3] == ["Tom: Yes, in the harbour, from June.", "Ida: Great! I planted beans."]
    assert list(lines.values()) == ["D1:1", "D1:2", "D1:3", "D1:4"]


async def test_recall_is_measured_by_session_and_turn(data: Path) -> None:
    """V9: the right sessions and turns are found first in so small a memory; every question is told as progress."""
    told: list[int] = []
    measured = await evaluate(locomo.load(data), progress=told.append)
    assert measured["questions"] == sum(told) == 3
    assert measured["session"]["frac"] == {"1": pytest.approx(0.83333), "5": 1.0, "10": 1.0}
    assert measured["turn"]["frac"]["5"] == 1.0 and measured["turn"]["mrr"] == 1.0
    assert measured["turn"]["categories"]["multi-hop"]["questions"] == 1


async def test_an_interrupted_evaluation_goes_on(data: Path, tmp_path: Path) -> None:
    """What was measured is kept a line each and not measured again; another file is refused."""
    kept = tmp_path / "kept.jsonl"
    first = await evaluate(locomo.load(data), keep=kept)
    kept.write_text(kept.read_text().replace('"ranks": [1]', '"ranks": [7]'))
    again = await evaluate(locomo.load(data), keep=kept)
    assert (first["session"]["mrr"], again["session"]["mrr"]) == (1.0, pytest.approx((1 / 7 + 1 + 1 / 7) / 3, abs=1e-4))
    with pytest.raises(InvalidArguments, match=r"tiny\.json does not hold"):
        await evaluate(locomo.load(data), keep=data)


@pytest.mark.parametrize("left", ["", '{"of', '{"of": "12"'])
async def test_a_line_cut_short_by_a_kill_is_measured_again(data: Path, tmp_path: Path, left: str) -> None:
    """What a killed run left of its last line goes; what stood before it stays."""
    kept = tmp_path / "kept.jsonl"
    first = await evaluate(locomo.load(data), keep=kept)
    line = kept.read_text()
    kept.write_text(line.replace('"ranks": [1]', '"ranks": [7]') + left)
    again = await evaluate(locomo.load(data), keep=kept)
    assert kept.read_text() == line.replace('"ranks": [1]', '"ranks": [7]') and again != first
    kept.write_text(line[:-9])
    assert await evaluate(locomo.load(data), keep=kept) == first
    assert kept.read_text() == line


async def test_kept_results_of_other_data_or_settings_do_not_count(data: Path, tmp_path: Path) -> None:
    """A conversation that changed since, or another configuration, is measured anew."""
    kept = tmp_path / "kept.jsonl"
    await evaluate(locomo.load(data), keep=kept)
    data.write_text(data.read_text().replace("harbour", "old town"))
    await evaluate(locomo.load(data), keep=kept)
    await evaluate(locomo.load(data), keep=kept, config=Config(languages=("german",)))
    await evaluate(locomo.load(data), keep=kept)
    assert len(kept.read_text().splitlines()) == 3


async def test_longmemeval_is_measured_alike(tmp_path: Path) -> None:
    """Each question has its own history; abstentions are left out; line breaks in a message don't make turns."""
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(LONGMEMEVAL), encoding="utf-8")
    (conversation,) = longmemeval.load(path)
    assert [turn.id for turn in conversation.sessions[1].turns] == ["s_b:1", "s_b:2"]
    measured = await evaluate([conversation])
    assert (measured["session"]["frac"]["1"], measured["turn"]["frac"]["1"]) == (1.0, 1.0)


@pytest.mark.parametrize("text", ["{}", "[1]", '[{"qa": []}]', "no JSON"])
def test_data_of_another_schema_is_refused(tmp_path: Path, text: str) -> None:
    """The message names the file and the set, for a traceback helps nobody."""
    path = tmp_path / "other.json"
    path.write_text(text)
    for load in (locomo.load, longmemeval.load):
        if text != "{}":
            with pytest.raises(InvalidArguments, match=r"other\.json can't be read as Lo"):
                load(path)


def test_the_measures_are_what_they_say() -> None:
    """frac is the mean share of the evidence, any and all count questions, MRR looks at the first piece."""
    results = [result_of("a", ["x", "y", "x", "z"], {"x", "z"}), Result("b", [None])]
    assert results[0].ranks == [1, 4]
    measured = summary(results)
    assert measured["frac"] == {"1": 0.25, "5": 0.5, "10": 0.5}
    assert measured["any"]["1"] == 0.5 and measured["all"] == {"1": 0.0, "5": 0.5, "10": 0.5}
    assert measured["mrr"] == 0.5 and measured["categories"]["b"]["mrr"] == 0
