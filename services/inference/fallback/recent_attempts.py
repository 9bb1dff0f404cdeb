"""Counts of one process's attempts in the last minutes, by model, for administrators."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gateway.errors.v1.errors_pb2 import Reason
from gateway.inference.v1.providers_pb2 import AttemptCounts
from services.inference.circuit_breaker import ModelKey

# The window of the counts, and the interval in which it advances.
WINDOW_S = 300
_STEP_S = 30
# Retention of a model's latest failure.
FAILURE_KNOWN_S = 3_600.0
# Maximum number of models: callers can name as many as they like.
_MOST = 500


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt.

    Attributes:
        at: when it failed, by the process's monotonic clock.
        reason: the reason of the error.
        status: the provider's HTTP status, or None.
    """

    at: float
    reason: Reason.ValueType
    status: int | None


class _Counts:
    """Counts of the attempts that ended in one interval; fields as in `AttemptCounts`."""

    __slots__ = (
        *("cancelled", "failed", "first_content_ms", "first_contents", "number"),
        *("served", "served_ms"),
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.served = self.failed = self.cancelled = 0
        self.first_contents = self.first_content_ms = self.served_ms = 0


class _Model:
    __slots__ = ("failure", "steps")

    def __init__(self) -> None:
        self.steps: deque[_Counts] = deque(maxlen=WINDOW_S // _STEP_S)
        self.failure: Failure | None = None


class RecentAttempts:
    """Counts the recent attempts of one process.

    Args:
        monotonic: monotonic clock, in seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._models: OrderedDict[ModelKey, _Model] = OrderedDict()

    def served(self, key: ModelKey, at: float, duration_ms: int, first_ms: int | None) -> None:
        """Count an attempt whose answer was completed."""
        counts = self._counts(key, at)
        counts.served += 1
        counts.served_ms += duration_ms
        if first_ms is not None:
            counts.first_contents += 1
            counts.first_content_ms += first_ms

    def failed(self, key: ModelKey, failure: Failure) -> None:
        """Count a failed attempt."""
        self._counts(key, failure.at).failed += 1
        self._models[key].failure = failure

    def cancelled(self, key: ModelKey, at: float) -> None:
        """Count a cancelled attempt."""
        self._counts(key, at).cancelled += 1

    def counts(self) -> Iterator[tuple[ModelKey, AttemptCounts, Failure | None]]:
        """Yield for each model its counts in the window, and its latest failure of the last hour.

        Models with neither are removed.
        """
        now = self._monotonic()
        oldest = now // _STEP_S - WINDOW_S // _STEP_S
        for key, model in list(self._models.items()):
            if model.failure is not None and now - model.failure.at > FAILURE_KNOWN_S:
                model.failure = None
            while model.steps and model.steps[0].number <= oldest:
                model.steps.popleft()
            if model.steps or model.failure is not None:
                yield key, _sum(model.steps), model.failure
            else:
                del self._models[key]

    def _counts(self, key: ModelKey, at: float) -> _Counts:
        """Return the counts of a model for the interval in which an attempt ended."""
        model = self._models.get(key)
        if model is None:
            if len(self._models) >= _MOST:
                self._models.popitem(last=False)
            model = self._models[key] = _Model()
        number = int(at // _STEP_S)
        if not model.steps or model.steps[-1].number != number:
            model.steps.append(_Counts(number))
        return model.steps[-1]


def _sum(steps: deque[_Counts]) -> AttemptCounts:
    total = AttemptCounts()
    for counts in steps:
        total.served += counts.served
        total.failed += counts.failed
        total.cancelled += counts.cancelled
        total.first_contents += counts.first_contents
        total.first_content_ms += counts.first_content_ms
        total.served_ms += counts.served_ms
    return total
