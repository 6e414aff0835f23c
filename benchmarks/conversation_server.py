"""A model from a script behind OpenAI's protocol, the same for all who are measured: the agent's, and what a memory asks besides.

As agent it does what the instructions of a memory in Markdown files want: it writes down what it is told for the first time, edits
the file of a fact that has changed, and reads a file that it needs when only its name is shown.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal

from conversation_turns import Fact, Turn

from mdmemory.render import estimate_tokens

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from openai_server import Answer, OpenAIServer, Request

Kind = Literal["agent", "selection", "extraction", "embedding"]
Calls = list[tuple[str, Mapping[str, Any]]]
DIMENSIONS = 32
MAX_STEPS = 5  # tool calls that fail are not tried for ever
SAID = re.compile(r"^(\d+)\. user, [^\n]*:\n> ([^\n]*)$", re.MULTILINE)  # in our prompt for an extraction
PLACE = re.compile(r"memory system at `([^`]+)`")  # in agentscope's instructions, whose tools want whole paths
INDEX = "## MEMORY.md\n"  # there too, before the index


@dataclass(frozen=True, slots=True)
class Call:
    """One request: what it sent and got, in estimated tokens; all its text; and how many facts were to be saved by the answer."""

    kind: Kind
    sent: int
    got: int
    prompt: str
    facts: int = 0


class Server(OpenAIServer):
    """Answers about one turn after the other: whoever measures sets `turn`, and finds what was asked in `calls`.

    Args:
        turns: the whole conversation.
        saves: whether the agent writes down what it is told, with its tools.
    """

    def __init__(self, turns: Sequence[Turn], *, saves: bool) -> None:
        super().__init__(())
        self.turns, self.saves, self.turn = turns, saves, turns[0]
        self.calls: list[Call] = []
        self._ids = count()

    def answer(self, request: Request) -> Answer:
        """What the script says to this request."""
        kind, sent = kind_of(request), list(texts(request.json))
        prompt, facts = "\n".join(sent), 0
        answer = Answer()
        if kind == "agent":
            answer = self._agent(request.json, prompt)
            facts = sum(name in ("Write", "Edit") and not given["file_path"].endswith("MEMORY.md") for name, given in answer.calls)
        elif kind == "selection":
            answer = self._selection(prompt, as_call="tools" in request.json)
        elif kind == "extraction":
            is_ours = request.json["response_format"]["type"] == "json_schema"
            found = self._memories(prompt) if is_ours else self._sentences(prompt)
            facts = sum(each.get("action") != "none" for each in found)
            answer = Answer(json.dumps({"memories" if is_ours else "memory": found}, ensure_ascii=False))
        got = answer.content or "", *(f"{name} {json.dumps(given, ensure_ascii=False)}" for name, given in answer.calls)
        self.calls.append(Call(kind, sum(map(estimate_tokens, sent)), sum(map(estimate_tokens, got)), prompt, facts))
        return answer

    def body(self, request: Request, answer: Answer) -> dict[str, Any]:
        """A chat completion, whose calls have ids of their own, or vectors."""
        if kind_of(request) != "embedding":
            body = super().body(request, answer)
            for call in body["choices"][0]["message"].get("tool_calls", ()):
                call["id"] = f"call_{next(self._ids)}"
            return body
        data = [
            {"object": "embedding", "index": n, "embedding": self._vector(text)} for n, text in enumerate(request.json["input"])
        ]
        return {"object": "list", "model": "scripted", "data": data, "usage": {"prompt_tokens": 0, "total_tokens": 0}}

    def _agent(self, asked: Mapping[str, Any], prompt: str) -> Answer:
        """The agent's next step: calls of tools, or the reply."""
        steps = sum(bool(message.get("tool_calls")) for message in asked["messages"])
        place = PLACE.search(prompt)
        root = f"{place[1]}/" if place else ""
        calls: Calls = []
        if "tools" in asked and self.turn.asks:
            calls = looking_up(self.turn.asks, root, prompt, steps)
        elif "tools" in asked and self.saves and (fact := self.turn.tells):
            if fact.replaces:
                old = next(turn.tells for turn in self.turns if turn.tells and turn.tells.path == fact.replaces)
                calls = editing(old, fact, root, prompt)
            elif steps or fact.path not in prompt:
                calls = saving(fact, root, next(texts(asked)), steps)
        return Answer(calls=calls) if calls and steps < MAX_STEPS else Answer(self.turn.reply)

    def _selection(self, prompt: str, *, as_call: bool) -> Answer:
        """The file that the turn asks about, or that it changes, if it is among those to choose from."""
        wanted = [self.turn.asks.path, self.turn.asks.replaces] if self.turn.asks else []
        wanted += [self.turn.tells.replaces] if self.turn.tells else []
        found = [path for path in wanted if path and path in prompt]
        if as_call:
            return Answer(calls=[("generate_structured_output", {"selected_files": found})])
        return Answer(json.dumps({"files": [{"path": path, "reason": "the message is about it"} for path in found]}))

    def _memories(self, prompt: str) -> list[dict[str, Any]]:
        """What our extractor is told: every fact of the new messages once, `none` where a file shown has it already."""
        before, _, new = prompt.partition("## New messages")
        files = before.partition("## Memory files")[2]
        told = {turn.user: turn.tells for turn in self.turns}
        found: dict[str, dict[str, Any]] = {}
        for number, text in SAID.findall(new):
            if (fact := told.get(text)) is None or fact.path in found:
                continue
            known, replaces = f"File {fact.path} " in files, fact.replaces if f"File {fact.replaces} " in files else ""
            found[fact.path] = {
                "action": "none" if known else "supersede" if replaces else "add",
                "path": fact.path,
                "replaces": replaces,
                "name": fact.name,
                "description": fact.about,
                "type": fact.type,
                "body": "" if known else fact.body,
                "reason": "the user said so",
                "sources": [int(number)],
            }
        return list(found.values())

    def _sentences(self, prompt: str) -> list[dict[str, Any]]:
        """What mem0 is told: the facts of the new messages that are not among the memories it shows."""
        before, _, new = prompt.rpartition("## New Messages")
        existing = json.dumps(before.rpartition("## Existing Memories")[2], ensure_ascii=False)
        facts = [turn.tells for turn in self.turns if turn.tells and turn.user in new]
        new_facts = [fact for fact in facts if fact.answer not in existing]
        return [{"id": str(number), "text": fact.body, "attributed_to": "user"} for number, fact in enumerate(new_facts)]

    def _vector(self, text: str) -> list[float]:
        """What the best of embedding models would say: near to each other is what states, asks about or changes one fact."""
        facts = dict.fromkeys(turn.tells.replaces or turn.tells.path for turn in self.turns if turn.tells)
        vector = dict.fromkeys(facts, 0.0)
        for turn in self.turns:
            for fact in filter(None, (turn.tells, turn.asks)):
                if turn.user in text or fact.body.replace("\n", " ") in text:
                    vector[fact.replaces or fact.path] = 1.0
        rest = [0.0] * (DIMENSIONS - len(facts))
        return [*vector.values(), *rest[1:], float(not any(vector.values()))]


