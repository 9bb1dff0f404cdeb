"""Protocols of what an upstream is made with: parsers of answers, error classification, gauges."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from gateway.inference.v1.inference_pb2 import Event
from services.common.errors import UpstreamError
from services.common.settings import Limits

Headers = Mapping[str, str]
# Called with the headers of a response, whatever its status.
OnHeaders = Callable[[Headers], None]


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


class Failures(Protocol):
    """Creates errors from a provider's words; an `Upstream`.

    Attributes:
        name: the provider's name in the settings.
        limits: of answers.
    """

    name: str
    limits: Limits

    def in_band(self, body: bytes) -> UpstreamError:
        """Return the error for an error object in an answer."""


class Gauge(Protocol):
    """Gauge of running provider calls."""

    def inc(self) -> None:
        """Count the start of a call."""

    def dec(self) -> None:
        """Count the end of a call."""


class Reader(Protocol):
    """Incremental parser of one response of a dialect.

    Attributes:
        has_content: whether part of the answer has been received.
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
        """Add to `out` the events that the text of server-sent events stands for, if any.

        Raises:
            UpstreamError: one tells an error, or cannot be read; what came before it is in `out`.
        """

    def read_whole(self, answer: dict[str, Any], out: list[Event]) -> None:
        """Add to `out` the events of a whole answer, sent in place of a stream.

        Nothing else is read then, and `end` is not called.

        Raises:
            UpstreamError: it is no answer, or one without an end.
        """

    def end(self, out: list[Event]) -> None:
        """Handle the end of the stream; add its events to `out`.

        Raises:
            UpstreamError: it is premature.
        """
