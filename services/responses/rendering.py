"""Rendering of responses, which is the work of the dialect that the service is started with."""

from collections.abc import Callable, Iterable
from typing import Protocol

from gateway.inference.v1.inference_pb2 import Event
from gateway.memory.v1.responses_pb2 import ResponseContent
from services.common.errors import GatewayError


class Renderer(Protocol):
    """Renders one response and its events.

    Attributes:
        response: the response object, once the response is queued or has ended.
    """

    response: bytes

    @property
    def is_appended(self) -> bool:
        """Whether the items of the response object belong in its conversation."""

    def begin(self) -> bytes:
        """Queue the response, and return its first events."""

    def encode(self, events: Iterable[Event]) -> bytes:
        """Return the bytes of a batch of events, possibly none."""

    def finish(self) -> bytes:
        """Return the last events of a complete response."""

    def error(self, error: GatewayError) -> bytes:
        """Return the last events of a response that has failed."""

    def content(self, events: bytes = b"") -> ResponseContent:
        """Return the content to store of the response object, with all its events."""

    def failed_body(self, error: GatewayError) -> bytes:
        """Return the body to store of the response, had it failed without output."""


# Returns the renderer of a response: from its id, and `CreateBackgroundResponse.presentation`.
MakeRenderer = Callable[[str, bytes], Renderer]
