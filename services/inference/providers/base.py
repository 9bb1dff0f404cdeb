"""The interface of providers, and the call that one is asked with."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gateway.conversation.v1.conversation_pb2 import DIALECT_UNSPECIFIED, Dialect, MediaKind
from gateway.inference.v1.inference_pb2 import Event, GenerateRequest
from services.common.errors import GatewayError, unsupported
from services.common.lazy_request import LazyRequest
from services.common.lazy_request import Source as ConversationSource
from services.inference.conversion.parts import Source
from services.inference.refusals import DEFAULTS, PREFILL, RENAMED, STREAM_OPTIONS, all_refused


@dataclass(frozen=True, slots=True)
class Target:
    """A model as the engine calls it.

    Attributes:
        name: what callers write.
        provider: name of the provider in the settings.
        upstream: what the provider calls it.
        inputs: media it reads beside text, or None when unknown.
        context_window: tokens it can read, or 0 when unknown.
        max_output_tokens: tokens it can write, or 0 when unknown.
        fallbacks: names that `auto` may try after it, in order.
        thinks: whether it thinks without being asked to, and may be silent meanwhile; None
            when unknown.
        adaptive: whether it is asked to think by an effort, and not by a budget.
        efforts: the efforts that it can be asked for, weakest first; () when unknown.
        refuses: fields that it refuses, names of `services.inference.refusals`.
        thinking_off: fields of a body that keep it from thinking; none when unknown.
    """

    name: str
    provider: str
    upstream: str
    inputs: frozenset[MediaKind.ValueType] | None = None
    context_window: int = 0
    max_output_tokens: int = 0
    fallbacks: Sequence[str] = ()
    thinks: bool | None = False
    adaptive: bool = False
    efforts: Sequence[str] = ()
    refuses: frozenset[str] = frozenset()
    thinking_off: Mapping[str, Any] = field(default_factory=dict)

    def reads(self, kind: MediaKind.ValueType) -> bool:
        """Return whether a medium may be sent to it; one of which nothing is known gets all."""
        return self.inputs is None or kind in self.inputs


@dataclass(frozen=True, slots=True)
class Heard:
    """What a model heard in a recording.

    Attributes:
        text: what is said; may be empty.
        input_tokens: as the provider counts them, or 0.
        output_tokens: the same.
        seconds: of sound, where the provider counts those, or 0.
    """

    text: str
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Call:
    """One attempt at a provider.

    Attributes:
        request: what to generate; the provider reads it and changes nothing in it.
        target: the model to ask.
        stream: whether the provider is to answer as a stream.
        dropped: paths of the request's fields that the provider has nothing for, each once;
            it adds to them before it sends anything.
        takes_passthrough: whether an answer, which comes whole then, may be given as the
            provider wrote it; the provider speaks the request's dialect then.
        takes_whole: whether a whole answer may be one `whole` event without the provider's
            own JSON, if there is no thinking in it.
        without: fields that the model refuses or has refused, by the provider's names for
            them.
        source: the conversation as its caller wrote it, which goes in place of the request's
            messages and tools; None where those are there.
        body: all fields of the body but `model` and `stream`, as the caller wrote them, which go
            in place of what the request says; None where it is complete.
        tool_names: the names that tools go by in this call, with those that the caller gave
            them, where they differ; the provider adds to them before it sends anything.
        answer_headers: those of the provider's answer, names in any case; None before it has
            come, and where the provider is asked otherwise than over HTTP.
    """

    request: GenerateRequest
    target: Target
    stream: bool
    dropped: list[str] = field(default_factory=list)
    takes_passthrough: bool = False
    without: frozenset[str] = frozenset()
    source: ConversationSource | None = None
    tool_names: dict[str, str] = field(default_factory=dict)
    answer_headers: Mapping[str, str] | None = None
    takes_whole: bool = False
    body: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        """Add what is known of the model to what it has refused."""
        self.without = all_refused(self.target.refuses, self.without)

    @property
    def prefills(self) -> bool:
        """Whether the model may be sent an assistant's message to go on with."""
        return PREFILL not in self.without

    def is_native(self, dialect: Dialect.ValueType) -> bool:
        """Return whether the request was written in a provider's dialect."""
        return self.request.dialect == dialect != DIALECT_UNSPECIFIED

    def drop(self, path: str) -> None:
        """Report the field of the request at `path` as dropped."""
        if path not in self.dropped:
            self.dropped.append(path)

    def heard(self, headers: Mapping[str, str]) -> None:
        """Take the headers of the provider's answer, whatever its status."""
        self.answer_headers = headers

    def leave_out_refused(self, body: dict[str, Any]) -> list[str]:
        """Take out of a request's body what the model has refused.

        Returns:
            The provider's names of what is dropped by that.
        """
        dropped = []
        for name in self.without & body.keys():
            if name in DEFAULTS:
                if body[name] in DEFAULTS[name]:
                    del body[name]  # says what holds without it
                continue
            value = body.pop(name)
            other = RENAMED.get(name)
            if name == STREAM_OPTIONS:
                continue  # the adapter's own: callers are told the usage all the same
            if other is None or other in self.without:
                dropped.append(name)
            else:
                body[other] = value
        return dropped


