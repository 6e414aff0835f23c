"""Models: any `async (messages, *, schema=None)` that returns a dict or text. Floor 1.

`replies` reads what models answer, `clients` asks real ones through the official SDKs, `scripted` plays one for tests and demos.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from mdmemory.errors import ConfigError
from mdmemory.models.clients import AnthropicModel, OpenAIModel
from mdmemory.models.replies import Message, Model, Reply, checked, parse_json
from mdmemory.models.scripted import Scripted, ScriptedModel

__all__ = [
    "AnthropicModel",
    "Message",
    "Model",
    "OpenAIModel",
    "Reply",
    "Scripted",
    "ScriptedModel",
    "checked",
    "model_from_string",
    "parse_json",
]

_SPEC: Final = re.compile(r"(openai|anthropic):([^\s@]+(?:@[\w.-]+)??)(?:@(https?://\S+))?")
_FORMS: Final = "openai:gpt-x, anthropic:claude-x, or with an address openai:qwen3@http://127.0.0.1:8080/v1"


def model_from_string(spec: str, *, api_key: str | None = None, base_url: str | None = None) -> OpenAIModel | AnthropicModel:
    """A client for the model that one string names.

    Args:
        spec: provider, model and, for any other endpoint of that protocol, `@` and its address.
        api_key: instead of OPENAI_API_KEY or ANTHROPIC_API_KEY, which are read at the first call.
        base_url: where the spec names no address.

    Raises:
        ConfigError: the string has another form.
    """
    found = _SPEC.fullmatch(spec.strip())
    if found is None:
        raise ConfigError(f"{spec!r} does not name a model. Use one of: {_FORMS}.")
    provider, model, address = found.groups()
    kind = OpenAIModel if provider == "openai" else AnthropicModel
    return kind(model, base_url=_usable(address or base_url), api_key=api_key)


def _usable(address: str | None) -> str | None:
    try:
        if address is None or (urlsplit(address).port != 0 and urlsplit(address).hostname):
            return address
    except ValueError:
        pass
    raise ConfigError(f"The model's address can't be used: give one like http://127.0.0.1:8080/v1. Forms: {_FORMS}.")
