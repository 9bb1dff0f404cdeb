"""The gRPC service: conversations as its requests, and its answers in words of no dialect."""

from collections.abc import Iterable, Sequence
from typing import Any

import grpc
import orjson

from gateway.conversation.v1 import conversation_pb2 as pb
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest, OutputFormat, ThinkingConfig
from services.common.errors import from_rpc_error
from tests.matrix.json_bodies import arguments_of
from tests.matrix.upstreams import MatrixGateway
from tests.matrix.words import (
    GRPC,
    Answer,
    Audio,
    Call,
    Called,
    Conversation,
    Document,
    Failure,
    Image,
    Part,
    Refused,
    Result,
    Text,
    Thought,
    Tool,
    Turn,
)

NAME = GRPC
_ROLES = {
    "system": pb.ROLE_SYSTEM,
    "developer": pb.ROLE_DEVELOPER,
    "user": pb.ROLE_USER,
    "assistant": pb.ROLE_ASSISTANT,
}
_SAME = (
    *("max_tokens", "temperature", "top_p", "top_k", "seed", "n", "logprobs", "top_logprobs"),
    *("presence_penalty", "frequency_penalty", "service_tier"),
)
_MODES = {
    "auto": inference_pb2.ToolChoice.MODE_AUTO,
    "any": inference_pb2.ToolChoice.MODE_ANY,
    "none": inference_pb2.ToolChoice.MODE_NONE,
}
_FINISH = {
    pb.FINISH_REASON_END_TURN: "end",
    pb.FINISH_REASON_MAX_TOKENS: "length",
    pb.FINISH_REASON_STOP_SEQUENCE: "stop",
    pb.FINISH_REASON_TOOL_USE: "calls",
    pb.FINISH_REASON_REFUSAL: "refusal",
}
_MARK = b'{"type":"ephemeral"}'


def body_of(conversation: Conversation, model: str) -> GenerateRequest:
    """Return the request that asks a model."""
    request = GenerateRequest(model=model)
    request.messages.extend(map(_message, conversation.turns))
    request.tools.extend(map(_tool, conversation.tools))
    if choice := conversation.choice:
        request.tool_choice.mode = _MODES.get(choice, inference_pb2.ToolChoice.MODE_TOOL)
        if choice not in _MODES:
            request.tool_choice.name = choice
    for name, value in conversation.options.items():
        _set_option(request, name, value)
    return request


def _set_option(request: GenerateRequest, name: str, value: Any) -> None:
    match name:
        case "stop":
            request.stop_sequences.extend(value)
        case "effort":
            request.thinking.effort = value
        case "budget":
            request.thinking.mode = ThinkingConfig.MODE_ENABLED
            request.thinking.budget_tokens = value
        case "no_thinking":
            request.thinking.mode = ThinkingConfig.MODE_DISABLED
        case "user":
            request.end_user = value
        case "parallel":
            request.tool_choice.mode = request.tool_choice.mode or _MODES["auto"]
            request.tool_choice.disable_parallel_tool_use = not value
        case "schema":
            request.output_format.kind = OutputFormat.KIND_JSON_SCHEMA
            request.output_format.schema = orjson.dumps(value)
        case "json_object":
            request.output_format.kind = OutputFormat.KIND_JSON_OBJECT
        case _:
            assert name in _SAME, name
            setattr(request, name, value)


def _tool(tool: Tool) -> inference_pb2.Tool:
    message = inference_pb2.Tool(
        name=tool.name, description=tool.description, input_schema=orjson.dumps(tool.schema)
    )
    if tool.strict is not None:
        message.strict = tool.strict
    if tool.marked:
        message.cache_control = _MARK
    return message


def _message(turn: Turn) -> pb.Message:
    blocks = [_block(part) for part in turn.parts if part != Text("")]
    return pb.Message(role=_ROLES[turn.role], blocks=blocks, name=turn.name)


