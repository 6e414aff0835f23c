"""What holds for every framework, over a real wire: a class of `AdapterSuite` says how the framework is used."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from command import REPOSITORY, environment
from hosts import BODY, DEPLOY, HOME, LINE, PICK_HOME, SAVE, Host, endpoint, left_behind, running, sent, system, text, written
from journaling import said_in
from openai_server import Answer, OpenAIServer, ScriptedServer
from pages import try_page

from mdmemory import Config, open_memory
from mdmemory.adapters import bridge


class AdapterSuite:
    """The tests; what a framework can't do, its class says.

    Args:
        name: of the adapter's module, its page and its example.
        server: what the framework's own client of OpenAI asks, in its page and its example.
        model: what it asks elsewhere.
    """

    host: ClassVar[type[Host]]
    name: ClassVar[str]
    server: ClassVar[type[ScriptedServer]] = OpenAIServer
    model: ClassVar[type[OpenAIServer]] = OpenAIServer

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        """A folder with one memory file."""
        (tmp_path / "memory").mkdir()
        (tmp_path / "memory/home.md").write_text(HOME)
        return tmp_path / "memory"

    async def test_the_system_prompt_carries_the_index(self, root: Path) -> None:
        """AM2: instructions and index stand behind the agent's own, the same text in each call of the conversation."""
        with self.model([SAVE, "Saved.", "Again."]) as server:
            async with open_memory(root) as memory:
                host = self.host(memory, server)
                await host.ask("Remember: we deploy on Tuesdays.")
                await host.ask("Thanks.")
        prompts = [system(messages) for messages in sent(server)]
        assert prompts[0].count(LINE) == 1 and 0 <= prompts[0].find("Be kind.") < prompts[0].index(LINE)
        assert prompts == [prompts[0]] * 3

    async def test_tools_are_offered_and_called(self, root: Path) -> None:
        """AM1: the model is told of the tools with their schemas, its call writes, and it reads what came of it."""
        with self.model([SAVE, "Saved."]) as server:
            async with open_memory(root) as memory:
                assert await self.host(memory, server).ask("Remember: we deploy on Tuesdays.") == "Saved."
                expected = {tool.name: tool.input_schema["properties"].keys() for tool in memory.tools.tools}
        offered = {
            tool["function"]["name"]: tool["function"]["parameters"]["properties"] for tool in server.requests[0].json["tools"]
        }
        assert {name: offered[name].keys() for name in expected} == expected
        assert (root / "deploy.md").read_text() == DEPLOY
        assert ["Created deploy.md." in json.dumps(messages) for messages in sent(server)] == [False, True]

    async def test_a_wrong_call_is_answered_with_how_to_mend_it(self, root: Path) -> None:
        """An error of a tool goes to the model, and the run goes on."""
        with self.model([Answer(calls=[("Read", {"file_path": "nope.md"})]), "Sorry."]) as server:
            async with open_memory(root) as memory:
                assert await self.host(memory, server).ask("Hello") == "Sorry."
        assert "There is no nope.md. Read . to list" in text(sent(server)[1][-1])

    async def test_a_hint_arrives_before_the_first_call_and_stays(self, root: Path) -> None:
        """AM5, H1: it stands once behind the user's message, also in all later requests, which only grow at their end."""
        with self.model([SAVE, "By the lake.", "You are welcome."]) as server:
            async with open_memory(root) as memory:
                host = self.host(memory, server)
                await host.ask("Any walks in my city?")
                await host.ask("Thanks for the walks in my city!")
        first, second, third = sent(server)
        said = "\n".join(text(message) for message in first if message["role"] == "user")
        assert 0 <= said.index("Any walks in my city?") < said.index(BODY)
        assert second[: len(first)] == first and third[: len(second)] == second
        assert json.dumps(third).count(BODY) == 1

    async def test_a_hint_arrives_between_calls(self, root: Path) -> None:
        """AM4: what a slow selector chose during the first call is in the second."""
        chosen = threading.Event()

        async def choose(messages: object, *, schema: object = None) -> Mapping[str, object]:
            while not server.requests:
                await asyncio.sleep(0.01)
            asyncio.get_running_loop().call_later(0.05, chosen.set)
            return PICK_HOME

        def answer(request: Any) -> Answer | str:
            return "Done." if len(server.requests) > 1 else SAVE if chosen.wait(10) else "too late"

        with self.model(answer) as server:
            async with open_memory(root, model=choose, config=Config(hint_wait_s=0.01)) as memory:
                session = {"write_back": "off"}
                assert await self.host(memory, server, **session).ask("Hello") == "Done."
        first, second = sent(server)
        assert BODY not in json.dumps(first) and json.dumps(second).count(BODY) == 1

    async def test_the_run_is_in_the_journal(self, root: Path) -> None:
        """C8: what the user said, the calls, their answers and the reply, in order, without hints, as a model's API takes them."""
        both = Answer(calls=[*SAVE.calls, ("Read", {"file_path": "home.md"})])
        with self.model([both, "Saved, by the lake."]) as server:
            async with open_memory(root) as memory:
                await self.host(memory, server).ask("Remember Tuesdays, and walks in my city.", "monday")
            async with open_memory(root) as memory:
                user, called, *answered, reply = await memory.session("monday").messages()
        assert (user.role, user.text) == ("user", "Remember Tuesdays, and walks in my city.")
        assert (reply.role, reply.text) == ("assistant", "Saved, by the lake.")
        write, read = called.data["tool_calls"]
        assert (write["function"]["name"], read["function"]["name"]) == ("Write", "Read")
        assert json.loads(write["function"]["arguments"])["file_path"] == "deploy.md"
        answers = {message.data["tool_call_id"]: message.text for message in answered}
        assert answers.keys() == {write["id"], read["id"]} and "Created deploy.md." in answers[write["id"]]

    async def test_two_runs_at_once_do_not_mix(self, root: Path) -> None:
        """H2: two conversations at the same time with one agent each have their own hint, tools and journal."""
        (root / "deploy.md").write_text(DEPLOY)
        asked, both_asked = set[str](), threading.Event()

        def answer(request: Any) -> Answer:
            topic = "walk" if "Walks in my city?" in json.dumps(request["messages"]) else "release"
            if "Created" in json.dumps(request["messages"]):
                return Answer(f"About the {topic}.")
            asked.add(topic)
            if len(asked) == 2:
                both_asked.set()
            return Answer(calls=[("Add", {"thinking": "", "content": f"Asked for a {topic}."})], after=both_asked)

        with self.model(answer) as server:
            async with open_memory(root) as memory:
                host = self.host(memory, server)
                replies = await asyncio.gather(host.ask("Walks in my city?", "a"), host.ask("When is release day?", "b"))
        assert replies == ["About the walk.", "About the release."]
        assert ["Walks" in json.dumps(messages) for messages in sent(server)[:2]].count(True) == 1  # at once, then
        for messages in sent(server):
            about_walk = "Walks in my city?" in json.dumps(messages)
            assert (BODY in json.dumps(messages), "> Only on Tuesdays." in json.dumps(messages)) == (about_walk, not about_walk)
        assert [said_in(root, id)[-1][1] for id in "ab"] == replies
        assert written(root) == {("agent:a", "project/asked-for-a-walk.md"), ("agent:b", "project/asked-for-a-release.md")}

    async def test_a_cancelled_run_leaves_nothing_behind(self, root: Path) -> None:
        """Nothing goes on after it, the journal has what the user said and no reply, and the next run is whole."""
        with self.model(lambda _: Answer("late", delay_s=0.3) if len(server.requests) == 1 else "By the lake.") as server:
            async with open_memory(root, model=_never) as memory:
                host = self.host(memory, server, write_back="off")
                run = asyncio.create_task(host.ask("Any walks in my city?"))
                while not server.requests:
                    await asyncio.sleep(0.01)
                assert running() != []
                run.cancel()
                await asyncio.wait([run])  # cancelled, or what the framework makes of it
                assert await left_behind() == []
                assert said_in(root, "one") == [("user", "Any walks in my city?")]
                assert await host.ask("Well?") == "By the lake."
                assert said_in(root, "one")[1:] == [("user", "Well?"), ("assistant", "By the lake.")]

    async def test_a_failing_model_leaves_nothing_behind(self, root: Path) -> None:
        """The framework's own error comes out, nothing goes on after it, and the next run is whole."""
        broken = Answer("broken", status=400)
        with self.model(lambda _: broken if len(server.requests) == 1 else "By the lake.") as server:
            async with open_memory(root, model=_never) as memory:
                host = self.host(memory, server, write_back="off")
                with pytest.raises(Exception, match="broken"):
                    await host.ask("Any walks in my city?")
                assert await left_behind() == []
                assert await host.ask("Well?") == "By the lake."
        assert said_in(root, "one")[1:] == [("user", "Well?"), ("assistant", "By the lake.")]

    async def test_streaming(self, root: Path) -> None:
        """A streamed reply comes piece by piece, after a call of a tool, and is in the journal."""
        with self.model([SAVE, "Around the lake, by day."]) as server:
            async with open_memory(root) as memory:
                pieces = await self.host(memory, server).stream("Any walks in my city?")
        assert "".join(pieces) == "Around the lake, by day." and len(pieces) > 2
        assert BODY in json.dumps(sent(server)[0]) and (root / "deploy.md").exists()
        [place] = root.glob("journal/*/*/*.md")
        said = said_in(root, place.stem)
        assert said[0] == ("user", "Any walks in my city?") and said[-1] == ("assistant", "Around the lake, by day.")

    async def test_a_prefix_keeps_names_apart(self, root: Path) -> None:
        """With a prefix the tools have other names, and the journal their own, by which the memory knows its answers."""
        call = Answer(calls=[(f"memory_{name}", arguments) for name, arguments in SAVE.calls])
        with self.model([call, "Saved."]) as server:
            async with open_memory(root) as memory:
                assert await self.host(memory, server, prefix="memory_").ask("Remember Tuesdays.", "monday") == "Saved."
                [_, called, *_] = await memory.session("monday").messages()
        names = {tool["function"]["name"] for tool in server.requests[0].json["tools"]}
        assert "memory_Write" in names and "Write" not in names and (root / "deploy.md").exists()
        assert called.data["tool_calls"][0]["function"]["name"] == "Write"

    async def test_a_memory_that_fails_breaks_no_reply(self, root: Path) -> None:
        """Where the folder can't be looked at, the agent answers without it."""
        with self.model(["Hello.", "By the lake."]) as server:
            async with open_memory(root) as memory:
                host = self.host(memory, server)
                await host.ask("Hello")
                shutil.rmtree(root)
                root.write_text("no folder")
                assert await host.ask("Any walks in my city?") == "By the lake."

    def test_synchronous_calls(self, root: Path) -> None:
        """On a memory of the bridge the framework's synchronous call does the same."""
        with self.model([SAVE, "Saved."]) as server, bridge.open_memory(root) as memory:
            assert self.host(memory, server).ask_now("Remember: we deploy on Tuesdays; walks in my city.") == "Saved."
        assert LINE in system(sent(server)[0]) and BODY in json.dumps(sent(server)[0])
        assert (root / "deploy.md").read_text() == DEPLOY
        [place] = root.glob("journal/*/*/*.md")
        assert said_in(root, place.stem)[-1] == ("assistant", "Saved.")

    def test_its_page_does_what_it_says(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The framework's page in docs/adapters, with a model that knows only what it is told."""
        monkeypatch.chdir(tmp_path)
        with self.server(lambda request: "Around West Lake." if BODY in json.dumps(request) else "Where do you live?") as server:
            for name, value in endpoint(server).items():
                monkeypatch.setenv(name, value)
            try_page(REPOSITORY / f"docs/adapters/{self.name}.md", tmp_path)
        assert server.requests

    def test_its_example_runs(self, tmp_path: Path) -> None:
        """AM3: what one process saves is in the prompt and in the first hint of the next."""
        save = Answer(calls=[("Write", {"file_path": "home.md", "content": HOME})])
        with self.server([save, "Saved.", "Around West Lake.", "You are welcome."]) as server:
            env = environment(**endpoint(server))
            command = [sys.executable, str(REPOSITORY / f"examples/with_{self.name}.py"), "m", "memory"]
            for texts, printed in ((["Remember where I live."], "Saved."), (["Any walks in my city?", "Thanks!"], "Around")):
                done = subprocess.run([*command, *texts], cwd=tmp_path, env=env, capture_output=True, encoding="utf-8", check=False)
                assert done.returncode == 0 and printed in done.stdout, done.stderr
        assert (tmp_path / "memory/home.md").read_text() == HOME
        told = json.dumps(server.requests[2].json, ensure_ascii=False)
        assert LINE in told and BODY in told and "You are welcome." in done.stdout
        assert BODY in json.dumps(server.requests[3].json)


async def _never(messages: object, *, schema: object = None) -> Mapping[str, object]:
    await asyncio.sleep(60)
    return {}
