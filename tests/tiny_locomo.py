"""A conversation of our own in the schema of LoCoMo."""

from __future__ import annotations

from typing import Any


def turn(id: str, speaker: str, text: str, **more: str) -> dict[str, str]:
    """A turn as the set has it."""
    return {"dia_id": id, "speaker": speaker, "text": text, **more}


LOCOMO: list[dict[str, Any]] = [
    {
        "sample_id": "tiny",
        "conversation": {
            "speaker_a": "Ida",
            "speaker_b": "Tom",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                turn("D1:1", "Ida", "Hi Tom, did you find a flat?"),
                turn("D1:2", "Tom", "Yes, in the harbour, from June."),
                turn("D1:3", "Ida", "Great! I planted beans."),
                turn("D1:4", "Tom", "Look at my cat.", blip_caption="a tabby on a windowsill"),
            ],
            "session_2_date_time": "9:01 am on 2 July, 2023",
            "session_2": [
                turn("D2:1", "Tom", "The beans, did they grow?"),
                turn("D2:2", "Ida", "They did; the snails left me half."),
                turn("D2:3", "Tom", "I sold the violin."),
                turn("D2:4", "Ida", "Why ever?"),
            ],
            "session_3_date_time": "unknown",
            "session_3": [],
        },
        "qa": [
            {"question": "Where is Tom's flat?", "answer": "harbour", "evidence": ["D1:2"], "category": 4},
            {"question": "What became of the beans?", "answer": "half", "evidence": ["D1:3; D02:2"], "category": 1},
            {"question": "Which animal sat on a windowsill?", "answer": "a tabby", "evidence": ["D1:4"], "category": 4},
            {"question": "Nothing to be found?", "answer": "", "evidence": [], "category": 5},
            {"question": "Evidence that is not there?", "answer": "", "evidence": ["D9:9"], "category": 5},
        ],
    }
]
