"""Metrics of a facade, exported by /metrics."""

from prometheus_client import CollectorRegistry

from services.common.process.metrics import Counter, Gauge, Histogram

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
        self.live = Gauge(
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
