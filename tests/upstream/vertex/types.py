"""Checks of bodies by google-genai's types, which its client sends to Vertex AI."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from pydantic import ValidationError

from services.sandbox.model.models import SandboxError

Read = Callable[[Any], Any]


def check(method: str, body: Mapping[str, Any]) -> None:
    """Check a body of a method.

    Raises:
        SandboxError: a field is unknown, or has another type.
    """
    fields = _fields()[method]
    for name, value in body.items():
        if name not in fields:
            message = f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
            raise SandboxError("invalid", 400, message, path=(name,))
        try:
            fields[name](value)
        except ValidationError as error:
            problem = error.errors()[0]
            path = (name, *problem["loc"])
            raise SandboxError("invalid", 400, problem["msg"], path=path) from error


@cache
def _fields() -> Mapping[str, Mapping[str, Read]]:
    """Return the reader of each field, by method."""
    # The import takes a second.
    from google.genai import types

    def each(read: Read) -> Read:
        return lambda values: [read(value) for value in values]

    content = types.Content.model_validate
    reads = {
        "contents": each(content),
        "systemInstruction": content,
        "tools": each(types.Tool.model_validate),
        "generationConfig": types.GenerationConfig.model_validate,
    }
    embedding = {"content": content, "embedContentConfig": types.EmbedContentConfig.model_validate}

    def request(value: Mapping[str, Any]) -> None:
        check("embedContent", value)

    return {
        "generateContent": {
            **reads,
            "toolConfig": types.ToolConfig.model_validate,
            "safetySettings": each(types.SafetySetting.model_validate),
            "cachedContent": str,
            "labels": dict,
        },
        "countTokens": reads,
        "embedContent": embedding,
        "batchEmbedContents": {"requests": each(request)},
        "predict": {"instances": each(_instance), "parameters": _parameters},
    }


def _instance(value: Mapping[str, Any]) -> None:
    if value.keys() - {"content", "task_type", "title"} or not isinstance(value["content"], str):
        raise SandboxError("invalid", 400, "instances: Invalid value")


def _parameters(value: Mapping[str, Any]) -> None:
    if value.keys() - {"outputDimensionality", "autoTruncate"}:
        raise SandboxError("invalid", 400, "parameters: Invalid value")
