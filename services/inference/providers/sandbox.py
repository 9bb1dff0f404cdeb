"""The sandbox as a provider: answers made in this process, without a network.

What its models do stands in `services.sandbox.model.behaviours`. Whole answers
and streams are the same steps, and its failures are told in the same words as
those of a provider behind HTTP.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    FinishReason,
    MediaKind,
    ToolUse,
)
from gateway.conversation.v1.conversation_pb2 import Media as CanonicalMedia
from gateway.conversation.v1.conversation_pb2 import Thinking as CanonicalThinking
from gateway.conversation.v1.conversation_pb2 import Usage as CanonicalUsage
from gateway.inference.v1.inference_pb2 import (
    BlockStop,
    Event,
    GenerateRequest,
    OutputFormat,
    Start,
    ThinkingConfig,
)
from gateway.inference.v1.inference_pb2 import Finish as CanonicalFinish
from gateway.inference.v1.inference_pb2 import Tool as CanonicalTool
from gateway.inference.v1.inference_pb2 import ToolChoice as CanonicalToolChoice
from services.common import ids
from services.common.errors import UpstreamError, invalid, unsupported
from services.common.lazy_request import LazyRequest
from services.inference.catalogue import Facts
from services.inference.conversion.parts import Source
from services.inference.media import block_path
from services.inference.offload import offload
from services.inference.providers import failures, forms
from services.inference.providers.base import Call as ProviderCall
from services.inference.providers.base import Heard, Target
from services.sandbox.model import behaviours, models, openai_shapes, transcripts, vectors
from services.sandbox.model.models import Model, SandboxError
from services.sandbox.model.play import (
    ChoiceEnded,
    CutError,
    Delta,
    Opened,
    PieceEnded,
    PieceStarted,
    Sleep,
    Step,
    play,
)
from services.sandbox.model.requests import (
    Answer,
    Call,
    Finish,
    Medium,
    MediumKind,
    Piece,
    Prompt,
    Text,
    Thinking,
    Tool,
    ToolChoice,
    ToolResult,
    Turn,
    Usage,
    call_characters,
)
from services.sandbox.model.signatures import redact

_KINDS: Mapping[MediaKind.ValueType, MediumKind] = {
    conversation_pb2.MEDIA_KIND_IMAGE: "image",
    conversation_pb2.MEDIA_KIND_DOCUMENT: "document",
    conversation_pb2.MEDIA_KIND_AUDIO: "audio",
    conversation_pb2.MEDIA_KIND_VIDEO: "video",
}
_FINISH: Mapping[Finish, FinishReason.ValueType] = {
    Finish.END_TURN: conversation_pb2.FINISH_REASON_END_TURN,
    Finish.MAX_TOKENS: conversation_pb2.FINISH_REASON_MAX_TOKENS,
    Finish.STOP_SEQUENCE: conversation_pb2.FINISH_REASON_STOP_SEQUENCE,
    Finish.TOOL_USE: conversation_pb2.FINISH_REASON_TOOL_USE,
    Finish.REFUSAL: conversation_pb2.FINISH_REASON_REFUSAL,
}
_THINKING_MODES = (ThinkingConfig.MODE_ENABLED, ThinkingConfig.MODE_ADAPTIVE)


def _facts(model: Model) -> Facts:
    return Facts(
        display_name=model.display_name,
        inputs=frozenset(media for media, kind in _KINDS.items() if kind in model.reads),
        context_window=model.context_window,
        max_output_tokens=models.MAX_OUTPUT_TOKENS,
        tools=True,
        thinking=True,
        structured_output=True,
        listed=model.listed,
    )


# Its models by their names behind `sandbox/`.
MODELS: Mapping[str, Facts] = {name: _facts(model) for name, model in models.MODELS.items()}


class SandboxProvider:
    """Answers as `services.sandbox` does; see `base.Provider`.

    Args:
        name: its name in the settings.
        sleep: waits for seconds, between the pieces of `slow`.
        new_id: makes the id of an answer from a prefix.
    """

    dialect = conversation_pb2.DIALECT_UNSPECIFIED
    signs_thinking = checks_signatures = False
    # It continues a prefill, but can be asked to say it again, which is to be taken out.
    prefills = False
    tells_stop_sequence = True
    pass_stateful = False
    fetches = frozenset(_KINDS)  # it names addresses

    def __init__(
        self,
        name: str,
        *,
        sleep: Sleep = asyncio.sleep,
        new_id: Callable[[str], str] = ids.new_id,
    ) -> None:
        self.name = name
        self._sleep = sleep
        self._new_id = new_id

    def takes_source(self, lazy: LazyRequest, without: frozenset[str]) -> bool:
        """Return False: no caller speaks its dialect."""
        return False

    async def whole(self, call: ProviderCall) -> Sequence[Event]:
        """Return a whole answer; see `base.Provider.whole`."""
        async with aclosing(self.stream(call)) as batches:
            return [event async for batch in batches for event in batch]

    async def stream(self, call: ProviderCall) -> AsyncGenerator[Sequence[Event], None]:
        """Return an answer as it comes; see `base.Provider.stream`."""
        prompt = await offload(read_prompt, call.request)
        call.dropped += _nameless(call.request)
        try:
            model = models.find_model(call.target.upstream)
            answer = await offload(behaviours.answer, prompt, model)
            writer = _EventWriter(answer, self._new_id("sandbox-"), model)
        except SandboxError as error:
            raise self._failure(error) from error
        try:
            async with aclosing(play(writer.answer, model, self._sleep)) as steps:
                async for step in steps:
                    if events := writer.write(step):
                        yield events
        except CutError as error:
            raise failures.cut_off(self.name) from error
        except SandboxError as error:
            raise failures.in_band(self.name, _body(error)) from error
        yield writer.end()

    async def count_tokens(self, call: ProviderCall) -> int | None:
        """Count the request's tokens, the way its usage is counted."""
        prompt = await offload(read_prompt, call.request)
        return await offload(prompt.input_tokens)

    async def embed(self, target: Target, texts: Sequence[str]) -> list[list[float]]:
        """Return vectors; see `base.Provider.embed`."""
        try:
            return vectors.embed(texts, models.find_model(target.upstream))
        except SandboxError as error:
            raise self._failure(error) from error

    async def transcribe(self, target: Target, sound: Source, language: str) -> Heard:
        """Return what a recording is; see `base.Provider.transcribe`."""
        try:
            model = models.find_model(target.upstream)
            return Heard(transcripts.transcribe(sound.content, language, model))
        except SandboxError as error:
            raise self._failure(error) from error

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    def _failure(self, error: SandboxError) -> UpstreamError:
        wait = {} if error.retry_after_s is None else {"retry-after": str(error.retry_after_s)}
        return failures.classify(self.name, error.status, wait, _body(error), now=time.time)


