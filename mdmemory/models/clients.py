"""Real models through the official SDKs, which the first call imports. Floor 1."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final

from mdmemory.errors import ConfigError, InvalidReply, ModelUnavailable
from mdmemory.models.replies import Message, Reply

_NO_KEY: Final = "none"  # for endpoints that want no key: the SDKs insist on one
_MAX_QUOTE: Final = 200


class _SdkModel:
    """What both clients do.

    Args:
        model: the name by which the endpoint knows it.
        base_url: another endpoint of the same protocol; it gets the same key, or "none" where there is none.
        api_key: instead of the one in the environment.
        timeout_s: for the whole answer, retries included.
        max_retries: after a broken connection, 429 or 5xx.
    """

    provider: ClassVar[str]
    base_error: ClassVar[str]
    key_names: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        max_retries: int = 2,
    ) -> None:
        self.model, self.base_url, self.timeout_s, self.max_retries = model, base_url, timeout_s, max_retries
        self._api_key = api_key
        self._client: Any = None
        self._schema_refused = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    async def __call__(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Reply:
        """Answer; an endpoint that refuses the schema is asked once more with the schema in words, and so from then on.

        Raises:
            ModelUnavailable: no answer; the message says what to do.
            InvalidReply: an answer that is empty, cut off, or not of this protocol.
            ConfigError: the SDK is not installed.
        """
        if schema is None:
            return await self._answer(messages, None)
        if not self._schema_refused:
            try:
                return await self._answer(messages, schema)
            except ModelUnavailable as error:
                if getattr(error.__cause__, "status_code", None) not in (400, 422):
                    raise
        reply = await self._answer(_in_words(messages, schema), None)
        self._schema_refused = True
        return reply

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[Any]:
        """The SDK's client; its errors come out as ours."""
        sdk = await asyncio.to_thread(_load, self.provider)  # takes a second the first time, in which the loop goes on
        try:
            if self._client is None:
                self._client = self._connect(sdk)
            yield self._client
        except json.JSONDecodeError as error:
            raise self._foreign() from error
        except (TimeoutError, sdk.APITimeoutError) as error:
            raise ModelUnavailable(f"{self._name}: no answer within {self.timeout_s:g} s.") from error
        except sdk.APIConnectionError as error:
            place = self._client.base_url.netloc.decode()
            raise ModelUnavailable(f"{self._name}: no connection to {place}, or it broke. Is the server running?") from error
        except getattr(sdk, self.base_error) as error:
            raise ModelUnavailable(f"{self._name}: {self._explained(error)}") from error

    @property
    def _name(self) -> str:
        return f"{self.provider}:{self.model}"

    async def _answer(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> str:
        async with self.asking() as client, asyncio.timeout(self.timeout_s):
            text, ended = await self._ask(client, [dict(message) for message in messages], schema)
        if ended in ("length", "max_tokens", "model_context_window_exceeded"):
            raise InvalidReply(f"{self._name}: the reply was cut off at the token limit.")
        if ended in ("refusal", "content_filter"):
            raise InvalidReply(f"{self._name}: the model refused to answer.")
        if not text.strip():
            raise InvalidReply(f"{self._name}: the reply is empty (it ended with {ended!r}).")
        return text

    async def _ask(self, client: Any, messages: list[dict[str, Any]], schema: Mapping[str, Any] | None) -> tuple[str, str]:
        raise NotImplementedError

    def _connect(self, sdk: Any) -> Any:
        raise NotImplementedError

    def _settings(self) -> dict[str, Any]:
        key = self._api_key
        if key is None and self.base_url and not any(os.environ.get(name) for name in self.key_names):
            key = _NO_KEY
        return {"base_url": self.base_url, "api_key": key, "timeout": self.timeout_s, "max_retries": self.max_retries}

    def _keyless(self) -> ModelUnavailable:
        return ModelUnavailable(f"{self._name}: there is no key. Set {self.key_names[0]}, or pass api_key.")

    def _foreign(self) -> InvalidReply:
        return InvalidReply(f"{self._name}: the answer is not one of the {self.provider} protocol. Is the base URL right?")

    def _explained(self, error: Any) -> str:
        status = getattr(error, "status_code", None) or 0
        if status in (401, 403):  # without the server's words: some quote the key in part
            return f"the key was refused ({status}). Set {self.key_names[0]}, or pass api_key."
        said = " ".join(str(getattr(error, "api_message", None) or error).split())
        for name in ("api_key", "auth_token"):
            key = getattr(self._client, name, None)
            said = said.replace(key, "***") if key and key != _NO_KEY else said
        said = said if len(said) <= _MAX_QUOTE else said[: _MAX_QUOTE - 3] + "..."
        if status == 404:
            return f"{said}. Are the model's name and the base URL right?"
        if status == 429:
            return f"too many requests, or no quota left. Try again later. ({said})"
        return f"the server failed. Try again later. ({said})" if status >= 500 else said


class OpenAIModel(_SdkModel):
    """Any endpoint that speaks OpenAI's chat completions; the key is in OPENAI_API_KEY."""

    provider, base_error, key_names = "openai", "OpenAIError", ("OPENAI_API_KEY",)

    def _connect(self, sdk: Any) -> Any:
        try:
            return sdk.AsyncOpenAI(**self._settings())
        except sdk.OpenAIError as error:
            raise self._keyless() from error

    async def _ask(self, client: Any, messages: list[dict[str, Any]], schema: Mapping[str, Any] | None) -> tuple[str, str]:
        form = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}
        extra = {} if schema is None else {"response_format": form}
        completion = await client.chat.completions.create(model=self.model, messages=messages, **extra)
        try:
            choice = completion.choices[0]
            return choice.message.content or "", "refusal" if choice.message.refusal else choice.finish_reason
        except (AttributeError, IndexError, TypeError) as error:
            raise self._foreign() from error


