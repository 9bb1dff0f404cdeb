"""The sandbox as a provider: answers generated in this process, without a network.

`services.sandbox.model.behaviours` documents the models. Whole answers and streams use the same
steps, and errors have the messages of a provider behind HTTP.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Thinking, ToolUse, Usage
from gateway.inference.v1.inference_pb2 import (
    BlockStop,
    EmbedResponse,
    Event,
    GenerateRequest,
    OutputFormat,
    Start,
    ThinkingConfig,
    ToolChoice,
)
from services.common import ids
from services.common.errors import UpstreamError, invalid, unsupported
from services.common.messages.lazy_request import LazyRequest
from services.common.text import packed_floats
from services.inference.facts.catalogue import ModelInfo
from services.inference.offload import mark_large, offload
from services.inference.providers import failures
from services.inference.providers.base import Call, EmbeddingCall, Target, Transcript
from services.inference.providers.opaque_json import unknown_paths
from services.inference.providers.request_fields import RequestFields, Rules
from services.inference.providers.vectors import check_only_texts
from services.inference.request.paths import block_path
from services.inference.request.request_changes import copied
from services.inference.stream.batches import Batches
from services.media.conversion.parts import Source
from services.sandbox.model import (
    answers,
    behaviours,
    models,
    openai_shapes,
    play,
    requests,
    transcripts,
    vectors,
)

_FORM = "response_format"
# Bytes of schemas that are read within 20 ms.
_LARGE_SCHEMAS = 64 << 10


def _facts(model: models.Model) -> ModelInfo:
    return ModelInfo(
        display_name=model.display_name,
        inputs=model.reads,
        context_window=model.context_window,
        max_output_tokens=models.MAX_OUTPUT_TOKENS,
        tools=True,
        thinking=True,
        structured_output=True,
        listed=model.listed,
    )


# The sandbox's models by their names after `sandbox/`.
MODELS: Mapping[str, ModelInfo] = {name: _facts(model) for name, model in models.MODELS.items()}


class SandboxProvider:
    """Provider of the sandbox's models; see `base.Provider`.

    Args:
        name: the provider's name in the settings.
        sleep: waits for the given seconds between the pieces of `slow`.
        new_id: generates an answer's id with the given prefix.
    """

    dialect = conversation_pb2.DIALECT_UNSPECIFIED
    signs_thinking = checks_signatures = sends_stored_files = False
    # The sandbox continues a prefill, but repeats it on demand; the gateway has to remove that.
    prefills = False
    reports_stop_sequence = True
    pass_stateful = False
    fetches = frozenset(  # the answer only names their URLs
        {
            conversation_pb2.MEDIA_KIND_IMAGE,
            conversation_pb2.MEDIA_KIND_DOCUMENT,
            conversation_pb2.MEDIA_KIND_AUDIO,
            conversation_pb2.MEDIA_KIND_VIDEO,
        }
    )

    def __init__(
        self,
        name: str,
        *,
        sleep: play.Sleep = asyncio.sleep,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self.name = name
        self._sleep = sleep
        self._new_id = new_id

    def takes_lazy(self, lazy: LazyRequest, refused_fields: frozenset[str]) -> bool:
        """Return False: no caller uses the sandbox's dialect."""
        return False

    async def whole(self, call: Call) -> Sequence[Event]:
        """Return a whole answer; see `base.Provider.whole`."""
        async with aclosing(self.stream(call)) as batches:
            return [event async for batch in batches for event in batch]

    async def stream(self, call: Call) -> Batches:
        """Stream an answer; see `base.Provider.stream`."""
        _leave_out_tools(call)
        _mark_large_schemas(call.request)
        await offload(check_request, call.request)
        _drop_unknown_fields(call)
        try:
            model = models.find_model(call.target.upstream)
            answer = await offload(behaviours.answer, call.request, model)
            writer = _EventWriter(answer, self._new_id("sandbox-"), model)
        except models.SandboxError as error:
            raise self._failure(error) from error
        try:
            async with aclosing(play.play(writer.answer, model, self._sleep)) as steps:
                async for step in steps:
                    if events := writer.write(step):
                        yield events
        except play.CutError as error:
            raise failures.cut_off(self.name) from error
        except models.SandboxError as error:
            raise failures.in_band(self.name, _body(error)) from error
        yield writer.end()

    async def count_tokens(self, call: Call) -> int | None:
        """Return the request's input tokens, counted as in its usage."""
        _mark_large_schemas(call.request)
        await offload(check_request, call.request)
        return await offload(requests.input_tokens, call.request)

    async def embed(self, call: EmbeddingCall) -> EmbedResponse:
        """Return vectors; see `base.Provider.embed`."""
        inputs = call.inputs
        check_only_texts(call, RequestFields(call, Rules()), self.name)
        try:
            model = models.find_model(call.target.upstream)
            made = await offload(vectors.embed, inputs.texts, model, inputs.dimensions or None)
        except models.SandboxError as error:
            raise self._failure(error) from error
        return EmbedResponse(
            model=model.name,
            vectors=[packed_floats.pack(vector) for vector in made],
            input_tokens=vectors.count_tokens(inputs.texts),
        )

    async def transcribe(self, target: Target, sound: Source, language: str) -> Transcript:
        """Return the sandbox's transcript of a recording; see `base.Provider.transcribe`."""
        try:
            model = models.find_model(target.upstream)
            return Transcript(transcripts.transcribe(sound.content, language, model))
        except models.SandboxError as error:
            raise self._failure(error) from error

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    def _failure(self, error: models.SandboxError) -> UpstreamError:
        wait = {} if error.retry_after_s is None else {"retry-after": str(error.retry_after_s)}
        return failures.classify(self.name, error.status, wait, _body(error), now=time.time)