def looking_up(fact: Fact, root: str, prompt: str, steps: int) -> Calls:
    """Read the file of a fact that is named in the prompt, when the fact itself is not there."""
    path = next((path for path in (fact.path, fact.replaces) if path and path in prompt), None)
    return [("Read", {"file_path": root + path})] if path and not steps and fact.answer not in prompt else []


def editing(old: Fact, fact: Fact, root: str, prompt: str) -> Calls:
    """Put the new text in the place of the old one, which has to be seen first."""
    path = root + old.path
    if fact.body in prompt:
        return []
    if old.body not in prompt:
        return [("Read", {"file_path": path})]
    return [("Edit", {"file_path": path, "old_string": old.body, "new_string": fact.body})]


def saving(fact: Fact, root: str, system: str, steps: int) -> Calls:
    """The calls that save a new fact; where the agent has to keep the index too, with its line there."""
    index = system.partition(INDEX)[2].splitlines() if root else []
    is_empty = bool(index) and not index[-1].startswith("- [")
    memory, line = f"{root}MEMORY.md", f"- [{fact.name}]({fact.path}) — {fact.about}"
    if steps == 0:
        head = f"---\nname: {fact.name}\ndescription: {fact.about}\ntype: {fact.type}\n---\n"
        calls: Calls = [("Write", {"file_path": root + fact.path, "content": f"{head}\n{fact.body}\n"})]
        if is_empty:  # a file that is there has to be read before it is overwritten
            calls.append(("Read", {"file_path": memory}))
        elif index:
            calls.append(("Edit", {"file_path": memory, "old_string": index[-1], "new_string": f"{index[-1]}\n{line}"}))
        return calls
    return [("Write", {"file_path": memory, "content": f"{line}\n"})] if is_empty and steps == 1 else []


def kind_of(request: Request) -> Kind:
    """What a request is for, as its form tells."""
    if request.path.endswith("/embeddings"):
        return "embedding"
    form = request.json.get("response_format")
    if form is None:
        tools = [tool["function"]["name"] for tool in request.json.get("tools", ())]
        return "selection" if tools == ["generate_structured_output"] else "agent"
    return "selection" if form["type"] == "json_schema" and "files" in form["json_schema"]["schema"]["properties"] else "extraction"


def texts(asked: Mapping[str, Any]) -> Iterator[str]:
    """All that a model has to read: messages, calls of tools, their definitions, the form of the reply; or what to embed."""
    yield from asked.get("input", ())
    for message in asked.get("messages", ()):
        content = message.get("content") or ""
        yield content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
        for call in message.get("tool_calls") or ():
            arguments = json.loads(call["function"]["arguments"])
            yield f"{call['function']['name']} {json.dumps(arguments, ensure_ascii=False)}"
    for part in (asked.get("tools"), asked.get("response_format")):
        if part:
            yield json.dumps(part, ensure_ascii=False)