class AnthropicModel(_SdkModel):
    """Anthropic's messages; the key is in ANTHROPIC_API_KEY.

    A schema goes as structured output: models that always think refuse a forced tool call.

    Args:
        max_tokens: for the answer and, in models that think, the thoughts.
    """

    provider, base_error, key_names = "anthropic", "AnthropicError", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")

    def __init__(self, model: str, *, max_tokens: int = 4096, **settings: Any) -> None:
        super().__init__(model, **settings)
        self.max_tokens = max_tokens

    def _connect(self, sdk: Any) -> Any:
        client = sdk.AsyncAnthropic(**self._settings())
        if not (client.api_key or client.auth_token or client.credentials):
            raise self._keyless()
        return client

    async def _ask(self, client: Any, messages: list[dict[str, Any]], schema: Mapping[str, Any] | None) -> tuple[str, str]:
        said = [message for message in messages if message["role"] != "system"]
        system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
        extra: dict[str, Any] = {"system": system} if system else {}
        if schema is not None:
            dialect = _load("anthropic").transform_schema(dict(schema))  # what the API doesn't know goes into descriptions
            extra["output_config"] = {"format": {"type": "json_schema", "schema": dialect}}
        answer = await client.messages.create(model=self.model, max_tokens=self.max_tokens, messages=said, **extra)
        try:
            return "".join(block.text for block in answer.content if block.type == "text"), answer.stop_reason
        except (AttributeError, TypeError) as error:
            raise self._foreign() from error


def _load(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(f"Models of {name} need its SDK: pip install 'mdmemory[{name}]'") from error


def _in_words(messages: Sequence[Message], schema: Mapping[str, Any]) -> list[Message]:
    """The schema at the end of the last message: some endpoints insist on roles that alternate."""
    rest, last = list(messages[:-1]), messages[-1]
    wish = f"Answer with one JSON object and nothing else. It follows this JSON Schema:\n{json.dumps(schema)}"
    return [*rest, {**last, "content": f"{last['content']}\n\n{wish}"}]
