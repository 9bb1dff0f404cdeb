"""Reads the labels of requests that the settings enable, and bounds the number of their values.

Each day, the first values of a label of each user are counted apart; further ones are counted as
one.
"""

from collections.abc import Callable, Iterable

from services.common.grpc.authentication import Caller
from services.common.labels import OTHER, Labels, labels_in
from services.common.settings import Usage
from services.inference.usage.metrics import UsageMetrics

# Values of all labels that are counted apart.
_MOST = 100_000
_DAY_S = 86_400


class LabelReader:
    """Reads the labels of requests.

    Args:
        settings: the labels that are enabled, and the maximum number of values of each.
        now: returns the time in Unix seconds.
        metrics: counts the values that are counted as one.
    """

    def __init__(self, settings: Usage, now: Callable[[], float], metrics: UsageMetrics) -> None:
        self._tags = frozenset(settings.tags)
        self._has_end_users = settings.end_users
        self._most = settings.max_label_values
        self._now = now
        self._metrics = metrics
        self._day = 0
        self._total = 0
        self._values: dict[tuple[str, str], set[str]] = {}

    def read(self, owner: Caller, metadata: Iterable[tuple[str, str | bytes]]) -> Labels:
        """Return the labels in the metadata of a call.

        Raises:
            GatewayError: invalid_request, naming the key of the metadata.
        """
        labels = labels_in(metadata, self._tags, has_end_users=self._has_end_users)
        if not labels:
            return ()
        day = int(self._now()) // _DAY_S
        if day != self._day:
            self._day, self._total = day, 0
            self._values.clear()
        return tuple((name, self._counted(name, labels[name], owner)) for name in sorted(labels))

    def _counted(self, name: str, value: str, owner: Caller) -> str:
        """Return a value, or `OTHER` if the label has too many."""
        values = self._values.setdefault((name, owner.user_id), set())
        if value not in values:
            if len(values) >= self._most or self._total >= _MOST:
                self._metrics.other_labels.labels(name).inc()
                return OTHER
            values.add(value)
            self._total += 1
        return value
