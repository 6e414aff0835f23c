"""A small server that speaks OpenAI's Responses over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openai_server import Answer, Request, ScriptedServer, text_of


class ResponsesServer(ScriptedServer):
    """Answers with function calls or one text, which a stream brings in small pieces."""

    prefix = "/v1"

    def body(self, request: Request, answer: Answer) -> dict[str, Any]:
        """A response."""
        number = len(self.requests)  # names are never given twice
        said = {"type": "output_text", "text": answer.content or "", "annotations": []}
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": [said]}
        calls = [
            {
                "id": f"fc_{number}_{n}",
                "type": "function_call",
                "call_id": f"call_{number}_{n}",
                "name": name,
                "arguments": text_of(arguments),
            }
            for n, (name, arguments) in enumerate(answer.calls)
        ]
        return {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1_700_000_000,
            "model": request.json["model"],
            "status": "completed",
            "output": [*calls] if answer.content is None else [message, *calls],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }

    def chunks(self, request: Request, answer: Answer) -> Iterator[dict[str, Any]]:
        """The events of a response."""
        whole = self.body(request, answer)
        events: list[dict[str, Any]] = [{"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}]
        for index, item in enumerate(whole["output"]):
            text = answer.content if item["type"] == "message" else None
            begun = {**item, "content": []} if text else item
            events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
            if text:
                part = {
                    "item_id": item["id"],
                    "output_index": index,
                    "content_index": 0,
                    "part": {**item["content"][0], "text": ""},
                }
                events.append({"type": "response.content_part.added", **part})
            for start in range(0, len(text or ""), 4):
                delta = {"item_id": item["id"], "output_index": index, "content_index": 0, "delta": (text or "")[start : start + 4]}
                events.append({"type": "response.output_text.delta", "logprobs": [], **delta})
            events.append({"type": "response.output_item.done", "output_index": index, "item": item})
        events.append({"type": "response.completed", "response": whole})
        yield from ({**event, "sequence_number": number} for number, event in enumerate(events))
