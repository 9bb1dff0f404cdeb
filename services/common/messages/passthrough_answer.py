"""A whole answer that is passed through to its caller in the provider's own JSON.

Within a process, the inference service returns a `PassthroughAnswer` (or a
`services.common.messages.plain_answer.PlainAnswer`) in place of a `GenerateResponse`, since only
few of the message's fields are read, and only once. Over gRPC it is serialized as the message.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gateway.accounts.v1.limits_pb2 import LimitState, Measure
from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.errors.v1.errors_pb2 import Attempt
from gateway.inference.v1.inference_pb2 import (
    CACHE_STATUS_UNSPECIFIED,
    GenerateResponse,
    RouteInfo,
)


class TokenCounts(NamedTuple):
    """Token counts of an answer whose usage has nothing else; fields as in `Usage`."""

    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    reasoning_tokens: int = 0

    def message(self) -> Usage:
        """Return the counts as a message."""
        message = Usage()
        self.set_in(message)
        return message

    def set_in(self, message: Usage) -> None:
        """Set the counts in a message without counts."""
        # Zero is the default, and setting it takes as long as any other number.
        message.input_tokens = self.input_tokens
        message.output_tokens = self.output_tokens
        if self.cache_read_input_tokens:
            message.cache_read_input_tokens = self.cache_read_input_tokens
        if self.cache_creation_input_tokens:
            message.cache_creation_input_tokens = self.cache_creation_input_tokens
        if self.reasoning_tokens:
            message.reasoning_tokens = self.reasoning_tokens


@dataclass(slots=True)
class CallerLimit:
    """State of one of the caller's limits; fields as in `LimitState`."""

    measure: Measure.ValueType
    limit: int
    remaining: int
    reset_ms: int

    def message(self) -> LimitState:
        """Return the state as a message."""
        return LimitState(
            measure=self.measure,
            limit=self.limit,
            remaining=self.remaining,
            reset_ms=self.reset_ms,
        )


class AnswerRoute:
    """The route of an answer; attributes as the fields of `RouteInfo`."""

    cache = CACHE_STATUS_UNSPECIFIED
    cache_age_s = 0
    memory_truncated = 0
    deployment = ""
    dropped: Sequence[str] = ()
    adapted: Sequence[str] = ()
    failed_attempts: Sequence[Attempt] = ()
    limits: Sequence[CallerLimit] = ()

    def __init__(
        self,
        model: str,
        provider: str,
        step: str,
        attempts: int,
        headers: dict[str, str],
        upstream_request_id: str = "",
    ) -> None:
        self.model = model
        self.provider = provider
        self.step = step
        self.attempts = attempts
        self.headers = headers
        self.upstream_request_id = upstream_request_id

    def message(self) -> RouteInfo:
        """Return the route as a message."""
        message = RouteInfo(
            model=self.model, provider=self.provider, step=self.step, attempts=self.attempts
        )
        # Setting an empty value takes as long as setting any other.
        if self.upstream_request_id:
            message.upstream_request_id = self.upstream_request_id
        if self.cache:
            message.cache = self.cache
        if self.deployment:
            message.deployment = self.deployment
        if self.memory_truncated:
            message.memory_truncated = self.memory_truncated
        for name in ("dropped", "adapted", "failed_attempts"):
            if values := getattr(self, name):
                getattr(message, name).extend(values)
        if self.limits:
            message.limits.extend([limit.message() for limit in self.limits])
        if self.headers:
            message.headers.update(self.headers)
        return message


class PassthroughAnswer:
    """A whole answer in the provider's own JSON.

    Attributes:
        passthrough: the JSON of the response body.
        usage: token counts; a `Usage` message if it has more than token counts.
        route: the route of the answer, once it is known.
    """

    __slots__ = ("passthrough", "route", "usage")

    def __init__(self, passthrough: bytes, usage: TokenCounts | Usage) -> None:
        self.passthrough = passthrough
        self.usage = usage
        self.route = _NO_ROUTE

    def response(self) -> GenerateResponse:
        """Return the answer as a message."""
        usage = self.usage
        return GenerateResponse(
            passthrough=self.passthrough,
            usage=usage if isinstance(usage, Usage) else usage.message(),
            route=None if self.route is _NO_ROUTE else self.route.message(),
        )

    # The methods of protobuf messages that code which sends messages calls.

    def ByteSize(self) -> int:
        """Return the approximate size of the message in bytes."""
        return len(self.passthrough)

    def SerializeToString(self) -> bytes:
        """Return the serialized message."""
        return self.response().SerializeToString()


_NO_ROUTE = AnswerRoute("", "", "", 0, {})
