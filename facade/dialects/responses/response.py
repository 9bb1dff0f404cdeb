"""Whole responses, and parts shared with streams."""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from facade.dialects.foreign_parts import note_on
from facade.dialects.gateway_objects import helpers_json
from facade.dialects.google_code import Program, read_part, to_item
from facade.dialects.responses import output
from facade.dialects.responses.errors import failure
from facade.dialects.responses.output import COMPLETED, FAILED, INCOMPLETE, Json
from facade.dialects.responses.state import Echo
from facade.dialects.responses.unknown_fields import native_fields
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, FinishReason, Opaque, Usage
from gateway.inference.v1.inference_pb2 import Choice, GenerateResponse
from services.common.errors import GatewayError
from services.common.messages.passthrough_answer import TokenCounts
from services.common.messages.plain_answer import PlainAnswer

# Reasons of incomplete responses; with any other finish reason a response is complete.
_REASONS: dict[FinishReason.ValueType, str] = {
    conversation.FINISH_REASON_MAX_TOKENS: "max_output_tokens",
    conversation.FINISH_REASON_CONTEXT_WINDOW: "max_output_tokens",
    conversation.FINISH_REASON_REFUSAL: "content_filter",
}


def render_response(
    response: GenerateResponse | PlainAnswer,
    response_id: str,
    created: int,
    echo: Echo,
    *,
    completed: int | None = None,
) -> bytes:
    """Return an answer as a response object.

    Args:
        response: the answer, with one choice.
        response_id: the gateway's id.
        created: Unix seconds.
        echo: the echoed fields of the request.
        completed: Unix seconds; `created` when absent.
    """
    extra = None
    if isinstance(response, PlainAnswer):
        said = response.choices[0]
        reason = incomplete_reason(said.reason, False)
        items = [_text_message(said.text, response_id, reason)]
    else:
        choice = response.choices[0]
        text = _only_text(choice)
        refused = not text and any(block.HasField("refusal") for block in choice.blocks)
        reason = incomplete_reason(choice.finish.reason, refused)
        if text:
            items = [_text_message(text, response_id, reason)]
        else:
            items = _items(choice, response_id, echo, reason)
            if not items and (note := note_on(choice.blocks, conversation.DIALECT_RESPONSES)):
                items = [_text_message(note, response_id, reason)]
        if response.HasField("extra"):
            extra = response.extra
    return response_object(
        response_id,
        created,
        echo,
        model=response.model,
        output=map(orjson.dumps, items),
        usage=response.usage,
        extra=extra,
        reason=reason,
        completed=created if completed is None else completed,
    )


def failed_response(
    error: GatewayError,
    response_id: str,
    created: int,
    echo: Echo,
    model: str,
    items: Iterable[bytes] = (),
) -> bytes:
    """Return the response object of an answer that failed.

    Args:
        error: the error.
        response_id: the gateway's id.
        created: Unix seconds.
        echo: the echoed fields of the request.
        model: the model's name.
        items: the output items that were completed before, as JSON.
    """
    return response_object(
        response_id, created, echo, model=model, output=items, status=FAILED, error=failure(error)
    )


def response_object(
    response_id: str,
    created: int,
    echo: Echo,
    *,
    model: str,
    output: Iterable[bytes] = (),
    usage: Usage | TokenCounts | None = None,
    extra: Opaque | None = None,
    status: str = "",
    reason: str = "",
    error: Json | None = None,
    completed: int | None = None,
) -> bytes:
    """Return a response object.

    Args:
        response_id: the gateway's id.
        created: Unix seconds.
        echo: the echoed fields of the request.
        model: the model's name.
        output: the items as JSON.
        usage: token usage, once known.
        extra: unknown fields of the answer.
        status: the status; "" is `incomplete` if there is a reason, else `completed`.
        reason: the reason if it is incomplete.
        error: the error if it failed.
        completed: Unix seconds, of a completed response.
    """
    status = status or (INCOMPLETE if reason else COMPLETED)
    fields = {
        "id": response_id,
        "object": "response",
        "created_at": created,
        "status": status,
        "completed_at": completed if status == COMPLETED else None,
        "error": error,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": model,
        "output": orjson.Fragment(b"[%b]" % b",".join(output)),
        "usage": None if usage is None else usage_object(usage),
    }
    own = native_fields(extra) if extra is not None else {}
    if own:
        repeated = orjson.loads(b"{%b}" % echo.json)
        return orjson.dumps({**repeated, **own, **fields})
    return b"%b,%b}" % (orjson.dumps(fields)[:-1], echo.json)


def incomplete_reason(reason: FinishReason.ValueType, refused: bool) -> str:
    """Return the reason why a response is incomplete, or "" if it is complete.

    A response with a refusal in words is complete.
    """
    if refused and reason == conversation.FINISH_REASON_REFUSAL:
        return ""
    return _REASONS.get(reason, "")


