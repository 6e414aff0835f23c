"""Model clients over the real wire, through the official SDKs."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from anthropic_server import AnthropicServer
from openai_server import Answer, OpenAIServer, ScriptedServer

from mdmemory.errors import ConfigError, InvalidReply, ModelError, ModelUnavailable
from mdmemory.models import AnthropicModel, OpenAIModel, ScriptedModel, checked, model_from_string

SCHEMA = {
    "type": "object",
    "properties": {"files": {"type": "array", "items": {"type": "string"}, "maxItems": 5}},
    "required": ["files"],
    "additionalProperties": False,
}
ASKED = [{"role": "system", "content": "You pick files."}, {"role": "user", "content": "Which one?"}]
KEY = "sk-test-4711-secret"
KINDS = pytest.mark.parametrize(
    ("server_kind", "model_kind"), [(OpenAIServer, OpenAIModel), (AnthropicServer, AnthropicModel)], ids=["openai", "anthropic"]
)
Server = type[ScriptedServer]
Kind = type[OpenAIModel] | type[AnthropicModel]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield


async def _ask(server: ScriptedServer, kind: Kind, *, schema: Any = None, **settings: Any) -> Any:
    settings = {"api_key": KEY, "timeout_s": 20.0, "max_retries": 0, **settings}
    model = kind("m-1", base_url=server.base_url, **settings)
    try:
        return await model(ASKED, schema=schema)
    finally:
        await model.close()


@KINDS
async def test_a_client_answers_with_the_models_text(server_kind: Server, model_kind: Kind) -> None:
    """Without a schema the reply is the model's text as it came, and the key went in a header."""
    with server_kind(["Paris, café."]) as server:
        assert await _ask(server, model_kind) == "Paris, café."
    (request,) = server.requests
    assert request.json["model"] == "m-1"
    assert request.headers["authorization"] == f"Bearer {KEY}" or request.headers["x-api-key"] == KEY


async def test_openai_gets_the_schema_as_its_response_format() -> None:
    """The schema goes along strictly, and the messages as they are."""
    with OpenAIServer(['{"files": ["a.md"]}']) as server:
        assert checked(await _ask(server, OpenAIModel, schema=SCHEMA), SCHEMA) == {"files": ["a.md"]}
    sent = server.requests[0].json
    assert sent["messages"] == ASKED
    assert sent["response_format"] == {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA}}


async def test_anthropic_gets_system_messages_apart_and_the_schema_as_structured_output() -> None:
    """System messages are joined, and the schema is one that the API takes: it knows no maxItems."""
    with AnthropicServer(['{"files": []}']) as server:
        model = AnthropicModel("m-1", base_url=server.base_url, api_key=KEY, max_tokens=77)
        reply = await model([ASKED[0], *ASKED, {"role": "assistant", "content": "Hm."}, ASKED[1]], schema=SCHEMA)
        await model.close()
    assert checked(reply, SCHEMA) == {"files": []}
    sent = server.requests[0].json
    assert sent["system"] == "You pick files.\n\nYou pick files." and sent["max_tokens"] == 77
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "user"]
    form = sent["output_config"]["format"]
    assert form["type"] == "json_schema" and "maxItems" not in form["schema"]["properties"]["files"]
    assert form["schema"]["additionalProperties"] is False


@KINDS
async def test_an_endpoint_that_refuses_schemas_is_told_in_words_from_then_on(server_kind: Server, model_kind: Kind) -> None:
    """One refusal costs one request: the second ask has the schema in the prompt, and so has every later one."""
    with server_kind(lambda _: '```json\n{"files": ["a.md"]}\n```', refuses=["response_format", "output_config"]) as server:
        model = model_kind("m-1", base_url=server.base_url, api_key=KEY)
        replies = [await model(ASKED, schema=SCHEMA) for _ in range(2)]
        await model.close()
    assert [checked(reply, SCHEMA) for reply in replies] == [{"files": ["a.md"]}] * 2
    structured = [bool({"response_format", "output_config"} & set(request.json)) for request in server.requests]
    assert structured == [True, False, False]
    last = server.requests[-1].json["messages"][-1]
    assert last["role"] == "user" and last["content"].startswith("Which one?\n\n") and '"maxItems": 5' in last["content"]


async def test_a_request_that_is_wrong_for_another_reason_is_not_taken_for_a_refused_schema() -> None:
    """When the second ask fails as well, the next call tries the schema again."""
    answers: list[Answer | str] = [Answer("too long", status=400), Answer("too long", status=400), '{"files": []}']
    with OpenAIServer(answers) as server:
        model = OpenAIModel("m-1", base_url=server.base_url, api_key=KEY)
        with pytest.raises(ModelUnavailable, match="too long"):
            await model(ASKED, schema=SCHEMA)
        await model(ASKED, schema=SCHEMA)
        await model.close()
    assert "response_format" in server.requests[2].json


