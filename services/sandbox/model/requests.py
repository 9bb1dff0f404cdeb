"""Readers of a canonical request for the sandbox's models.

Sizes are in tokens of the sandbox's own: four characters read are one token, and so is each
piece that `tokens` cuts a written text into.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile, takewhile

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message, ToolResult
from gateway.inference.v1.inference_pb2 import GenerateRequest, OutputFormat, ThinkingConfig

_CHARACTERS_A_TOKEN = 4
_TOKENS_A_MEDIUM = 256
_ENVIRONMENT = "<environment_context>"
_TOKEN = re.compile(r"\s*\S{1,8}|\s+")
_THINKING_MODES = (ThinkingConfig.MODE_ENABLED, ThinkingConfig.MODE_ADAPTIVE)


def texts(messages: Iterable[Message]) -> Iterator[str]:
    """Return the texts and refusals of messages, in order; tool results are not among them."""
    for message in messages:
        for block in message.blocks:
            if block.HasField("text"):
                yield block.text
            elif block.HasField("refusal"):
                yield block.refusal


def media(messages: Iterable[Message]) -> Iterator[Media]:
    """Return the media of messages, those of tool results included, in order."""
    for message in messages:
        for block in message.blocks:
            if block.HasField("media"):
                yield block.media
            elif block.HasField("tool_result"):
                inner = block.tool_result.blocks
                yield from (one.media for one in inner if one.HasField("media"))


def results(messages: Iterable[Message]) -> Iterator[ToolResult]:
    """Return the tool results of messages, in order."""
    for message in messages:
        for block in message.blocks:
            if block.HasField("tool_result"):
                yield block.tool_result


def result_text(result: ToolResult) -> str:
    """Return the text of a tool result."""
    return "".join(block.text for block in result.blocks)


def asked(request: GenerateRequest) -> list[Message]:
    """Return the user's messages that wait for an answer, in order."""
    before_prefill = dropwhile(_is_assistant, reversed(request.messages))
    waiting = takewhile(lambda message: not _is_assistant(message), before_prefill)
    user = conversation_pb2.ROLE_USER
    return [message for message in waiting if message.role == user][::-1]


def said(request: GenerateRequest) -> list[str]:
    """Return the texts that wait for an answer, but for what Codex adds about its environment."""
    waiting = list(texts(asked(request)))
    return [text for text in waiting if not text.startswith(_ENVIRONMENT)] or waiting


def prefill(request: GenerateRequest) -> str:
    """Return the text that the answer is to continue, or ""."""
    trailing = takewhile(_is_assistant, reversed(request.messages))
    return "".join(texts(reversed(list(trailing))))


def _is_assistant(message: Message) -> bool:
    return message.role == conversation_pb2.ROLE_ASSISTANT


def thinks(request: GenerateRequest) -> bool:
    """Return whether the request asks for thinking."""
    thinking = request.thinking
    if thinking.mode == ThinkingConfig.MODE_UNSPECIFIED:
        return thinking.effort not in ("", "none")
    return thinking.mode in _THINKING_MODES


def schema(request: GenerateRequest) -> Mapping[str, object] | None:
    """Return the JSON Schema that the answer must match, or None."""
    form = request.output_format
    if form.kind != OutputFormat.KIND_JSON_SCHEMA:
        return None
    parsed: Mapping[str, object] = orjson.loads(form.schema or b"{}")
    return parsed


def has_cache_marks(request: GenerateRequest) -> bool:
    """Return whether the request marks a part of itself for the provider's cache."""
    return any(tool.cache_control for tool in request.tools) or any(
        block.cache_control for message in request.messages for block in message.blocks
    )


def top_logprobs(request: GenerateRequest) -> int | None:
    """Return how many alternatives a token gets; None without log probabilities."""
    return request.top_logprobs if request.logprobs else None


def input_tokens(request: GenerateRequest) -> int:
    """Count what is read; it does not matter how texts are cut into messages."""
    read = sum(_characters(block) for message in request.messages for block in message.blocks)
    for tool in request.tools:
        read += len(tool.name) + len(tool.description)
        read += characters(orjson.loads(tool.input_schema or b"{}"))
    if (wanted := schema(request)) is not None:
        read += characters(wanted)
    number = sum(1 for _ in media(request.messages))
    return -(-read // _CHARACTERS_A_TOKEN) + number * _TOKENS_A_MEDIUM


def _characters(block: Block) -> int:
    match block.WhichOneof("kind"):
        case "text":
            return len(block.text)
        case "refusal":
            return len(block.refusal)
        case "thinking":
            return len(block.thinking.text)
        case "tool_use":
            return _call_characters(block.tool_use.name, block.tool_use.input)
        case "tool_result":
            return len(result_text(block.tool_result))
    return 0


def _call_characters(name: str, written: str) -> int:
    try:
        return len(name) + characters(orjson.loads(written))
    except orjson.JSONDecodeError:
        return len(name) + len(written)


def characters(value: object) -> int:
    """Measure a JSON value without regard to how it was spaced."""
    total = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            total += sum(len(str(key)) for key in item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        else:
            total += len(str(item))
    return total


def tokens(text: str) -> Sequence[str]:
    """Cut a text into tokens; joined they are the text."""
    return _TOKEN.findall(text)
