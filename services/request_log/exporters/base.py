"""What exporters have in common: the exported entry, the protocol, and their error."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from gateway.requests.v1.requests_pb2 import LoggedRequest, RequestBodies
from services.common.process.telemetry.trace_context import TraceContext

# Bytes of an entry in memory beside its bodies, approximately.
_ENTRY_BYTES = 1_000


class ExportedRequest(NamedTuple):
    """An entry of the request log as it was stored.

    Attributes:
        logged: the request.
        bodies: its redacted bodies; None if they were not logged.
        trace: the trace of the request, or None.
    """

    logged: LoggedRequest
    bodies: RequestBodies | None
    trace: TraceContext | None

    @property
    def size(self) -> int:
        """The approximate bytes that the entry takes in memory."""
        if self.bodies is None:
            return _ENTRY_BYTES
        return _ENTRY_BYTES + len(self.bodies.request) + len(self.bodies.response)


# Returns the JSON object of an entry, as the administration API has it.
RenderEntry = Callable[[LoggedRequest, RequestBodies | None], Mapping[str, Any]]


class ExportError(Exception):
    """Error raised when a batch was not exported.

    Attributes:
        is_passing: whether the same batch may succeed later.
    """

    def __init__(self, message: str, *, is_passing: bool = True) -> None:
        super().__init__(message)
        self.is_passing = is_passing


class Exporter(Protocol):
    """Sends batches of entries to one place.

    Attributes:
        name: the label of its metrics.
    """

    name: str

    async def send(self, batch: Sequence[ExportedRequest]) -> int:
        """Send a batch; return how many of its entries were rejected.

        The same batch may be sent again after an error.

        Raises:
            ExportError: the batch was not exported.
        """
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
