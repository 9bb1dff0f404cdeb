"""Answers for tests: whole, as the events of a stream, and as the official client reads them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from openai._models import construct_type
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from facade.dialects.openai import ChatStream, render_completion
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Opaque, Thinking, ToolUse, Usage
from gateway.inference.v1 import inference_pb2 as inference
from gateway.inference.v1.inference_pb2 import BlockStop, Choice, Event, Finish, Start

CREATED = 1_700_000_000
FOREIGN = Opaque(dialect=conversation.DIALECT_ANTHROPIC, json=b'{"type":"x"}')


def own(**fields: Any) -> Opaque:
    return Opaque(dialect=conversation.DIALECT_OPENAI, json=json.dumps(fields).encode())


def text(written: str, extra: Opaque | None = None) -> Block:
    return Block(text=written, extra=extra)


def thinking(written: str) -> Block:
    return Block(thinking=Thinking(text=written, signature="c2ln"))


def call(id: str, name: str, written: str, freeform: bool = False) -> Block:
    return Block(tool_use=ToolUse(id=id, name=name, input=written, freeform=freeform))


def choice(*blocks: Block, reason: str = "END_TURN", **fields: Any) -> Choice:
    finish = Finish(reason=conversation.FinishReason.Value(f"FINISH_REASON_{reason}"))
    return Choice(blocks=blocks, finish=finish, **fields)


def answer(*choices: Choice, **fields: Any) -> inference.GenerateResponse:
    request_fields: dict[str, Any] = {
        "id": "chatcmpl-1",
        "model": "model-1",
        "usage": Usage(input_tokens=3),
    }
    return inference.GenerateResponse(choices=choices, **request_fields | fields)


def whole(response: inference.GenerateResponse) -> ChatCompletion:
    """Return the answer as the client reads it, with every type checked."""
    return ChatCompletion.model_validate_json(render_completion(response, CREATED), strict=True)


def start(response: inference.GenerateResponse) -> Event:
    return Event(start=Start(id=response.id, model=response.model, extra=response.extra))


def choice_events(index: int, given: Choice, size: int) -> list[Event]:
    """Return the events of a choice, its texts in pieces of `size` characters."""
    events: list[Event] = []
    for number, block in enumerate(given.blocks):
        begun, deltas = _begun(block, size)
        events.append(Event(choice=index, block=number, block_start=begun))
        for kind, piece in deltas:
            event = Event(choice=index, block=number)
            setattr(event, kind, piece)
            events.append(event)
        events.append(Event(choice=index, block=number, block_stop=BlockStop()))
    events.append(Event(choice=index, finish=given.finish, logprobs=given.logprobs))
    return events


def _begun(block: Block, size: int) -> tuple[Block, list[tuple[str, str]]]:
    begun = Block()
    begun.CopyFrom(block)
    match block.WhichOneof("kind"):
        case "text":
            begun.text = ""
            return begun, _pieces("text", block.text, size)
        case "refusal":
            begun.refusal = ""
            return begun, _pieces("refusal", block.refusal, size)
        case "thinking":
            begun.thinking.CopyFrom(Thinking())
            signature = ("signature", block.thinking.signature)
            return begun, [*_pieces("thinking", block.thinking.text, size), signature]
        case "tool_use":
            begun.tool_use.input = ""
            return begun, _pieces("input", block.tool_use.input, size)
    return begun, []


def _pieces(kind: str, written: str, size: int) -> list[tuple[str, str]]:
    return [(kind, written[at : at + size]) for at in range(0, len(written), size)]


def stream_events(response: inference.GenerateResponse, size: int = 3) -> list[Event]:
    """Return all events of an answer, one choice after the other."""
    events = [start(response)]
    for index, given in enumerate(response.choices):
        events += choice_events(index, given, size)
    return [*events, Event(usage=response.usage)]


def streamed(
    batches: Iterable[Sequence[Event]], *, include_usage: bool = True
) -> list[dict[str, Any]]:
    """Return the chunks that a stream of these batches consists of."""
    stream = ChatStream(CREATED, include_usage)
    raw = b"".join([*(stream.encode(batch) for batch in batches), stream.finish()])
    return chunks(raw)


def chunks(raw: bytes) -> list[dict[str, Any]]:
    """Read the chunks of a whole stream, which is all `data:` lines up to `[DONE]`."""
    *events, remainder = raw.decode().split("\n\n")
    assert remainder == ""
    assert events.pop() == "data: [DONE]"
    assert all(event.startswith("data: ") and "\n" not in event for event in events)
    return [json.loads(event.removeprefix("data: ")) for event in events]


def accumulated(given: Iterable[dict[str, Any]]) -> ChatCompletion:
    """Return what the official client makes of the chunks."""
    state = ChatCompletionStreamState()
    for one in given:
        # As the client does: without a check, so that unknown values pass.
        chunk = construct_type(type_=ChatCompletionChunk, value=one)
        assert isinstance(chunk, ChatCompletionChunk)
        state.handle_chunk(chunk)
    return state.current_completion_snapshot


def told(completion: ChatCompletion) -> dict[str, Any]:
    """Return what an answer says, so that streamed and whole ones compare."""
    return {
        "id": completion.id,
        "model": completion.model,
        "created": completion.created,
        "extra": {**(completion.model_extra or {})},
        "usage": completion.usage and completion.usage.model_dump(),
        "choices": [
            {
                "index": one.index,
                "finish_reason": one.finish_reason,
                "logprobs": one.logprobs and one.logprobs.model_dump(),
                "content": one.message.content,
                "refusal": one.message.refusal,
                "reasoning": getattr(one.message, "reasoning_content", None),
                "calls": [_call(each) for each in one.message.tool_calls or ()],
            }
            for one in completion.choices
        ],
    }


def _call(given: Any) -> dict[str, Any]:
    # What the client adds of its own: position, parsed arguments, and a null for the other kind.
    fields = {name: value for name, value in given.to_dict().items() if value is not None}
    fields.pop("index", None)
    for inner in fields.values():
        if isinstance(inner, dict):
            inner.pop("parsed_arguments", None)
    return fields
