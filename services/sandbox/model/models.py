"""The sandbox's models: their names, inputs and failures.

`behaviours` documents the models.
"""

from dataclasses import dataclass
from typing import Literal

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import MediaKind

_IMAGE = conversation_pb2.MEDIA_KIND_IMAGE
_DOCUMENT = conversation_pb2.MEDIA_KIND_DOCUMENT
_AUDIO = conversation_pb2.MEDIA_KIND_AUDIO

CONTEXT_WINDOW = 10_000_000
MAX_OUTPUT_TOKENS = 128_000

_SLOW_S = 0.05
_SMALL_CONTEXT_WINDOW = 40_000  # coding agents begin with a quarter of it or more
_RETRY_AFTER_S = 1

Kind = Literal[
    "invalid",
    "context_length",
    "authentication",
    "permission",
    "model_not_found",
    "not_found",
    "rate_limit",
    "server",
    "overloaded",
]


class SandboxError(Exception):
    """Error raised when the sandbox rejects a request, or fails deliberately.

    Attributes:
        kind: the reason, for which each dialect has its own format.
        status: the HTTP status.
        message: for people.
        path: the path of the invalid field, or ().
        retry_after_s: retry delay in seconds, or None.
    """

    def __init__(
        self,
        kind: Kind,
        status: int,
        message: str,
        *,
        path: tuple[str | int, ...] = (),
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.message = message
        self.path = path
        self.retry_after_s = retry_after_s


class TooLongError(SandboxError):
    """Error raised for a prompt that is longer than the context window.

    Attributes:
        size: tokens of the prompt.
        most: the model's context window in tokens.
        message: OpenAI's message; Anthropic and Google have their own.
    """

    def __init__(self, size: int, most: int) -> None:
        message = (
            f"This model's maximum context length is {most} tokens. However, your messages "
            f"resulted in {size} tokens. Please reduce the length of the messages."
        )
        super().__init__("context_length", 400, message)
        self.size = size
        self.most = most


@dataclass(frozen=True, slots=True)
class FaultInjection:
    """A failure while an answer is sent.

    Attributes:
        how: the connection closes, nothing more is sent, or an error is reported.
        when: before the answer, after its start, or in the middle of it.
    """

    how: Literal["cut", "silence", "error"]
    when: Literal["before", "open", "half"]


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the sandbox.

    Attributes:
        name: the name in the sandbox; callers may prefix it with `sandbox/`.
        display_name: for people.
        reads: media that the model reads besides text.
        context_window: in tokens.
        listed: whether the catalogue lists it.
        delay_s: seconds before each piece of the answer.
        fault: a failure while the answer is sent, or None.
        failure: kind, status and message of the error that is its only answer, or None.
        embeds: whether it makes embeddings, and nothing else.
        transcribes: whether it transcribes recordings, and nothing else.
    """

    name: str
    display_name: str
    reads: frozenset[MediaKind.ValueType] = frozenset({_IMAGE, _DOCUMENT, _AUDIO})
    context_window: int = CONTEXT_WINDOW
    listed: bool = True
    delay_s: float = 0
    fault: FaultInjection | None = None
    failure: tuple[Kind, int, str] | None = None
    embeds: bool = False
    transcribes: bool = False


TOO_LONG = "This model's maximum context length is exceeded: the prompt is too long"


def _failing(name: str, kind: Kind, status: int, message: str) -> Model:
    return Model(name, "Sandbox, failing", listed=False, failure=(kind, status, message))


_ALL = (
    Model("echo", "Sandbox echo"),
    Model("text", "Sandbox text, without media", reads=frozenset()),
    Model("vision", "Sandbox vision", reads=frozenset({_IMAGE})),
    Model("slow", "Sandbox slow", delay_s=_SLOW_S),
    Model("small", "Sandbox small", context_window=_SMALL_CONTEXT_WINDOW, listed=False),
    Model("fail-429", "Sandbox, rate limited", failure=("rate_limit", 429, "Rate limit reached")),
    Model("fail-500", "Sandbox, failing", failure=("server", 500, "The server had an error")),
    Model("stall", "Sandbox, silent", fault=FaultInjection("silence", "before")),
    Model("cut", "Sandbox, breaking off", fault=FaultInjection("cut", "half")),
    Model(
        "stall-open",
        "Sandbox, silent once open",
        listed=False,
        fault=FaultInjection("silence", "open"),
    ),
    Model(
        "stall-half",
        "Sandbox, silent half-way",
        listed=False,
        fault=FaultInjection("silence", "half"),
    ),
    Model(
        "fail-late",
        "Sandbox, failing half-way",
        listed=False,
        fault=FaultInjection("error", "half"),
    ),
    Model("embed", "Sandbox vectors", reads=frozenset(), listed=False, embeds=True),
    Model("transcribe", "Sandbox transcripts", reads=frozenset(), listed=False, transcribes=True),
    _failing("fail-401", "authentication", 401, "Incorrect API key provided"),
    _failing("fail-403", "permission", 403, "You may not use this model"),
    _failing("fail-503", "server", 503, "The server is down for a while"),
    _failing("fail-529", "overloaded", 529, "Overloaded"),
    _failing("fail-context", "context_length", 400, TOO_LONG),
)
MODELS = {model.name: model for model in _ALL}
LISTED = tuple(model for model in _ALL if model.listed)


def find_model(name: str) -> Model:
    """Return the model with a name, with or without the prefix `sandbox/`.

    Raises:
        SandboxError: there is none.
    """
    model = MODELS.get(name.removeprefix("sandbox/"))
    if model is None:
        raise SandboxError(
            "model_not_found", 404, f"The model `{name}` does not exist", path=("model",)
        )
    return model


def refuse_failing(model: Model) -> None:
    """Raise the error of a model that always fails.

    Raises:
        SandboxError: the model always fails.
    """
    if model.failure:
        kind, status, message = model.failure
        waits = _RETRY_AFTER_S if status in (429, 503, 529) else None
        raise SandboxError(kind, status, f"{message} (sandbox).", retry_after_s=waits)


def not_made_for(model: Model, problem: str) -> SandboxError:
    """Return the error for a request of a kind that a model does not support."""
    return SandboxError("invalid", 400, f"The model {model.name} {problem}", path=("model",))


def late_failure() -> SandboxError:
    """Return the error that `fail-late` reports in the middle of a stream."""
    return SandboxError("overloaded", 529, "Overloaded")
