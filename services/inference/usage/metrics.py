"""Metrics of usage, exported by the facades' /metrics."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from gateway.accounts.v1.usage_pb2 import UsageRecord
from services.common.metrics import Counter, Gauge


class UsageMetrics:
    """Tokens and costs by provider, and what happens to records.

    Models have no label: callers can name any number of them.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.tokens = Counter(
            "gateway_tokens",
            "Tokens of recorded requests, by kind: input, output, cached, cache_written.",
            ("provider", "kind"),
            registry=registry,
        )
        self.cost = Counter(
            "gateway_cost_dollars",
            "Costs of recorded requests, as far as prices are known.",
            ("provider",),
            registry=registry,
        )
        self.unpriced = Counter(
            "gateway_unpriced_answers",
            "Recorded answers whose costs are not known.",
            ("provider",),
            registry=registry,
        )
        self.dropped = Counter(
            "gateway_usage_dropped",
            "Usage records that neither the journal nor the database took.",
            registry=registry,
        )
        self.journal_bytes = Gauge(
            "gateway_usage_journal_bytes",
            "Bytes of the journal of usage that wait for the database.",
            multiprocess_mode="livesum",
            registry=registry,
        )

    def count(self, batch: Sequence[UsageRecord]) -> None:
        """Count records that were stored."""
        sums: dict[str, list[int]] = {}
        for record in batch:
            known = sums.setdefault(record.provider, [0] * 6)
            for place, amount in enumerate(
                (
                    record.input_tokens,
                    record.output_tokens,
                    record.cached_tokens,
                    record.cache_written_tokens,
                    record.cost_pusd,
                    not record.HasField("cost_pusd"),
                )
            ):
                known[place] += amount
        for provider, (*tokens, cost, unpriced) in sums.items():
            if not provider:
                continue
            kinds = ("input", "output", "cached", "cache_written")
            for kind, amount in zip(kinds, tokens, strict=True):
                self.tokens.labels(provider, kind).inc(amount)
            self.cost.labels(provider).inc(cost / 1e12)
            self.unpriced.labels(provider).inc(unpriced)
