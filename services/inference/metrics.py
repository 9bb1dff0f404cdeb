"""Metrics of inference, exported by the facades' /metrics."""

from prometheus_client import CollectorRegistry

from services.common.process.metrics import Counter, Gauge, Histogram
from services.inference.circuit_breaker import ModelKey, State

_BREAKER_VALUES: dict[State, float] = {"closed": 0, "half_open": 0.5, "open": 1}

_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_MAX_UNKNOWN = 100  # maximum number of unknown models with a label of their own

_MAX_DEPLOYMENTS = 1_000  # maximum number of deployments with labels of their own


class UpstreamCalls:
    """How many calls of providers are in progress.

    Attributes:
        count: their number.
    """

    count = 0


class InferenceMetrics:
    """The metrics of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.upstream_calls = calls = UpstreamCalls()
        Gauge(
            "gateway_upstream_live_calls",
            "Calls in progress at providers.",
            multiprocess_mode="livesum",
            registry=registry,
        ).follow(lambda: calls.count)
        self.attempts = Counter(
            "gateway_upstream_attempts",
            "Attempts at providers, by outcome: served, failed, cancelled, unsupported.",
            ("provider", "outcome"),
            registry=registry,
        )
        self.attempt_seconds = Histogram(
            "gateway_upstream_attempt_seconds",
            "Duration of attempts at providers, by outcome.",
            ("provider", "outcome"),
            buckets=_SECONDS,
            registry=registry,
        )
        self.hedges = Counter(
            "gateway_hedges",
            "Models called in parallel with a silent one.",
            registry=registry,
        )
        self.recoveries = Counter(
            "gateway_stream_recoveries",
            "Answers interrupted after their first content, by outcome: recovered, failed.",
            ("outcome",),
            registry=registry,
        )
        self.adaptations = Counter(
            "gateway_adaptations",
            "Media converted for models, by conversion and outcome: made, failed.",
            ("conversion", "outcome"),
            registry=registry,
        )
        self.adaptation_cache = Counter(
            "gateway_adaptation_cache",
            "Lookups in the cache of conversions: hit, miss.",
            ("result",),
            registry=registry,
        )
        self.helper_tokens = Counter(
            "gateway_helper_tokens",
            "Tokens of models that described images or transcribed recordings for other models.",
            ("task", "provider", "direction"),
            registry=registry,
        )
        self.tool_calls = Counter(
            "gateway_tool_calls",
            "Calls of the gateway's own tools, by outcome: served, cancelled, or an error code.",
            ("tool", "outcome"),
            registry=registry,
        )
        self.tool_rounds = Histogram(
            "gateway_tool_rounds",
            "Calls to models within answers that use the gateway's own tools.",
            buckets=range(1, 9),
            registry=registry,
        )
        self.deployment_attempts = Counter(
            "gateway_deployment_attempts",
            "Attempts at deployments of models with several deployments, by outcome.",
            ("provider", "model", "outcome"),
            registry=registry,
        )
        self.deployment_calls = Gauge(
            "gateway_deployment_live_calls",
            "Calls in progress at deployments of models with several deployments.",
            ("provider", "model"),
            multiprocess_mode="livesum",
            registry=registry,
        )
        self.deployment_cooldowns = Counter(
            "gateway_deployment_cooldowns",
            "Times that a deployment was put on hold: rate_limited, exhausted (a rate limit is "
            "used up), refused (the provider rejected the key, the account or the model).",
            ("provider", "model", "reason"),
            registry=registry,
        )
        self.deployment_limits = Counter(
            "gateway_deployment_limits_reached",
            "Calls that a deployment was not sent, since one of its limits, or of its provider's, "
            "is reached.",
            ("provider", "model"),
            registry=registry,
        )
        self.response_cache = Counter(
            "gateway_response_cache",
            "Requests by result of the response cache: hit, miss, bypass.",
            ("result",),
            registry=registry,
        )
        self.health_checks = Counter(
            "gateway_provider_health_checks",
            "Health checks of providers with open breakers, by outcome: answered, failed.",
            ("provider", "outcome"),
            registry=registry,
        )
        self._deployments: set[ModelKey] = set()
        self._unknown: set[ModelKey] = set()
        self._breakers = Gauge(
            "gateway_breaker_open",
            "Models with an open circuit breaker: 1 open, 0.5 being probed.",
            ("provider", "model"),
            multiprocess_mode="livemax",
            registry=registry,
        )

    def deployment_began(self, key: ModelKey) -> None:
        """Count the start of a call of a deployment."""
        if self._has_labels(key):
            self.deployment_calls.labels(key.provider, key.model).inc()

    def deployment_ended(self, key: ModelKey, outcome: str) -> None:
        """Count the end of a call of a deployment."""
        if self._has_labels(key):
            self.deployment_calls.labels(key.provider, key.model).inc(-1)
            self.deployment_attempts.labels(key.provider, key.model, outcome).inc()

    def deployment_cooled(self, key: ModelKey, reason: str) -> None:
        """Count a cooldown of a deployment."""
        if self._has_labels(key):
            self.deployment_cooldowns.labels(key.provider, key.model, reason).inc()

    def deployment_limited(self, key: ModelKey) -> None:
        """Count a call that a deployment was not sent because of a limit of the settings."""
        if self._has_labels(key):
            self.deployment_limits.labels(key.provider, key.model).inc()

    def _has_labels(self, key: ModelKey) -> bool:
        """Return whether a deployment has labels of its own: wildcards allow any number of them."""
        if key not in self._deployments:
            if len(self._deployments) >= _MAX_DEPLOYMENTS:
                return False
            self._deployments.add(key)
        return True

    def breaker_changed(self, key: ModelKey, state: State, *, is_known: bool) -> None:
        """Export the state of a model's circuit breaker.

        Callers can name any number of unknown models, and labels are never removed: only the first
        unknown models get one.
        """
        if not is_known and key not in self._unknown:
            if len(self._unknown) >= _MAX_UNKNOWN:
                return
            self._unknown.add(key)
        self._breakers.labels(key.provider, key.model).set(_BREAKER_VALUES[state])