def no_transcripts(provider: str) -> GatewayError:
    """Return the refusal of a provider that transcribes nothing."""
    return unsupported(
        "model",
        f"the provider {provider} transcribes no recordings; one of kind `openai` with "
        "/audio/transcriptions does",
    )


class Provider(Protocol):
    """A server that has models.

    Attributes:
        name: its name in the settings.
        dialect: whose JSON it speaks; DIALECT_UNSPECIFIED for none.
        signs_thinking: whether its thinking may be signed, and belongs before calls of tools.
        checks_signatures: whether it refuses thinking that it has not signed itself.
        prefills: whether it continues an assistant message at the end by itself.
        tells_stop_sequence: whether it tells which stop sequence ended an answer.
        pass_stateful: whether callers may name things kept at the provider.
        fetches: the media that it fetches by their addresses.
    """

    name: str
    dialect: Dialect.ValueType
    signs_thinking: bool
    checks_signatures: bool
    prefills: bool
    tells_stop_sequence: bool
    pass_stateful: bool
    fetches: frozenset[MediaKind.ValueType]

    def takes_source(self, lazy: LazyRequest, without: frozenset[str]) -> bool:
        """Return whether it may be sent a conversation of its dialect as its caller wrote it.

        Args:
            lazy: has the conversation.
            without: what the model refuses, names of `services.inference.refusals`.
        """
        ...

    async def whole(self, call: Call) -> Sequence[Event]:
        """Return all events of an answer that the provider gives as a whole.

        The events are those of `gateway.inference.v1.Event`, in its order, without
        `served`. Cancelling the task ends the call at the provider at once. How long
        it may take is for the caller to bound.

        Where the call takes an answer as it is, or whole, it may be one `whole` event instead.

        Raises:
            GatewayError: unsupported, when the provider cannot carry the request
                (before anything is sent).
            UpstreamError: the provider failed.
        """
        ...

    def stream(self, call: Call) -> AsyncGenerator[Sequence[Event], None]:
        """Return the events of an answer as they come, a batch for each read, none empty.

        They are those of `whole`, without a `whole` one. Closing the iterator
        (`aclose`) or cancelling the task ends the call at the provider at once. How long
        the first event may take is for the caller to bound.

        Raises:
            GatewayError: unsupported, when the provider cannot carry the request
                (before anything is sent).
            UpstreamError: the provider failed, before or in the middle of the answer.
        """
        ...

    async def count_tokens(self, call: Call) -> int | None:
        """Return the input tokens of a request, or None where the provider cannot count.

        Raises:
            UpstreamError: the provider failed.
        """
        ...

    async def embed(self, target: Target, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text, in order, all of one length.

        Raises:
            GatewayError: unsupported, when the provider makes no vectors.
            UpstreamError: the provider failed.
        """
        ...

    async def transcribe(self, target: Target, sound: Source, language: str) -> Heard:
        """Return what is said in a recording; `language` is a BCP 47 tag, or "".

        Raises:
            GatewayError: unsupported, when the provider transcribes nothing.
            UpstreamError: the provider failed.
        """
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...
