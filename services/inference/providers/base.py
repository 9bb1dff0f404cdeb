"""The provider interface, and the arguments of a provider call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Protocol, runtime_checkable

from gateway.conversation.v1.conversation_pb2 import Dialect, MediaKind
from gateway.inference.v1.inference_pb2 import (
    EmbedRequest,
    EmbedResponse,
    Event,
    ForwardRequest,
    GenerateRequest,
)
from services.common.errors import GatewayError, UpstreamError, unsupported
from services.common.grpc import dialect_headers
from services.common.messages.deferred_call import DeferredCall
from services.common.messages.lazy_request import LazyRequest
from services.common.messages.passthrough_answer import PassthroughAnswer
from services.common.messages.plain_message import PlainRequest
from services.common.settings import Balance
from services.inference.allowances.needs import RequestLimits
from services.inference.learned.refusals import DEFAULTS, PREFILL, RENAMED, STREAM_OPTIONS
from services.inference.stored_files import StoredFiles
from services.inference.stream.batches import Batches
from services.inference.stream.patience import Patience
from services.inference.stream.property_names import PropertyNames
from services.media.conversion.parts import Source


@dataclass(frozen=True, slots=True)
class Target:
    """A model resolved for a request.

    Attributes:
        name: the name that callers use.
        provider: name of the provider in the settings.
        upstream: the provider's name for the model.
        inputs: kinds of media that the model reads besides text; None if unknown.
        context_window: in tokens; 0 if unknown.
        max_output_tokens: 0 if unknown.
        fallbacks: models that `auto` tries after this one, in order.
        thinks: whether the model thinks by default and sends nothing meanwhile; None if unknown.
        adaptive: whether thinking is controlled by an effort, not by a token budget.
        efforts: supported efforts, weakest first; () if unknown.
        refuses: request fields that the model rejects, as named by
            `services.inference.learned.refusals`.
        thinking_off: request fields that disable thinking; empty if unknown.
        vector_space: the name of the vector space, shared by models whose vectors are
            interchangeable; "" for a space of its own.
        limits: the operator's limits on calls of its provider and of this deployment, or None.
        is_deployment: whether this is one of several deployments of a model.
        deployments: all deployments, this one first; None for a model with a single one.
        adapter: key of the provider's adapter for the model in `Routes.providers`: the provider's
            name, unless its models have several APIs.
        native_tools: whether the provider runs searches, page fetches and programs of callers of
            other dialects with tools of its own; None: those that the gateway has no tool for.
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
    vector_space: str = ""
    limits: RequestLimits | None = None
    is_deployment: bool = False
    deployments: "Deployments | None" = None
    adapter: str = ""
    native_tools: bool | None = False

    def __post_init__(self) -> None:
        """Set the key of the usual adapter."""
        if not self.adapter:
            object.__setattr__(self, "adapter", self.provider)

    def reads(self, kind: MediaKind.ValueType) -> bool:
        """Return whether a kind of medium may be sent; True for all if unknown."""
        return self.inputs is None or kind in self.inputs


@dataclass(frozen=True, slots=True)
class Deployments:
    """The deployments of a model, and how one is chosen for a request.

    Attributes:
        targets: the model at each deployment, without `deployments`.
        weights: traffic shares; 0 for a deployment that is used only if no other is free.
        balance: as in the settings.
        is_sticky: whether requests with the same beginning go to the same deployment.
    """

    targets: tuple[Target, ...]
    weights: tuple[float, ...]
    balance: Balance
    is_sticky: bool


@dataclass(frozen=True, slots=True)
class Transcript:
    """The transcript of a recording.

    Attributes:
        text: the transcript; may be empty.
        input_tokens: as counted by the provider, or 0.
        output_tokens: as counted by the provider, or 0.
        seconds: billed duration, or 0.
    """

    text: str
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


class AnswerForm(Enum):
    """A form of answers; in place of each of them, a provider may return events.

    Attributes:
        EVENTS: several events.
        WHOLE: one `whole` event, for a whole answer without thinking.
        PLAIN: a `PlainAnswer`, for a whole answer of texts to a caller of another dialect. Its
            facade is in the same process, and does not read the provider's unknown fields.
        PASSTHROUGH: the provider's own JSON, for a caller of its dialect.
    """

    EVENTS = auto()
    WHOLE = auto()
    PLAIN = auto()
    PASSTHROUGH = auto()