def _body(error: SandboxError) -> bytes:
    return orjson.dumps(openai_shapes.error_body(error))


def _nameless(request: GenerateRequest) -> list[str]:
    """Return the fields of the caller's dialect alone; they say nothing to the sandbox."""
    if not request.extra.json:
        return []
    fields = _json_object(request.extra.json, "extra")
    nameless = [name for name, value in fields.items() if value is not None]
    if forms.NAME in nameless:
        nameless.remove(forms.NAME)
        nameless += forms.unnamed_fields(fields[forms.NAME], request)
    return nameless


def read_prompt(request: GenerateRequest) -> Prompt:
    """Read the canonical request.

    Raises:
        GatewayError: unsupported, for parts that have a name only in a provider's
            dialect; invalid, for JSON of the caller's that is none.
    """
    form = request.output_format
    return Prompt(
        turns=tuple(_turn(request, index) for index in range(len(request.messages))),
        tools=tuple(_tool(tool, f"tools[{index}]") for index, tool in enumerate(request.tools)),
        tool_choice=_tool_choice(request.tool_choice),
        stop=tuple(request.stop_sequences),
        schema=(
            _json_object(form.schema, "output_format.schema")
            if form.kind == OutputFormat.KIND_JSON_SCHEMA
            else None
        ),
        json_object=form.kind == OutputFormat.KIND_JSON_OBJECT,
        max_tokens=request.max_tokens if request.HasField("max_tokens") else None,
        thinking=_thinks(request.thinking),
        cache_marks=any(tool.cache_control for tool in request.tools)
        or any(block.cache_control for message in request.messages for block in message.blocks),
        top_logprobs=request.top_logprobs if request.logprobs else None,
        n=request.n or 1,
    )


def _thinks(thinking: ThinkingConfig) -> bool:
    if thinking.mode == ThinkingConfig.MODE_OPAQUE:
        raise unsupported("thinking", "thinking: the sandbox has no such mode")
    if thinking.mode == ThinkingConfig.MODE_UNSPECIFIED:
        return thinking.effort not in ("", "none")
    return thinking.mode in _THINKING_MODES


def _tool(tool: CanonicalTool, path: str) -> Tool:
    if tool.opaque:
        raise unsupported(path, f"{path}: the sandbox has no tools of its own")
    schema = _json_object(tool.input_schema, f"{path}.input_schema") if tool.input_schema else {}
    return Tool(tool.name, schema, tool.description)


