"""Translate calls of gateway tools in a conversation into ordinary tool calls. Pure.

In an answer, `server_tool_use` and `server_tool_result` blocks alternate in one message. Providers
get an ordinary tool call, with its result in a user message.
"""

from collections.abc import Iterable, Iterator, Sequence

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Message,
    ServerToolResult,
    ToolResult,
    ToolUse,
)
from services.inference.tools.quoting import quoted_files, quoted_page, quoted_results

# Kinds of blocks of gateway tools.
KINDS = frozenset({"server_tool_use", "server_tool_result"})

_REASONS = {
    "max_uses_exceeded": "it may not be used again in this answer",
    "query_too_long": "the query is too long; use a shorter one",
    "invalid_tool_input": "the arguments are not those that the tool takes",
    "too_many_requests": "too many calls at once; use fewer, or answer without it",
    "url_too_long": "the address is too long",
    "url_not_allowed": "this address may not be read",
    "url_not_in_prior_context": (
        "only addresses that the user wrote or another tool returned may be fetched"
    ),
    "url_not_accessible": "the page cannot be had",
    "unsupported_content_type": "what is there is no text that can be read",
    "content_too_large": "what is there is too large",
}
_UNAVAILABLE = "the tool does not answer at the moment; answer without it, and say so"
_LOST = "The result of this call is not part of the conversation any more."


def has_server_blocks(messages: Iterable[Message]) -> bool:
    """Return whether messages contain calls of gateway tools or their results."""
    return any(
        block.HasField("server_tool_use") or block.HasField("server_tool_result")
        for message in messages
        for block in message.blocks
    )


def unfolded(messages: Iterable[Message]) -> Iterator[Message]:
    """Replace calls of gateway tools by ordinary calls and results.

    A call without a result gets one that reports the missing result, as providers reject calls
    without results. A result without a call is dropped.
    """
    for message in messages:
        if has_server_blocks((message,)):
            yield from _rounds(message)
        else:
            yield message


def _rounds(message: Message) -> Iterator[Message]:
    """Yield the rounds of a message: the model's output, and the tool results after it."""
    current_message = Message(role=message.role, name=message.name)
    if message.HasField("extra"):
        current_message.extra.CopyFrom(message.extra)
    calls: dict[str, ToolResult | None] = {}
    has_results = False
    for block in message.blocks:
        if block.HasField("server_tool_result"):
            has_results = True
            result = block.server_tool_result
            if result.tool_use_id in calls:
                calls[result.tool_use_id] = _result(result)
            continue
        if has_results:
            yield from _round(current_message, calls)
            current_message, calls, has_results = (
                Message(role=message.role, name=message.name),
                {},
                False,
            )
        if block.HasField("server_tool_use"):
            calls[block.server_tool_use.id] = None
            current_message.blocks.add(tool_use=_call(block.server_tool_use))
        else:
            current_message.blocks.add().CopyFrom(block)
    yield from _round(current_message, calls)


def _round(current_message: Message, calls: dict[str, ToolResult | None]) -> Iterator[Message]:
    if current_message.blocks:
        yield current_message
    if calls:
        results = [
            Block(tool_result=result or _failed(call_id, _LOST))
            for call_id, result in calls.items()
        ]
        yield Message(role=conversation_pb2.ROLE_USER, blocks=results)


def _call(call: ToolUse) -> ToolUse:
    """Return a call whose arguments are an object, as providers require."""
    try:
        is_object = isinstance(orjson.loads(call.input or "{}"), dict)
    except orjson.JSONDecodeError:
        is_object = False
    arguments = call.input if is_object else orjson.dumps({"malformed": call.input}).decode()
    return ToolUse(id=call.id, name=call.name, input=arguments)


def _result(result: ServerToolResult) -> ToolResult:
    """Return the text of a result for the model."""
    match result.WhichOneof("kind"):
        case "search":
            text = quoted_results(result.search.results)
        case "page":
            text = quoted_page(result.page)
        case "files":
            text = quoted_files(result.files.results)
        case _:
            why = _REASONS.get(result.error_code, _UNAVAILABLE)
            code = result.error_code or "unavailable"
            return _failed(result.tool_use_id, f"{result.name} failed ({code}): {why}.")
    return ToolResult(tool_use_id=result.tool_use_id, blocks=[Block(text=text)])


def _failed(call_id: str, why: str) -> ToolResult:
    return ToolResult(tool_use_id=call_id, blocks=[Block(text=why)], is_error=True)


def addresses_in(messages: Sequence[Message], address: str) -> bool:
    """Return whether a URL occurs in text that the model did not write.

    Args:
        messages: a conversation with unfolded calls.
        address: the URL without its fragment.
    """
    return any(
        address in text
        for message in messages
        if message.role != conversation_pb2.ROLE_ASSISTANT
        for text in _texts(message.blocks)
    )


def _texts(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if block.HasField("tool_result"):
            yield from _texts(block.tool_result.blocks)
        elif block.HasField("media"):
            yield block.media.url
        else:
            yield block.text