def _block(part: Part) -> pb.Block:
    match part:
        case Text(text, marked):
            return pb.Block(text=text, cache_control=_MARK if marked else b"")
        case Refused(text):
            return pb.Block(refusal=text)
        case Image(data, mime_type, detail):
            kind = pb.MEDIA_KIND_IMAGE
            image = pb.Media(kind=kind, data=data, mime_type=mime_type, detail=detail)
            return pb.Block(media=image)
        case Document(data, mime_type, name):
            kind = pb.MEDIA_KIND_DOCUMENT
            return pb.Block(media=pb.Media(kind=kind, data=data, mime_type=mime_type, name=name))
        case Audio(data):
            kind = pb.MEDIA_KIND_AUDIO
            return pb.Block(media=pb.Media(kind=kind, data=data, mime_type="audio/wav"))
        case Thought("", signature):
            return pb.Block(redacted_thinking=signature)
        case Thought(text, signature):
            return pb.Block(thinking=pb.Thinking(text=text, signature=signature))
        case Call(id, name, arguments):
            return pb.Block(tool_use=pb.ToolUse(id=id, name=name, input=arguments))
        case Result(id, parts, is_error):
            blocks = [_block(inner) for inner in parts if inner != Text("")]
            tool_result = pb.ToolResult(tool_use_id=id, blocks=blocks, is_error=is_error)
            return pb.Block(tool_result=tool_result)


async def ask(
    target: MatrixGateway, body: GenerateRequest, stream: bool
) -> tuple[Answer | Failure, list[str]]:
    """Ask; return what came and the fields that were dropped."""
    metadata = (("authorization", f"Bearer {target.gateway.key}"),)
    try:
        if stream:
            batches = target.inference.StreamGenerate(body, metadata=metadata)
            return _streamed([event async for batch in batches for event in batch.events])
        whole = await target.inference.Generate(body, metadata=metadata)
    except grpc.aio.AioRpcError as error:
        gateway_error = from_rpc_error(error)
        return Failure(gateway_error.http_status, gateway_error.param, gateway_error.message), []
    choice = whole.choices[0]
    return _answer(choice.blocks, choice.finish, whole.usage), list(whole.route.dropped)


def _streamed(events: Sequence[inference_pb2.Event]) -> tuple[Answer, list[str]]:
    """Return an answer put together as the comments of the service say."""
    blocks: list[pb.Block] = []
    finish, usage = inference_pb2.Finish(), pb.Usage()
    assert events[0].HasField("start")
    for event in events:
        match event.WhichOneof("kind"):
            case _ if event.choice:
                continue
            case "block_start":
                assert event.block == len(blocks)
                block = pb.Block()
                block.CopyFrom(event.block_start)
                blocks.append(block)
            case "text" | "refusal" as kind:
                block = blocks[event.block]
                setattr(block, kind, getattr(block, kind) + getattr(event, kind))
            case "thinking":
                blocks[event.block].thinking.text += event.thinking
            case "signature":
                blocks[event.block].thinking.signature += event.signature
            case "input":
                blocks[event.block].tool_use.input += event.input
            case "opaque":
                extra = blocks[event.block].extra
                fields = orjson.loads(extra.json or b"{}") | orjson.loads(event.opaque.json)
                extra.dialect, extra.json = event.opaque.dialect, orjson.dumps(fields)
            case "finish":
                assert finish.reason == pb.FINISH_REASON_UNSPECIFIED
                finish = event.finish
            case "usage":
                usage = event.usage
    return _answer(blocks, finish, usage), list(events[0].start.route.dropped)


def _answer(blocks: Iterable[pb.Block], finish: inference_pb2.Finish, usage: pb.Usage) -> Answer:
    blocks = list(blocks)
    read = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
    text = "".join(block.text for block in blocks)
    refusal = "".join(block.refusal for block in blocks)
    ends = _FINISH[finish.reason]
    if ends == "refusal" and not refusal:
        text, refusal = "", text
    return Answer(
        text=text,
        refusal=refusal,
        thoughts="".join(block.thinking.text for block in blocks),
        calls=tuple(
            Called(block.tool_use.id, block.tool_use.name, arguments_of(block.tool_use.input))
            for block in blocks
            if block.HasField("tool_use")
        ),
        finish="refusal" if refusal else ends,
        stop_sequence=finish.stop_sequence,
        usage=(read, usage.output_tokens),
        message=pb.Message(role=pb.ROLE_ASSISTANT, blocks=blocks),
    )


def go_on(body: GenerateRequest, answer: Answer, turn: Turn | None) -> GenerateRequest:
    """Return the next request, with the answer and what is said to it."""
    further = GenerateRequest()
    further.CopyFrom(body)
    further.messages.append(answer.message)
    if turn:
        further.messages.append(_message(turn))
    return further


def for_model(body: GenerateRequest, model: str) -> GenerateRequest:
    """Return a request that asks another model."""
    further = GenerateRequest()
    further.CopyFrom(body)
    further.model = model
    return further