def usage_object(usage: Usage | TokenCounts) -> Json:
    """Return the usage; cache reads and writes count as input tokens."""
    cached, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    read = usage.input_tokens + cached + written
    further: Json = {}
    if isinstance(usage, Usage):
        further = native_fields(usage.extra) if usage.HasField("extra") else {}
        if usage.helpers:
            further["gateway"] = {"helpers": helpers_json(usage.helpers)}
    return {
        **further,
        "input_tokens": read,
        "input_tokens_details": {
            **(further.get("input_tokens_details") or {}),
            "cached_tokens": cached,
            "cache_write_tokens": written,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {
            **(further.get("output_tokens_details") or {}),
            "reasoning_tokens": usage.reasoning_tokens,
        },
        "total_tokens": read + usage.output_tokens,
    }


def _only_text(choice: Choice) -> str:
    """Return the text of an answer that is a single text, as nearly all are; else ""."""
    blocks = choice.blocks
    if len(blocks) != 1 or choice.logprobs or choice.HasField("extra"):
        return ""
    block = blocks[0]
    return "" if block.HasField("extra") or block.citations else block.text


def _text_message(text: str, response_id: str, reason: str) -> Json:
    """Return the message of an answer that is one text; it is incomplete if there is a reason."""
    status = INCOMPLETE if reason else COMPLETED
    given_id = output.item_id("msg", response_id, 0)
    return output.message({}, given_id, status, [output.text_part({}, text, [])])


def _items(choice: Choice, response_id: str, echo: Echo, reason: str) -> list[Json]:
    """Return the output items; the last one is incomplete if the response is."""
    groups = _groups(choice.blocks)
    logprobs = output.logprobs_of(choice.logprobs) if echo.logprobs else []
    texts = sum(block.WhichOneof("kind") == "text" for block in choice.blocks)
    results = {
        block.server_tool_result.tool_use_id: block.server_tool_result
        for block in choice.blocks
        if block.HasField("server_tool_result")
    }
    outputs = output.outputs_of(choice.blocks)
    items = []
    for index, group in enumerate(groups):
        is_last = index == len(groups) - 1
        status = INCOMPLETE if reason and is_last else COMPLETED
        first = group[0]
        kind = first.WhichOneof("kind")
        if kind in ("text", "refusal"):
            parts = []
            for block in group:
                own_logprobs = logprobs
                if texts > 1 and block.text:
                    own_logprobs, logprobs = _split(logprobs, block.text)
                parts.append(_part(block, own_logprobs))
            given_id = output.item_id("msg", response_id, index)
            own = native_fields(choice.extra) if is_last else {}
            items.append(output.message(own, given_id, status, parts))
        elif kind == "server_tool_use":
            use = first.server_tool_use
            result = results.get(use.id)
            given_id = output.search_id(response_id, index, use.name)
            status = FAILED if result is None else output.search_status(result)
            items.append(
                output.search(
                    *(given_id, status, use.name, use.input, result),
                    sources=echo.sources,
                    results=echo.results,
                )
            )
        elif isinstance(program := read_part(first.opaque), Program):
            run = outputs.get(program.key)
            items.append(to_item(program, run, output.program_status(run)))
        else:
            items.append(_item(first, response_id, index, status))
    return items


def _groups(blocks: Iterable[Block]) -> list[list[Block]]:
    """Return the blocks of each item; consecutive texts are one message."""
    groups: list[list[Block]] = []
    is_open = False
    for block in blocks:
        kind = output.kind_of(block)
        if not kind or kind in output.RESULTS:
            continue
        if kind in ("text", "refusal"):
            if not (block.text or block.refusal):
                continue
            if is_open:
                groups[-1].append(block)
                continue
        is_open = kind in ("text", "refusal")
        groups.append([block])
    return groups


def _part(block: Block, logprobs: list[Any]) -> Json:
    if block.HasField("refusal"):
        return output.refusal_part(block.refusal)
    own = native_fields(block.extra)
    if block.citations:
        own["annotations"] = [output.annotation(one) for one in block.citations]
    return output.text_part(own, block.text, logprobs)


def _item(block: Block, response_id: str, index: int, status: str) -> Json:
    match block.WhichOneof("kind"):
        case "thinking":
            thought = block.thinking
            given_id = output.item_id("rs", response_id, index)
            own = native_fields(block.extra)
            return output.reasoning(own, given_id, thought.text, thought.signature)
        case "redacted_thinking":
            given_id = output.item_id("rs", response_id, index)
            return output.redacted(given_id, block.redacted_thinking)
        case "tool_use":
            use = block.tool_use
            given_id = output.item_id("ctc" if use.freeform else "fc", response_id, index)
            written = output.whole_arguments(use, use.input)
            return output.call(native_fields(block.extra), given_id, status, use, written)
        case "media":
            return output.picture(output.item_id("ig", response_id, index), block.media)
    return output.opaque_item(block, output.item_id("item", response_id, index))


def _split(logprobs: Sequence[Json], text: str) -> tuple[list[Json], list[Json]]:
    """Split log probabilities after the tokens of a text."""
    length = 0
    for index, one in enumerate(logprobs):
        if length >= len(text):
            return list(logprobs[:index]), list(logprobs[index:])
        length += len(one["token"])
    return list(logprobs), []