def _tool_choice(choice: CanonicalToolChoice) -> ToolChoice:
    parallel = not choice.disable_parallel_tool_use
    match choice.mode:
        case CanonicalToolChoice.MODE_ANY:
            return ToolChoice("any", parallel=parallel)
        case CanonicalToolChoice.MODE_NONE:
            return ToolChoice("none")
        case CanonicalToolChoice.MODE_TOOL:
            return ToolChoice("tool", choice.name, parallel)
        case CanonicalToolChoice.MODE_UNSPECIFIED if choice.HasField("extra"):
            raise unsupported("tool_choice", "tool_choice: the sandbox has no such choice")
    return ToolChoice(parallel=parallel)


def _json_object(text: bytes, path: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise invalid(path, f"{path}: a JSON object is needed")
    return value


def _turn(request: GenerateRequest, index: int) -> Turn:
    message = request.messages[index]
    texts: list[str] = []
    media: list[Medium] = []
    results: list[ToolResult] = []
    others = 0
    for place, block in enumerate(message.blocks):
        match block.WhichOneof("kind"):
            case "text":
                texts.append(block.text)
            case "refusal":
                texts.append(block.refusal)
            case "media":
                media.append(_medium(block.media))
            case "thinking":
                others += len(block.thinking.text)
            case "tool_use":
                others += call_characters(block.tool_use.name, block.tool_use.input)
            case "tool_result":
                inner = block.tool_result.blocks
                text = "".join(one.text for one in inner)
                media += [_medium(one.media) for one in inner if one.HasField("media")]
                result = block.tool_result
                results.append(ToolResult(result.tool_use_id, text, result.is_error))
            case "opaque":
                path = block_path(request, index, place)
                raise unsupported(path, f"{path}: the sandbox has no blocks of this type")
    match message.role:
        case conversation_pb2.ROLE_ASSISTANT:
            return Turn("assistant", tuple(texts), tuple(media), (), others)
        case conversation_pb2.ROLE_USER:
            return Turn("user", tuple(texts), tuple(media), tuple(results), others)
    return Turn("system", tuple(texts), tuple(media))


def _medium(media: CanonicalMedia) -> Medium:
    return Medium(
        _KINDS[media.kind],
        media.mime_type,
        media.data if media.WhichOneof("source") == "data" else None,
        media.url or media.file_id,
        media.name,
    )


class _EventWriter:
    """Writes the canonical events of one answer, in the order of its steps."""

    def __init__(self, answer: Answer, answer_id: str, model: Model) -> None:
        self.answer = answer
        self._start = Start(id=answer_id, model=model.name)

    def write(self, step: Step) -> list[Event]:
        match step:
            case Opened():
                return [Event(start=self._start), _usage(self.answer.usage, begun=True)]
            case PieceStarted(choice, index, piece):
                return [Event(choice=choice, block=index, block_start=_opened_block(piece))]
            case Delta(choice, index, piece, text):
                return self._delta(choice, index, piece, text)
            case PieceEnded(choice, index):
                return [Event(choice=choice, block=index, block_stop=BlockStop())]
            case ChoiceEnded(choice, reply):
                finish = CanonicalFinish(
                    reason=_FINISH[reply.finish], stop_sequence=reply.stop_sequence
                )
                return [Event(choice=choice, finish=finish)]

    def end(self) -> list[Event]:
        return [_usage(self.answer.usage)]

    def _delta(self, choice: int, index: int, piece: Piece, text: str) -> list[Event]:
        match piece:
            case Text() if piece.refusal:
                return [Event(choice=choice, block=index, refusal=text)]
            case Text():
                logprobs = self._logprobs(text)
                return [Event(choice=choice, block=index, text=text, logprobs=logprobs)]
            case Thinking() if piece.redacted:
                return []
            case Thinking():
                return [Event(choice=choice, block=index, thinking=text)]
            case Call():
                return [Event(choice=choice, block=index, input=text)]

    def _logprobs(self, text: str) -> bytes:
        top = self.answer.top_logprobs
        return b"" if top is None else orjson.dumps(openai_shapes.token_logprobs([text], top))


def _opened_block(piece: Piece) -> Block:
    match piece:
        case Text() if piece.refusal:
            return Block(refusal="")
        case Text():
            return Block(text="")
        case Thinking() if piece.redacted:
            return Block(redacted_thinking=redact(piece.text))
        case Thinking():
            return Block(thinking=CanonicalThinking())
        case Call():
            return Block(
                tool_use=ToolUse(
                    id=f"call_{piece.key}", name=piece.name, input="", freeform=piece.freeform
                )
            )


def _usage(usage: Usage, *, begun: bool = False) -> Event:
    """Return the tokens; where the answer has only begun nothing is written yet."""
    return Event(
        usage=CanonicalUsage(
            input_tokens=usage.input,
            output_tokens=0 if begun else usage.output,
            cache_creation_input_tokens=usage.cache_creation,
            cache_read_input_tokens=usage.cache_read,
            reasoning_tokens=0 if begun else usage.reasoning,
        )
    )
