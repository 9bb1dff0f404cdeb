"""What Bedrock rejects: bodies against the service model, and the rules of conversations.

Source: the service model in botocore, the user guide ("Using the Converse API", "Prompt caching"),
and error messages as reported by users.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import botocore.session
from botocore.model import Shape, StructureShape
from botocore.validate import ParamValidator

from tests.upstream.checks import Problem

Body = Mapping[str, Any]
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_DOCUMENT_NAME = re.compile(r"(?:[a-zA-Z0-9()\[\]-]+ ?)+")
_MAX_CACHE_POINTS = 4


@cache
def _input_of(operation: str) -> StructureShape:
    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    shape: StructureShape = model.operation_model(operation).input_shape
    return shape


def find_problem(body: Body, model_id: str, operation: str = "Converse") -> Problem | None:
    """Return the first problem of a body, or None."""
    shape = _input_of(operation)
    params = {**body, "modelId": model_id}
    report = ParamValidator().validate(params, shape)
    if report.has_errors():
        return Problem((), report.generate_report())
    conversation = body if operation == "Converse" else body["input"]["converse"]
    return next(_values(params, shape, "body"), None) or next(_rules(conversation), None)


def _values(value: Any, shape: Shape, place: str) -> Iterator[Problem]:
    """Check what botocore's clients leave to the server: patterns, enums, maxima and base64."""
    if shape.type_name == "structure" and not shape.is_document_type:
        for name, member in shape.members.items():
            if name in value and name != "modelId":
                yield from _values(value[name], member, f"{place}.{name}")
    elif shape.type_name == "list":
        for index, one in enumerate(value):
            yield from _values(one, shape.member, f"{place}[{index}]")
    elif shape.type_name == "string":
        yield from _text(value, shape, place)
    elif shape.type_name in ("float", "integer"):
        if value > shape.metadata.get("max", value):
            yield Problem((), f"Value at '{place}' is too large")
    elif shape.type_name == "blob" and not _BASE64.fullmatch(value):
        yield Problem((), f"Value at '{place}' is not base64")


def _text(value: str, shape: Shape, place: str) -> Iterator[Problem]:
    pattern, most = shape.metadata.get("pattern"), shape.metadata.get("max")
    if shape.enum and value not in shape.enum:
        yield Problem((), f"Value at '{place}' must be one of {shape.enum}")
    if pattern and not re.fullmatch(pattern, value):
        yield Problem((), f"Value at '{place}' failed to satisfy the pattern {pattern}")
    if most and len(value) > most:
        yield Problem((), f"Value at '{place}' has more than {most} characters")


def _rules(body: Body) -> Iterator[Problem]:
    messages = body["messages"]
    if not messages or messages[0]["role"] != "user":
        yield Problem((), "A conversation must start with a user message.")
    if messages[-1]["role"] != "user":
        yield Problem((), "This model does not support assistant message prefill.")
    for index, message in enumerate(messages):
        if index and message["role"] == messages[index - 1]["role"]:
            yield Problem((), "A conversation must alternate between user and assistant roles.")
        if not message["content"]:
            yield Problem((), f"The content field in messages.{index} is empty.")
    yield from _blocks(body)


def _blocks(body: Body) -> Iterator[Problem]:
    system = body.get("system") or []
    tools = (body.get("toolConfig") or {}).get("tools") or []
    contents = [message["content"] for message in body["messages"]]
    points = sum("cachePoint" in one for blocks in (system, tools, *contents) for one in blocks)
    if points > _MAX_CACHE_POINTS:
        yield Problem((), f"at most {_MAX_CACHE_POINTS} cache points are allowed")
    names: set[str] = set()
    for content in contents:
        for before, block in zip([{}, *content], content, strict=False):
            if "text" in block and not block["text"].strip():
                yield Problem((), "The text field in the ContentBlock object is blank.")
            if {"toolUse", "toolResult"} & block.keys() and not tools:
                yield Problem(
                    (),
                    "The toolConfig field must be defined when using toolUse and toolResult "
                    "content blocks.",
                )
            if "cachePoint" in block and (not before or "reasoningContent" in before):
                yield Problem((), "Cache point cannot be inserted after reasoning block.")
            if document := block.get("document"):
                yield from _document(document, names)
        if any("document" in one for one in content) and not any("text" in one for one in content):
            yield Problem((), "A document needs a text block beside it.")


def _document(document: Body, names: set[str]) -> Iterator[Problem]:
    if not _DOCUMENT_NAME.fullmatch(document["name"]):
        yield Problem((), "The document file name can only contain alphanumeric characters, …")
    if document["name"] in names:
        yield Problem((), "Found duplicate document file names in messages.")
    names.add(document["name"])
