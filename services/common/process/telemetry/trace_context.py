"""W3C trace context: the trace and the parent span of a request.

Source: https://www.w3.org/TR/trace-context/, level 1.
"""

import re
from contextvars import ContextVar
from typing import NamedTuple

# Headers of requests and of requests to providers; also keys of call metadata.
TRACEPARENT_KEY = "traceparent"
TRACESTATE_KEY = "tracestate"

# Characters of `tracestate` that the standard requires to propagate; longer values are dropped.
_MAX_STATE = 512
_TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_STATE = re.compile(rf"[\x20-\x7e]{{1,{_MAX_STATE}}}")
_SAMPLED = 1


class TraceContext(NamedTuple):
    """A span's place in a trace.

    Attributes:
        trace_id: 32 hexadecimal digits.
        span_id: 16 hexadecimal digits.
        is_sampled: whether the caller that started the trace may have recorded it.
        state: value of `tracestate`, or "".
    """

    trace_id: str
    span_id: str
    is_sampled: bool
    state: str = ""

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return the context as header fields or as entries of call metadata."""
        parent = f"00-{self.trace_id}-{self.span_id}-{_SAMPLED if self.is_sampled else 0:02x}"
        if self.state:
            return (TRACEPARENT_KEY, parent), (TRACESTATE_KEY, self.state)
        return ((TRACEPARENT_KEY, parent),)


def parse_trace_context(traceparent: str, tracestate: str = "") -> TraceContext | None:
    """Parse both headers; return None for an invalid `traceparent`."""
    match = _TRACEPARENT.fullmatch(traceparent.strip(" \t"))
    if match is None or (match[1] == "00" and match[5]):
        return None
    state = tracestate.strip(" \t")
    is_sampled = bool(int(match[4], 16) & _SAMPLED)
    return TraceContext(match[2], match[3], is_sampled, state if _STATE.fullmatch(state) else "")


# Trace context of the request that the current task serves, or None.
current_trace: ContextVar[TraceContext | None] = ContextVar("current_trace", default=None)
# Trace context of the current task's attempt, if attempts are recorded.
attempt_trace: ContextVar[TraceContext | None] = ContextVar("attempt_trace", default=None)
