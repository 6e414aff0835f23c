"""A small server that speaks Anthropic's messages over real HTTP, streamed where the request asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openai_server import Answer, Request, ScriptedServer, text_of


class AnthropicServer(ScriptedServer):
    """Answers with text, and with calls of tools."""

    def body(self, request: Request, answer: Answer) -> dict[str, Any]:
        """A message."""
        text: dict[str, Any] = {"type": "text", "text": answer.content or ""}
        blocks = [] if answer.calls and not answer.content else [text]
        made = len(self.requests)  # names are never given twice
        for number, (name, arguments) in enumerate(answer.calls):
            blocks.append({"type": "tool_use", "id": f"toolu_{made}_{number}", "name": name, "input": arguments})
        return {
            "id": f"msg_{made}",
            "type": "message",
            "role": "assistant",
            "model": request.json["model"],
            "content": blocks,
            "stop_reason": answer.ended or ("tool_use" if answer.calls else "end_turn"),
            "stop_sequence": None,
            "usage": {"input_tokens": 7, "output_tokens": 5},
        }

    def chunks(self, request: Request, answer: Answer) -> Iterator[dict[str, Any]]:
        """The events of a message."""
        whole = self.body(request, answer)
        yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
        for index, block in enumerate(whole["content"]):
            is_text = block["type"] == "text"
            said, empty = (block["text"], {"text": ""}) if is_text else (text_of(block["input"]), {"input": {}})
            yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
            for start in range(0, len(said), 6):
                piece = said[start : start + 6]
                delta = {"type": "text_delta", "text": piece} if is_text else {"type": "input_json_delta", "partial_json": piece}
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": ended, "usage": whole["usage"]}
        yield {"type": "message_stop"}


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
