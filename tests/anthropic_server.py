"""A small server that speaks Anthropic's messages over real HTTP, without streaming."""

from __future__ import annotations

from typing import Any

from openai_server import Answer, Request, ScriptedServer


class AnthropicServer(ScriptedServer):
    """Answers with text, and with calls of tools."""

    def body(self, request: Request, answer: Answer) -> dict[str, Any]:
        """A message."""
        text: dict[str, Any] = {"type": "text", "text": answer.content or ""}
        blocks = [] if answer.calls and not answer.content else [text]
        for number, (name, arguments) in enumerate(answer.calls):
            blocks.append({"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments})
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": request.json["model"],
            "content": blocks,
            "stop_reason": answer.ended or ("tool_use" if answer.calls else "end_turn"),
            "stop_sequence": None,
            "usage": {"input_tokens": 7, "output_tokens": 5},
        }


def remembers_tea(request: Any) -> Answer:
    """What a model with the memory tool answers: it writes down what it is to remember, looks up what it is asked, and says so."""
    path = "/memories/preferences.md"
    match request["messages"][-1]["content"]:
        case str(text) if "Remember" in text:
            note = "# Preferences\n\nLikes green tea.\n"
            return Answer(calls=[("memory", {"command": "create", "path": path, "file_text": note})])
        case str():
            return Answer(calls=[("memory", {"command": "view", "path": path})])
        case results:
            return Answer("You like green tea." if "green tea" in str(results) else "Noted.")