@dataclass(slots=True)
class Call:
    """One call of a provider.

    Attributes:
        request: the canonical request; not modified by the provider.
        target: the model to call.
        stream: whether to stream the answer.
        dropped: paths of dropped request fields; added by the provider before it sends the request.
        adapted: parts that the provider got in another form, as in `RouteInfo.adapted`; added
            likewise.
        property_names: the caller's names of renamed properties by the sent ones, by tool; added
            likewise.
        accepts: the form in which the answer may be returned in place of its events.
        refused_fields: fields that the model rejects, by the provider's names.
        lazy: the request as the caller wrote it, sent in place of what `request` lacks; None if
            `request` is complete.
        tool_names: the caller's names of renamed tools, by their names in this call; added by the
            provider before it sends the request.
        answer_headers: the headers of the provider's response of any status, case-insensitive, set
            by its `Upstream`; None before the response, and for providers without HTTP.
        stored: the files of the request whose content is read while the request is sent, if any;
            `request` has tokens in place of their content.
        plain: the plain form of `lazy`, for a provider of another dialect; None if the
            conversation is to be completed.
        make_patience: returns the silences that a stream is allowed after its first content; None
            for those of the settings.
        patience: what it has returned; None before anything is awaited after the first content.
        schema_paths: paths of the schemas of functions that are not among the caller's tools, such
            as those of a namespace, by the function's name.
        deferred: what takes the place of the HTTP request, if a batch service makes it.
    """

    request: GenerateRequest
    target: Target
    stream: bool
    dropped: list[str] = field(default_factory=list)
    accepts: AnswerForm = AnswerForm.EVENTS
    refused_fields: frozenset[str] = frozenset()
    lazy: LazyRequest | None = None
    tool_names: dict[str, str] = field(default_factory=dict)
    answer_headers: Mapping[str, str] | None = None
    stored: StoredFiles | None = None
    plain: PlainRequest | None = None
    adapted: list[str] = field(default_factory=list)
    property_names: dict[str, PropertyNames] = field(default_factory=dict)
    make_patience: Callable[[], Patience] | None = None
    patience: Patience | None = None
    schema_paths: Mapping[str, str] = field(default_factory=dict)
    deferred: DeferredCall | None = None

    @property
    def prefills(self) -> bool:
        """Whether the request may end with an assistant message that the model continues."""
        return PREFILL not in self.refused_fields

    def complete(self) -> None:
        """Complete the canonical request from the lazy one."""
        if self.lazy is not None:
            self.lazy.complete()
            self.lazy = self.plain = None

    def drop(self, path: str) -> None:
        """Report the field of the request at `path` as dropped."""
        if path not in self.dropped:
            self.dropped.append(path)

    def adapt(self, path: str) -> None:
        """Report the part of the request at `path` as sent as text."""
        self.adapted.append(f"{path}:text")

    def schema_path(self, name: str, place: int) -> str:
        """Return the path of the parameters of a function.

        Args:
            name: its name in this call.
            place: its index among the tools that are sent.
        """
        caller_name = self.tool_names.get(name, name)
        if caller_name in self.schema_paths:
            return self.schema_paths[caller_name]
        indices = (at for at, tool in enumerate(self.request.tools) if tool.name == caller_name)
        return f"tools[{next(indices, place)}].input_schema"

    def request_headers(self, dialect: Dialect.ValueType) -> list[tuple[str, str]]:
        """Return the caller's headers to send to a provider of a dialect.

        They are validated here, since they may come from gRPC callers or from parameters of
        fallback steps.
        """
        request = self.request
        if request.dialect != dialect or not request.headers:
            return []
        return list(dialect_headers.to_provider(dialect, request.headers.items()).items())

    def add_head(self, error: UpstreamError, dialect: Dialect.ValueType) -> None:
        """Add the response headers that the caller may see to an error of a provider of a dialect.

        If the caller's dialect is another one, the name of the rejected field is removed: the
        caller's request has other fields.
        """
        if self.request.dialect != dialect:
            error.upstream_param = ""
        error.headers, error.upstream_request_id = dialect_headers.of_answer(
            dialect, self.answer_headers, self.request.dialect
        )

    def leave_out_refused(self, body: dict[str, Any]) -> list[str]:
        """Remove the fields that the model rejects from a request body.

        Returns:
            The provider's names of the removed fields.
        """
        dropped = []
        for name in self.refused_fields & body.keys():
            if name in DEFAULTS:
                if body[name] in DEFAULTS[name]:
                    del body[name]  # equal to the default
                continue
            value = body.pop(name)
            other = RENAMED.get(name)
            if name == STREAM_OPTIONS:
                continue  # added by the adapter itself; usage is reported in any case
            if other is None or other in self.refused_fields:
                dropped.append(name)
            else:
                body[other] = value
        return dropped


@dataclass(slots=True)
class EmbeddingCall(Call):
    """One call of a provider that embeds texts.

    Attributes:
        inputs: the texts; `request` has only the dialect and the headers.
    """

    inputs: EmbedRequest = field(default_factory=EmbedRequest)