def _body(error: models.SandboxError) -> bytes:
    return orjson.dumps(openai_shapes.error_body(error))


def _mark_large_schemas(request: GenerateRequest) -> None:
    """Record that a request is large if its schemas are: they are read value by value."""
    size = len(request.output_format.schema) + sum(len(tool.input_schema) for tool in request.tools)
    if size > _LARGE_SCHEMAS:
        mark_large()


def _leave_out_tools(call: Call) -> None:
    """Remove optional tools of another dialect from the request."""
    if any(tool.optional for tool in call.request.tools):
        fields = RequestFields(call, Rules())
        tools = [tool for _, tool in fields.accepted_tools(call.request)]
        call.request = copied(call.request)
        del call.request.tools[:]
        call.request.tools.extend(tools)


def _drop_unknown_fields(call: Call) -> None:
    """Drop the unknown fields: the sandbox has no use for them."""
    extra = call.request.extra
    if not extra.json:
        return
    if _FORM in extra.required:
        path = f"extra.{_FORM}"
        raise unsupported(
            path, f"{path}: this model's provider does not support this response format"
        )
    for name in unknown_paths(_json_object(extra.json, "extra"), extra.covered_paths):
        call.drop(f"extra.{name}")


def check_request(request: GenerateRequest) -> None:
    """Check that the sandbox can read a canonical request.

    Raises:
        GatewayError: unsupported, for parts that only a provider's dialect has; invalid, for
            invalid JSON from the caller.
    """
    for number, message in enumerate(request.messages):
        for place, block in enumerate(message.blocks):
            if block.HasField("opaque"):
                path = block_path(number, place)
                raise unsupported(path, f"{path}: the sandbox does not support blocks of this type")
    for number, tool in enumerate(request.tools):
        path = f"tools[{number}]"
        if tool.opaque:
            raise unsupported(path, f"{path}: the sandbox has no tools of its own")
        if tool.input_schema:
            _json_object(tool.input_schema, f"{path}.input_schema")
    choice = request.tool_choice
    if choice.mode == ToolChoice.MODE_UNSPECIFIED and choice.HasField("extra"):
        raise unsupported("tool_choice", "tool_choice: not supported by the sandbox")
    if request.output_format.kind == OutputFormat.KIND_JSON_SCHEMA:
        _json_object(request.output_format.schema, "output_format.schema")
    if request.thinking.mode == ThinkingConfig.MODE_OPAQUE:
        raise unsupported("thinking", "thinking: mode not supported by the sandbox")


def _json_object(text: bytes, path: str) -> Mapping[str, object]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise invalid(path, f"{path}: must be a JSON object")
    return value


class _EventWriter:
    """Converts the steps of one answer into canonical events."""

    def __init__(self, answer: answers.Answer, answer_id: str, model: models.Model) -> None:
        self.answer = answer
        self._start = Start(id=answer_id, model=model.name)

    def write(self, step: play.Step) -> list[Event]:
        match step:
            case play.Opened():
                begun = Usage()
                begun.CopyFrom(self.answer.usage)
                begun.output_tokens = begun.reasoning_tokens = 0
                return [Event(start=self._start), Event(usage=begun)]
            case play.BlockStarted(choice, index, block):
                return [Event(choice=choice, block=index, block_start=_opened_block(block))]
            case play.Delta(choice, index, block, text):
                return self._delta(choice, index, block, text)
            case play.BlockEnded(choice, index):
                return [Event(choice=choice, block=index, block_stop=BlockStop())]
            case play.ChoiceEnded(choice, finish):
                return [Event(choice=choice, finish=finish)]

    def end(self) -> list[Event]:
        return [Event(usage=self.answer.usage)]

    def _delta(self, choice: int, index: int, block: Block, text: str) -> list[Event]:
        match block.WhichOneof("kind"):
            case "text":
                logprobs = self._logprobs(text)
                return [Event(choice=choice, block=index, text=text, logprobs=logprobs)]
            case "refusal":
                return [Event(choice=choice, block=index, refusal=text)]
            case "thinking":
                return [Event(choice=choice, block=index, thinking=text)]
            case "tool_use":
                return [Event(choice=choice, block=index, input=text)]
        return []

    def _logprobs(self, text: str) -> bytes:
        top = self.answer.top_logprobs
        return b"" if top is None else orjson.dumps(openai_shapes.token_logprobs([text], top))


def _opened_block(block: Block) -> Block:
    """Return the block without the content of its deltas."""
    match block.WhichOneof("kind"):
        case "text":
            return Block(text="")
        case "refusal":
            return Block(refusal="")
        case "thinking":
            return Block(thinking=Thinking())
        case "tool_use":
            call = block.tool_use
            return Block(
                tool_use=ToolUse(id=f"call_{call.id}", name=call.name, freeform=call.freeform)
            )
    return block
