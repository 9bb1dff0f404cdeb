"""Reports of the requests of a process: the metrics of a facade, and the access log.

The metrics are exported by /metrics. The access log has a line per request, sampled under load:
writing a line is expensive. Up to a limit per second every request is logged, beyond it only server
errors. Lines are buffered and written a moment later.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from services.common.process import logs
from services.common.process.metrics import Counter, Gauge, Histogram
from services.common.text.texts import cut, printable

if TYPE_CHECKING:
    from facade.http.exchange import Exchange

log = logging.getLogger("facade.access")

_SERVER_ERRORS = 500
# Seconds until buffered lines are written; server errors are written at once.
_DELAY_S = 0.2
_MAX_PATH = 256  # maximum characters of a logged path
# Masked in logged paths: a misconfigured client may have its key there.
_KEY = re.compile(r"gw(?:admin)?-[A-Za-z0-9_-]+", re.ASCII)
# Requests of what watches the gateway, many times a minute.
WATCHING = frozenset({"/healthz", "/metrics", "/readyz"})

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_TOKEN_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5)
_DELAY_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class FacadeMetrics:
    """The metrics of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "gateway_http_requests",
            "HTTP requests answered, by route and status.",
            ("route", "status"),
            registry=registry,
        )
        self.probes = Counter(
            "gateway_http_probes",
            "Health checks and readings of metrics answered, by route and status; they are no "
            "requests.",
            ("route", "status"),
            registry=registry,
        )
        self.seconds = Histogram(
            "gateway_http_request_seconds",
            "Time until an answer was complete, by route.",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.first_content_seconds = Histogram(
            "gateway_first_content_seconds",
            "Time from a request to the first content of its streamed answer.",
            ("provider",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.output_token_seconds = Histogram(
            "gateway_output_token_seconds",
            "Time per output token of a streamed answer, after its first content.",
            ("provider",),
            buckets=_TOKEN_SECONDS,
            registry=registry,
        )
        self.loop_delay_seconds = Histogram(
            "gateway_loop_delay_seconds",
            "Delay of a timer of the event loop that is due twice a second: the "
            "time that requests wait for a busy worker.",
            buckets=_DELAY_SECONDS,
            registry=registry,
        )
        self.in_progress = Gauge(
            "gateway_http_live_requests",
            "HTTP requests in progress.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self.limits_reached = Counter(
            "gateway_http_limits_reached",
            "Requests and connections that reached a limit of the facade, by the "
            "name of its setting.",
            ("limit",),
            registry=registry,
        )
        self.connections = Gauge(
            "gateway_http_connections",
            "Open HTTP connections.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self.sockets = Gauge(
            "gateway_http_websockets",
            "Open WebSockets.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self.replaced_workers = Counter(
            "gateway_replaced_workers",
            "Workers that `gateway up` replaced: died (of a signal, of memory, of an error), "
            "stalled (its event loop did not run).",
            ("reason",),
            registry=registry,
        )
        # So that an increase is seen from 0 on.
        for reason in ("died", "stalled"):
            self.replaced_workers.labels(reason)
        # Labelled counters are cached, as lookups cost more than counting.
        self._answered: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._streamed: dict[str, tuple[Histogram, Histogram]] = {}

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a finished request."""
        instruments = self._answered.get((route, status))
        if instruments is None:
            if route in WATCHING:
                self.probes.labels(route, status).inc()
                return
            instruments = self.requests.labels(route, status), self.seconds.labels(route)
            self._answered[route, status] = instruments
        requests, times = instruments
        requests.inc()
        times.observe(seconds)

    def streamed(self, provider: str, first_s: float, token_s: float | None) -> None:
        """Observe the time to the first content of a streamed answer, and per token after it."""
        instruments = self._streamed.get(provider)
        if instruments is None:
            instruments = (
                self.first_content_seconds.labels(provider),
                self.output_token_seconds.labels(provider),
            )
            self._streamed[provider] = instruments
        first, tokens = instruments
        first.observe(first_s)
        if token_s is not None:
            tokens.observe(token_s)


class AccessLog:
    """Writes the access log of one process.

    Args:
        lines_per_s: maximum lines per second, apart from server errors.
        monotonic: monotonic clock in seconds.
        later: schedules a callback after a delay in seconds.
    """

    def __init__(
        self,
        lines_per_s: int,
        monotonic: Callable[[], float],
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._lines_per_s = lines_per_s
        self._monotonic = monotonic
        self._later = later
        self._second = -1
        self._lines = 0
        self._left_out = 0
        self._buffered: list[dict[str, object]] = []

    def answered(
        self,
        method: str,
        route: str,
        status: int,
        seconds: float,
        details: Callable[[], dict[str, object]],
    ) -> None:
        """Log a request that took `seconds`.

        `details` returns further fields; it is called only for logged requests. The first line
        after skipped ones has their number, as `left_out`.
        """
        second = int(self._monotonic())
        if second != self._second:
            self._second, self._lines = second, 0
        is_bad = status >= _SERVER_ERRORS
        if self._lines >= self._lines_per_s and not is_bad:
            self._left_out += 1
            return
        self._lines += 1
        line: dict[str, object] = {
            "request_id": logs.request_id.get(),
            "method": method,
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
            **details(),
        }
        if self._left_out:
            line["left_out"] = self._left_out
            self._left_out = 0
        self._buffered.append(line)
        if is_bad:
            self.write()
        elif len(self._buffered) == 1:
            self._later(_DELAY_S, self.write)

    def write(self) -> None:
        """Write the buffered lines; also call this before the process ends."""
        lines, self._buffered = self._buffered, []
        for line in lines:
            log.info("request", extra=line)


def details_of(exchange: Exchange, status: int) -> dict[str, object]:
    """Return the fields of a log line: caller, model, provider, token counts and error code.

    Unknown fields are left out. The path is included only for 404, without its query.
    """
    details: dict[str, object] = {}
    if (trace := exchange.trace) is not None:
        details["trace_id"], details["span_id"] = trace.trace_id, trace.span_id
    if (caller := exchange.caller) is not None:
        details["user"] = caller.user_id
        details["key_id"] = caller.key_id
    if exchange.model is not None:
        details["model"] = exchange.model
    if (summary := exchange.answer_summary) is not None and summary.model:
        details["served_model"] = summary.model
        details["provider"] = summary.provider
        if summary.begun_by is not None:
            details["begun_by_model"], details["begun_by_provider"] = summary.begun_by
        details["input_tokens"] = summary.input_tokens
        details["output_tokens"] = summary.output_tokens
    if exchange.failure is not None:
        details["error"] = exchange.failure
    if status == 404:
        details["path"] = printable(cut(_KEY.sub("gw-…", exchange.path), _MAX_PATH))
    return details
