"""Accessors of a canonical request for the sandbox's models.

Sizes are in the sandbox's own tokens: four characters of input are one token, and so is each piece
of output that `tokens` returns.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile, islice, takewhile

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
    """Yield the texts and refusals of messages in order, without tool results."""
    for message in messages:
        for block in message.blocks:
            if block.HasField("text"):
                yield block.text
            elif block.HasField("refusal"):
                yield block.refusal


def media(messages: Iterable[Message]) -> Iterator[Media]:
    """Yield the media of messages in order, including those in tool results."""
    for message in messages:
        for block in message.blocks:
            if block.HasField("media"):
                yield block.media
            elif block.HasField("tool_result"):
                inner = block.tool_result.blocks
                yield from (one.media for one in inner if one.HasField("media"))


def results(messages: Iterable[Message]) -> Iterator[ToolResult]:
    """Yield the tool results of messages, in order."""
    for message in messages:
        for block in message.blocks:
            if block.HasField("tool_result"):
                yield block.tool_result


def result_text(result: ToolResult) -> str:
    """Return the text of a tool result."""
    return "".join(block.text for block in result.blocks)


def asked(request: GenerateRequest) -> list[Message]:
    """Return the user messages that have not been answered, in order."""
    before_prefill = dropwhile(_is_assistant, reversed(request.messages))
    waiting = takewhile(lambda message: not _is_assistant(message), before_prefill)
    user = conversation_pb2.ROLE_USER
    return [message for message in waiting if message.role == user][::-1]


def unanswered_texts(request: GenerateRequest) -> list[str]:
    """Return the unanswered texts, without the environment context that Codex adds."""
    waiting = list(texts(asked(request)))
    return [text for text in waiting if not text.startswith(_ENVIRONMENT)] or waiting


def prefill(request: GenerateRequest) -> str:
    """Return the text that the answer must continue, or ""."""
    trailing = takewhile(_is_assistant, reversed(request.messages))
    return "".join(texts(reversed(list(trailing))))


def _is_assistant(message: Message) -> bool:
    return message.role == conversation_pb2.ROLE_ASSISTANT


def thinks(request: GenerateRequest) -> bool:
    """Return whether the request enables thinking."""
    thinking = request.thinking
    if thinking.mode == ThinkingConfig.MODE_UNSPECIFIED:
        return thinking.effort not in ("", "none")
    return thinking.mode in _THINKING_MODES


def has_cache_marks(request: GenerateRequest) -> bool:
    """Return whether the request has cache marks."""
    return any(tool.cache_control for tool in request.tools) or any(
        block.cache_control for message in request.messages for block in message.blocks
    )


def top_logprobs(request: GenerateRequest) -> int | None:
    """Return the number of alternatives per token; None without log probabilities."""
    return request.top_logprobs if request.logprobs else None


def input_tokens(request: GenerateRequest) -> int:
    """Count the input tokens, independently of how texts are divided into messages."""
    read = sum(_characters(block) for message in request.messages for block in message.blocks)
    for tool in request.tools:
        read += len(tool.name) + len(tool.description)
        read += characters(orjson.loads(tool.input_schema or b"{}"))
    if request.output_format.kind == OutputFormat.KIND_JSON_SCHEMA:
        read += characters(orjson.loads(request.output_format.schema or b"{}"))
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
    """Return the characters of parsed JSON, without white space and punctuation."""
    total = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            total += sum(map(len, item))
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        else:
            total += len(item) if isinstance(item, str) else len(str(item))
    return total


def first_tokens(text: str, most: int) -> Sequence[str]:
    """Return at most the first `most` tokens of a text."""
    return [match[0] for match in islice(_TOKEN.finditer(text), most)]


def tokens(text: str) -> Sequence[str]:
    """Split a text into tokens, which joined are the text."""
    return _TOKEN.findall(text)
