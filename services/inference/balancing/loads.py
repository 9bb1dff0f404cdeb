"""What one process knows of deployments: calls under way, times, and those left alone.

Processes share none of it. Each sees its own calls and the limits that its own calls were told of,
so that a choice takes no round trip.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from services.inference.balancing.rate_limits import Cooldown
from services.inference.circuit_breaker import ModelKey
from services.inference.metrics import Metrics

# The share of the newest time in an average.
_NEWEST = 0.3
# An average without a newer time is forgotten, so that a deployment that was slow is tried again.
_REMEMBERED_S = 60.0
# Of a class without any time, where all are compared by their calls alone.
_UNKNOWN_S = 1.0
# Callers can name as many models as they like.
_MOST = 1_000
# Bytes of a request above which it is of the next class: about 1,000 and 16,000 tokens.
_SIZES = (4 << 10, 64 << 10)
_CLASSES = 2 * (len(_SIZES) + 1)


def load_class(size: int, *, whole: bool) -> int:
    """Return the class of requests that take about as long until their first content.

    That is a matter of what the model has to read, and of a whole answer of what it writes.

    Args:
        size: bytes of the request.
        whole: whether the answer is wanted whole.
    """
    return 2 * sum(size > limit for limit in _SIZES) + whole


class Load:
    """What is known of one deployment.

    Attributes:
        calls: under way.
        free_at: when it can be asked again, by the process's clock.
    """

    __slots__ = ("_averages", "_times", "calls", "free_at")

    def __init__(self) -> None:
        self.calls = 0
        self.free_at = 0.0
        self._averages = [0.0] * _CLASSES  # seconds to the first content
        self._times = [float("-inf")] * _CLASSES  # of the latest of them

    def note(self, load_class: int, seconds: float, now: float) -> None:
        """Note the time to the first content of an answer."""
        known = self.average(load_class, now)
        average = seconds if known is None else known + _NEWEST * (seconds - known)
        self._averages[load_class] = average
        self._times[load_class] = now

    def average(self, load_class: int, now: float) -> float | None:
        """Return the moving average of the times to the first content; None if none is known."""
        if now - self._times[load_class] > _REMEMBERED_S:
            return None
        return self._averages[load_class]


# Of deployments without calls; never changed.
_IDLE = Load()


class Loads:
    """What one process knows of all deployments.

    Args:
        monotonic: monotonic clock, in seconds.
        metrics: counts calls and cooldowns.
        now: Unix seconds, for limits that are told as times.
    """

    def __init__(
        self,
        monotonic: Callable[[], float],
        metrics: Metrics,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.monotonic = monotonic
        self.now = now
        self.metrics = metrics
        self._loads: OrderedDict[ModelKey, Load] = OrderedDict()

    def of(self, key: ModelKey) -> Load:
        """Return what is known of a deployment."""
        load = self._loads.get(key)
        if load is None:
            if len(self._loads) >= _MOST:
                self._loads.popitem(last=False)
            load = self._loads[key] = Load()
        return load

    def wait_s(self, key: ModelKey) -> float:
        """Return the seconds until a deployment can be asked again; 0 when it can be now."""
        load = self._loads.get(key)
        return 0.0 if load is None else max(0.0, load.free_at - self.monotonic())

    def cooling(self) -> Mapping[ModelKey, float]:
        """Return the seconds until each deployment that is left alone can be asked again."""
        now = self.monotonic()
        return {key: load.free_at - now for key, load in self._loads.items() if load.free_at > now}

    def cool(self, key: ModelKey, cooldown: Cooldown) -> None:
        """Leave a deployment alone for a while."""
        load = self.of(key)
        free_at = self.monotonic() + cooldown.wait_s
        if free_at > load.free_at:
            load.free_at = free_at
            self.metrics.deployment_cooled(key, cooldown.reason)

    def busy(self, key: ModelKey, weight: float) -> float:
        """Return the calls of a deployment with one more, by its share."""
        return (self._loads.get(key, _IDLE).calls + 1) / (weight or 1.0)

    def slow(self, keys: list[ModelKey], load_class: int) -> list[float]:
        """Return for each deployment how long one more call of a class is likely to wait.

        That is its average time, as many times as it has calls. A deployment of unknown time is
        taken for as quick as the quickest, so that it is tried.
        """
        now = self.monotonic()
        loads = [self._loads.get(key, _IDLE) for key in keys]
        averages = [load.average(load_class, now) for load in loads]
        quickest = min((one for one in averages if one is not None), default=_UNKNOWN_S)
        return [
            (quickest if average is None else average) * (load.calls + 1)
            for load, average in zip(loads, averages, strict=True)
        ]
