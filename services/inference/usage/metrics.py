"""Metrics of usage, exported by the facades' /metrics."""

from prometheus_client import CollectorRegistry

from services.common.messages.usage_batch import OWN, SHARED, UsageBatch
from services.common.money import PER_DOLLAR
from services.common.process.metrics import Counter, Gauge

_PROVIDER = SHARED.index("provider")
_COST = OWN.index("cost_pusd")
# Kinds of tokens, and their positions in a record.
_KINDS = {
    "input": OWN.index("input_tokens"),
    "output": OWN.index("output_tokens"),
    "cached": OWN.index("cached_tokens"),
    "cache_written": OWN.index("cache_written_tokens"),
}


class UsageMetrics:
    """Metrics of tokens and costs by provider, and of stored and lost records.

    There is no label for models: callers can name any number of them.
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
            "Costs of recorded requests, where prices are known.",
            ("provider",),
            registry=registry,
        )
        self.unpriced = Counter(
            "gateway_unpriced_answers",
            "Recorded answers with unknown costs.",
            ("provider",),
            registry=registry,
        )
        self.dropped = Counter(
            "gateway_usage_dropped",
            "Usage records lost: neither the journal nor the database accepted them.",
            registry=registry,
        )
        self.journal_bytes = Gauge(
            "gateway_usage_journal_bytes",
            "Bytes of the usage journal not yet recorded in the database.",
            multiprocess_mode="livesum",
            registry=registry,
        )

        self.other_labels = Counter(
            "gateway_usage_labels_other",
            "Requests whose tag or end user counts as (other), since the label has had "
            "usage.max_label_values values, by label: the key of the tag, or end_user.",
            ("label",),
            registry=registry,
        )

    def count(self, batch: UsageBatch) -> None:
        """Count records that were stored."""
        for shared, rows in batch.groups.items():
            provider = shared[_PROVIDER]
            if not provider:
                continue
            columns = list(zip(*rows, strict=True))
            for kind, place in _KINDS.items():
                self.tokens.labels(provider, kind).inc(sum(columns[place]))
            costs = [cost for cost in columns[_COST] if cost is not None]
            self.cost.labels(provider).inc(sum(costs) / PER_DOLLAR)
            self.unpriced.labels(provider).inc(len(rows) - len(costs))