@dataclass(slots=True)
class ForwardCall(Call):
    """One call of a provider that is sent a request as it is.

    Attributes:
        sent: the request; `request` has only the models, the dialect and the headers.
    """

    sent: ForwardRequest = field(default_factory=ForwardRequest)


class MissingEndpointError(UpstreamError):
    """Error raised when a server has no endpoint for requests of a dialect.

    The provider's usual adapter is then called, for this request and all later ones.
    """


def no_transcripts(provider: str) -> GatewayError:
    """Return the error for a provider without transcription."""
    return unsupported(
        "model",
        f"the provider {provider} does not support transcription; use a provider of kind `openai` "
        "with /audio/transcriptions",
    )


class Provider(Protocol):
    """An adapter of a server that has models.

    Attributes:
        name: the provider's name in the settings.
        dialect: the dialect of its API; DIALECT_UNSPECIFIED for any other.
        signs_thinking: whether thinking may be signed, and precedes tool calls.
        checks_signatures: whether it rejects thinking that it has not signed.
        prefills: whether it continues a final assistant message.
        reports_stop_sequence: whether it reports the stop sequence that ended an answer.
        pass_stateful: whether callers may refer to state stored at the provider.
        fetches: kinds of media that the provider fetches by URL.
        sends_stored_files: whether it sends the content of `Call.stored`.
    """

    name: str
    dialect: Dialect.ValueType
    signs_thinking: bool
    checks_signatures: bool
    prefills: bool
    reports_stop_sequence: bool
    pass_stateful: bool
    fetches: frozenset[MediaKind.ValueType]
    sends_stored_files: bool

    def takes_lazy(self, lazy: LazyRequest, refused_fields: frozenset[str]) -> bool:
        """Return whether the conversation can be sent without its canonical messages.

        A provider of the caller's dialect is sent the caller's JSON. A provider of another dialect
        is sent what its adapter writes from the plain form.

        Args:
            lazy: the conversation; if of another dialect, only one with a plain form.
            refused_fields: fields that the model rejects, as named by
                `services.inference.learned.refusals`.
        """
        ...

    async def whole(self, call: Call) -> Sequence[Event] | PassthroughAnswer:
        """Return all events of a non-streamed answer.

        The events are those of `gateway.inference.v1.Event`, in its order, without `route`.
        Cancelling the task closes the connection to the provider at once. The caller sets the
        timeout. If the call allows it, the answer may be one `whole` event, or a
        `PassthroughAnswer` without `route`.

        Raises:
            GatewayError: unsupported, if the provider does not support the request (before anything
                is sent).
            UpstreamError: the provider failed.
        """
        ...

    def stream(self, call: Call) -> Batches:
        """Yield the events of a streamed answer, one non-empty batch per read.

        The events are those of `whole`, without a `whole` event. Closing the iterator (`aclose`) or
        cancelling the task closes the connection to the provider at once. The caller sets the
        timeout of the first event.

        Raises:
            GatewayError: unsupported, if the provider does not support the request (before anything
                is sent).
            UpstreamError: the provider failed, before or during the answer.
        """
        ...

    async def count_tokens(self, call: Call) -> int | None:
        """Return the input tokens of a request, or None if the provider cannot count.

        Raises:
            UpstreamError: the provider failed.
        """
        ...

    async def embed(self, call: EmbeddingCall) -> EmbedResponse:
        """Return a vector for each text, in order, all of the same length; without `route`.

        Cancelling the task closes the connection to the provider at once.

        Raises:
            GatewayError: unsupported, if the provider has no embeddings, or does not embed such
                inputs (before anything is sent).
            UpstreamError: the provider failed.
        """
        ...

    async def transcribe(self, target: Target, sound: Source, language: str) -> Transcript:
        """Return the transcript of a recording; `language` is a BCP 47 tag, or "".

        Raises:
            GatewayError: unsupported, if the provider has no transcription.
            UpstreamError: the provider failed.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


@runtime_checkable
class Compacts(Protocol):
    """A provider that may have OpenAI's endpoint that compacts conversations.

    Attributes:
        compacts: whether it has that endpoint.
    """

    @property
    def compacts(self) -> bool:
        """See the class."""


@runtime_checkable
class Forwards(Protocol):
    """A provider with OpenAI's requests that are no conversations, such as for images."""

    def forward(self, call: ForwardCall) -> Batches:
        """Yield the events of an answer: `start`, `data` and `usage`; see `Provider.stream`.

        Raises:
            UpstreamError: the provider failed, before or during the answer.
        """
        ...


def compacts(provider: Provider) -> bool:
    """Return whether a provider has OpenAI's endpoint that compacts conversations."""
    return isinstance(provider, Compacts) and provider.compacts
