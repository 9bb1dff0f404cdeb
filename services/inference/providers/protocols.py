"""Protocols of an upstream's dependencies: answer parsers, error classification, gauges."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from gateway.inference.v1.inference_pb2 import Event
from services.common.errors import UpstreamError
from services.common.settings import Limits

Headers = Mapping[str, str]


class Classify(Protocol):
    """Returns the error for a response other than 2xx; see `failures.classify`."""

    def __call__(
        self,
        provider: str,
        status: int,
        headers: Headers,
        body: bytes,
        *,
        secrets: Iterable[str],
        now: Callable[[], float],
    ) -> UpstreamError:
        """See `failures.classify`."""


class Authorize(Protocol):
    """Returns the headers that authorize a request: an access token, or a signature of it.

    Attributes:
        covers_body: whether they depend on the body, so that it must be complete.
        secrets: what no message may contain, such as the token that was sent last.
    """

    @property
    def covers_body(self) -> bool:
        """See the class."""

    @property
    def secrets(self) -> Sequence[str]:
        """See the class."""

    async def headers(self, method: str, url: str, body: bytes) -> Sequence[tuple[str, str]]:
        """Return the headers for a request, names in lower case; `url` is as it is sent.

        Raises:
            UpstreamError: the gateway has no credentials.
        """


class Splitter(Protocol):
    """Splits a streamed response into complete events."""

    def feed(self, chunk: bytes) -> bytes:
        """Add a chunk; return the completed events as server-sent events, for `sse.read_event`.

        Raises:
            SseTooLongError: an event exceeds the limit.
            UpstreamError: the stream is malformed.
        """


class ErrorFactory(Protocol):
    """Creates errors from a provider's error objects; implemented by `Upstream`.

    Attributes:
        name: the provider's name in the settings.
        limits: bounds on answers.
    """

    name: str
    limits: Limits

    def in_band(self, body: bytes) -> UpstreamError:
        """Return the error for an error object in an answer."""


class Reader(Protocol):
    """Incremental parser of one response of a dialect.

    Attributes:
        has_content: whether any content has been received.
        is_complete: whether the answer is complete; usage may follow.
        ended: whether the end event has been received.
    """

    @property
    def has_content(self) -> bool:
        """See the class."""

    @property
    def is_complete(self) -> bool:
        """See the class."""

    @property
    def ended(self) -> bool:
        """See the class."""

    def feed(self, text: bytes, out: list[Event]) -> None:
        """Parse server-sent events; append the resulting events to `out`.

        Raises:
            UpstreamError: an event reports an error, or cannot be parsed; earlier events are in
                `out`.
        """

    def read_whole(self, answer: dict[str, Any], out: list[Event]) -> None:
        """Append to `out` the events of a whole answer that was sent in place of a stream.

        Neither `feed` nor `end` is called for this response.

        Raises:
            UpstreamError: the JSON is not an answer, or an incomplete one.
        """

    def end(self, out: list[Event]) -> None:
        """Handle the end of the stream; append its events to `out`.

        Raises:
            UpstreamError: the end is premature.
        """
