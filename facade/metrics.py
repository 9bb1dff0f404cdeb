"""Metrics of a facade, exported by /metrics."""

from prometheus_client import CollectorRegistry

from services.common.metrics import Counter, Gauge, Histogram

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """The counters of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "gateway_http_requests",
            "HTTP requests answered, by route and status.",
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
        self.live = Gauge(
            "gateway_http_live_requests",
            "HTTP requests being answered now.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self.background = Gauge(
            "gateway_http_background_responses",
            "Responses that are generated in the background, or wait for that.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self.limits_reached = Counter(
            "gateway_http_limits_reached",
            "Requests and connections that reached a limit of the facade, by its setting's name.",
            ("limit",),
            registry=registry,
        )
        self.connections = Gauge(
            "gateway_http_connections",
            "HTTP connections that are open now.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        # Labelled counters are cached, as lookups cost more than counting.
        self._answered: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a finished request."""
        found = self._answered.get((route, status))
        if found is None:
            found = self.requests.labels(route, status), self.seconds.labels(route)
            self._answered[route, status] = found
        requests, times = found
        requests.inc()
        times.observe(seconds)
