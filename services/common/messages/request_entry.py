"""An entry of the request log while it is made, by the facade and by the recorder of the log."""

from dataclasses import dataclass

from gateway.requests.v1.requests_pb2 import LoggedRequest
from services.common.messages.captured_body import CapturedBody
from services.common.process.telemetry.trace_context import TraceContext


@dataclass(slots=True, eq=False)
class RequestEntry:
    """A request that is logged.

    Attributes:
        request_id: the request's id.
        logged: what is stored of it; set when the request has ended.
        has_usage: whether the usage of the model that answered has been added.
        model, provider, attempts: which model answered, and after how many attempts; unset before
            `has_usage`.
        input_tokens, output_tokens: recorded tokens so far.
        cost_pusd: recorded cost so far in picodollars; None once part of it is not known.
        request, response: the bodies; None if they are not logged. That of a stream is as it was
            written to the connection, with its head.
        trace: the trace of the request, or None.
        ended_s: when the request ended, by the monotonic clock.
    """

    request_id: str
    logged: LoggedRequest | None = None
    has_usage: bool = False
    model: str = ""
    provider: str = ""
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_pusd: int | None = 0
    request: CapturedBody | None = None
    response: CapturedBody | None = None
    trace: TraceContext | None = None
    ended_s: float = 0.0
