"""Metrics of limits, exported by the facades' /metrics.

Reached limits are counted by `gateway_limits_reached`, together with those of the settings.
"""

from prometheus_client import CollectorRegistry

from services.common.process.metrics import Counter


class LimitMetrics:
    """The metrics of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.calls = Counter(
            "gateway_limit_leases",
            "Calls that lease allowances of keys, users and teams, by outcome: answered, failed.",
            ("outcome",),
            registry=registry,
        )
        self.claims = Counter(
            "gateway_limit_claims",
            "Claims in these calls, one per limit of a key, user or team.",
            registry=registry,
        )
