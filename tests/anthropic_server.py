"""A small server that speaks Anthropic's messages over real HTTP, without streaming."""

from __future__ import annotations

from typing import Any

from openai_server import Answer, Request, ScriptedServer


class AnthropicServer(ScriptedServer):
    """Answers with one block of text."""

    def body(self, request: Request, answer: Answer) -> dict[str, Any]:
        """A message."""
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": request.json["model"],
            "content": [{"type": "text", "text": answer.content or ""}],
            "stop_reason": answer.ended or "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 7, "output_tokens": 5},
        }