@KINDS
@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (Answer(f"bad key {KEY}", status=401), ModelUnavailable, "the key was refused .401.. Set [A-Z]+_API_KEY"),
        (Answer("no such model", status=404), ModelUnavailable, "no such model.*base URL"),
        (Answer("slow down", status=429), ModelUnavailable, "too many requests.*slow down"),
        (Answer("broken", status=500), ModelUnavailable, "the server failed.*broken"),
        (Answer(f"what is {KEY}? {'x' * 999}", status=400), ModelUnavailable, "what is"),
        (Answer("late", delay_s=5), ModelUnavailable, "no answer within 0.4 s"),
        (Answer("gone", drop_after=0), ModelUnavailable, "no connection to 127.0.0.1:"),
        (Answer(raw=b'{"choices": ['), InvalidReply, "Is the base URL right"),
        (Answer(raw=b"{}"), InvalidReply, "Is the base URL right"),
        (Answer(raw=b"<html>Hello</html>", headers={"content-type": "text/html"}), InvalidReply, "Is the base URL right"),
        (Answer("half a", ended="length"), InvalidReply, "cut off"),
        (Answer("I won't", ended="refusal"), InvalidReply, "refused"),
        (Answer(" "), InvalidReply, "empty"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
async def test_what_goes_wrong_is_said_briefly_and_without_the_key(
    server_kind: Server, model_kind: Kind, answer: Answer, error: type[ModelError], words: str
) -> None:
    """Every trouble of the wire comes out as a model error that says what to do, holds its cause, and shows no key."""
    with server_kind(lambda _: answer) as server, pytest.raises(error, match=words) as caught:
        await _ask(server, model_kind, timeout_s=0.4 if answer.delay_s else 20.0)
    assert len(str(caught.value)) < 400 and KEY not in str(caught.value) and KEY not in repr(caught.value)
    assert caught.value.__cause__ is not None or error is InvalidReply


@KINDS
async def test_a_server_that_is_not_there_is_named(server_kind: Server, model_kind: Kind) -> None:
    """The error says where nothing answered, without what stands before the host."""
    with server_kind([]) as server:
        address = server.base_url.removeprefix("http://")
    model = model_kind("m-1", base_url=f"http://me:hush@{address}", api_key=KEY, max_retries=0)
    with pytest.raises(ModelUnavailable, match=f"no connection to {address.split('/')[0]}") as caught:
        await model(ASKED)
    assert "hush" not in str(caught.value)


@KINDS
async def test_a_passing_trouble_is_tried_again(server_kind: Server, model_kind: Kind) -> None:
    """429 and 5xx are retried as the server asks, within the time-out of the whole call."""
    with server_kind([Answer(status=429, headers={"retry-after": "0.01"}), Answer(status=503), "at last"]) as server:
        assert await _ask(server, model_kind, max_retries=2) == "at last"
    with server_kind(lambda _: Answer(status=429, headers={"retry-after": "30"})) as server:
        with pytest.raises(ModelUnavailable, match=r"within 0\.5 s"):
            await _ask(server, model_kind, max_retries=2, timeout_s=0.5)
        assert len(server.requests) == 1


@KINDS
async def test_the_key_shows_in_no_repr_log_or_trace(
    server_kind: Server, model_kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither what a debugger prints nor the SDK's own log at its loudest has the key."""
    caplog.set_level(logging.DEBUG)
    with server_kind([Answer("no", status=401)]) as server:
        model = model_kind("m-1", base_url=server.base_url, api_key=KEY)
        with pytest.raises(ModelUnavailable) as caught:
            await model(ASKED)
        await model.close()
    assert repr(model) == f"{model_kind.__name__}('m-1')"
    assert caplog.text and KEY not in caplog.text
    assert KEY not in "".join(traceback.format_exception(caught.value))


@KINDS
async def test_the_key_is_read_when_it_is_needed(server_kind: Server, model_kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is set after the model was made is used; an own endpoint is asked without one, the provider's is not."""
    with server_kind(["one", "two"]) as server:
        late = model_kind("m-1", base_url=server.base_url)
        monkeypatch.setenv(model_kind.key_names[0], KEY)
        await late(ASKED)
        monkeypatch.delenv(model_kind.key_names[0])
        await late.close()
        await late(ASKED)
        await late.close()
    sent = [request.headers.get("authorization") or f"Bearer {request.headers['x-api-key']}" for request in server.requests]
    assert sent == [f"Bearer {KEY}", "Bearer none"]
    with pytest.raises(ModelUnavailable, match=f"there is no key. Set {model_kind.key_names[0]}"):
        await model_kind("m-1")(ASKED)


@KINDS
async def test_a_call_that_is_cancelled_leaves_nothing_running(server_kind: Server, model_kind: Kind) -> None:
    """Cancelling a slow call ends it at once, and the next call works."""
    with server_kind([Answer("slow", delay_s=2), "quick"]) as server:
        model = model_kind("m-1", base_url=server.base_url, api_key=KEY)
        slow = asyncio.create_task(model(ASKED))
        while not server.requests:
            await asyncio.sleep(0.01)
        before = asyncio.all_tasks() - {slow}
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        assert asyncio.all_tasks() == before
        assert await model(ASKED) == "quick"
        await model.close()


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_missing_sdk_is_said_with_the_command_that_installs_it(name: str) -> None:
    """Without the SDK a model can be named, and the first call says what to install."""
    code = f"""
import asyncio, sys
sys.modules[{name!r}] = None
from mdmemory.models import model_from_string
asyncio.run(model_from_string("{name}:m-1", api_key="k")([{{"role": "user", "content": "Hi"}}]))
"""
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = child.stderr.strip().splitlines()[-1]
    assert last == f"mdmemory.errors.ConfigError: Models of {name} need its SDK: pip install 'mdmemory[{name}]'"


@pytest.mark.parametrize(
    ("spec", "kind", "model", "base_url"),
    [
        ("openai:gpt-x", OpenAIModel, "gpt-x", None),
        (" anthropic:claude-x ", AnthropicModel, "claude-x", None),
        ("openai:qwen3@http://127.0.0.1:8080/v1", OpenAIModel, "qwen3", "http://127.0.0.1:8080/v1"),
        ("openai:qwen3:8b@https://example.org/v1", OpenAIModel, "qwen3:8b", "https://example.org/v1"),
        ("openai:org/model", OpenAIModel, "org/model", None),
        ("anthropic:claude@20260101", AnthropicModel, "claude@20260101", None),
        ("anthropic:claude@20260101@https://example.org", AnthropicModel, "claude@20260101", "https://example.org"),
    ],
)
def test_one_string_names_a_model(spec: str, kind: Kind, model: str, base_url: str | None) -> None:
    """Provider, model and address are told apart, also where the name has colons, slashes or an @."""
    made = model_from_string(spec, api_key=KEY)
    assert (type(made), made.model, made.base_url) == (kind, model, base_url)
    assert KEY not in repr(made)


@pytest.mark.parametrize(
    "spec", ["", "gpt-4", "openai:", "mistral:x", "openai:a b", "openai:q@localhost:8080/v1", "openai:q@http://", "OpenAI:q"]
)
def test_a_string_of_another_form_is_answered_with_the_three_forms(spec: str) -> None:
    """The error shows what a model string looks like."""
    with pytest.raises(ConfigError) as caught:
        model_from_string(spec)
    for form in ("openai:gpt-x", "anthropic:claude-x", "openai:qwen3@http://127.0.0.1:8080/v1"):
        assert form in str(caught.value)


@pytest.mark.parametrize("address", ["http://[", "http://host:99999", "http:///v1", "http://host:x/v1"])
def test_an_address_that_can_not_be_one_is_refused_at_once(address: str) -> None:
    """A mistyped address is a configuration error, not a failed call later."""
    with pytest.raises(ConfigError, match="address can't be used"):
        model_from_string(f"openai:m@{address}")


def test_the_address_may_come_apart_from_the_string() -> None:
    """The string's own address comes first."""
    assert model_from_string("openai:m", base_url="http://a/v1").base_url == "http://a/v1"
    assert model_from_string("openai:m@http://b/v1", base_url="http://a/v1").base_url == "http://b/v1"


async def test_a_scripted_model_plays_its_replies_in_order() -> None:
    """Text, dicts, errors and functions of the messages, awaited where they are async; every call is kept."""

    async def later(messages: Any) -> str:
        await asyncio.sleep(0)
        return f"{len(messages)} messages"

    model = ScriptedModel(["text", {"a": 1}, ModelUnavailable("away"), lambda messages: messages[-1]["content"], later])
    assert [await model(ASKED), await model(ASKED[1:])] == ["text", {"a": 1}]
    with pytest.raises(ModelUnavailable, match="away"):
        await model(ASKED)
    assert [await model(ASKED, schema=SCHEMA), await model(ASKED)] == ["Which one?", "2 messages"]
    assert model.calls == [ASKED, ASKED[1:], ASKED, ASKED, ASKED]
    with pytest.raises(InvalidReply, match="asked 6 times, but has 5 replies"):
        await model(ASKED)


async def test_a_scripted_model_can_be_slow() -> None:
    """A reply with a delay is cut off by whoever waits less long."""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ScriptedModel(["late"], delay_s=5)(ASKED), 0.02)
