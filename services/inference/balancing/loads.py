"""The state of deployments in one process: running calls, times to first content, and cooldowns.

Processes do not share it, so that a choice takes no round trip: each counts its own calls and the
rate limits reported to them.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from services.inference.balancing.rate_limits import Cooldown
from services.inference.circuit_breaker import ModelKey
from services.inference.metrics import InferenceMetrics

# The weight of the newest time in a moving average.
_NEWEST = 0.3
# An average expires without a newer time, so that a deployment that was slow is tried again.
_REMEMBERED_S = 60.0
# The time of all deployments if none is known: they are compared by their calls alone.
_UNKNOWN_S = 1.0
# Maximum number of deployments: callers can name as many models as they like.
_MOST = 1_000
# Bytes of a request above which it is in the next class: about 1,000 and 16,000 tokens.
_SIZES = (4 << 10, 64 << 10)
_CLASSES = 2 * (len(_SIZES) + 1)


def load_class(size: int, *, whole: bool) -> int:
    """Return the load class of a request: requests with similar times to the first content.

    The time depends on the size of the request, and for a whole answer on what the model writes.

    Args:
        size: bytes of the request.
        whole: whether the answer is whole or a stream.
    """
    return 2 * sum(size > limit for limit in _SIZES) + whole


class Load:
    """The load of one deployment.

    Attributes:
        calls: number of running calls.
        free_at: the end of its cooldown, by the process's monotonic clock.
    """

    __slots__ = ("_averages", "_times", "calls", "free_at")

    def __init__(self) -> None:
        self.calls = 0
        self.free_at = 0.0
        self._averages = [0.0] * _CLASSES  # seconds to the first content
        self._times = [float("-inf")] * _CLASSES  # when the averages were updated

    def note(self, load_class: int, seconds: float, now: float) -> None:
        """Add the time to the first content of an answer to the moving average."""
        average_before = self.average(load_class, now)
        average = (
            seconds
            if average_before is None
            else average_before + _NEWEST * (seconds - average_before)
        )
        self._averages[load_class] = average
        self._times[load_class] = now

    def average(self, load_class: int, now: float) -> float | None:
        """Return the moving average of the times to the first content, or None."""
        if now - self._times[load_class] > _REMEMBERED_S:
            return None
        return self._averages[load_class]


# Shared by all deployments without calls; never modified.
_IDLE = Load()


class Loads:
    """The loads of all deployments in one process.

    Args:
        monotonic: monotonic clock, in seconds.
        metrics: counts calls and cooldowns.
        now: returns Unix seconds, for reset times in responses.
    """

    def __init__(
        self,
        monotonic: Callable[[], float],
        metrics: InferenceMetrics,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.monotonic = monotonic
        self.now = now
        self.metrics = metrics
        self._loads: OrderedDict[ModelKey, Load] = OrderedDict()

    def of(self, key: ModelKey) -> Load:
        """Return the load of a deployment."""
        load = self._loads.get(key)
        if load is None:
            if len(self._loads) >= _MOST:
                self._loads.popitem(last=False)
            load = self._loads[key] = Load()
        return load

    def wait_s(self, key: ModelKey) -> float:
        """Return the seconds until the end of a deployment's cooldown; 0 without one."""
        load = self._loads.get(key)
        return 0.0 if load is None else max(0.0, load.free_at - self.monotonic())

    def cooling(self) -> Mapping[ModelKey, float]:
        """Return the remaining seconds of all cooldowns, by deployment."""
        now = self.monotonic()
        return {key: load.free_at - now for key, load in self._loads.items() if load.free_at > now}

    def cool(self, key: ModelKey, cooldown: Cooldown) -> None:
        """Start a cooldown of a deployment, unless a longer one is running."""
        load = self.of(key)
        free_at = self.monotonic() + cooldown.wait_s
        if free_at > load.free_at:
            load.free_at = free_at
            self.metrics.deployment_cooled(key, cooldown.reason)

    def load_by_calls(self, key: ModelKey, weight: float) -> float:
        """Return the running calls of a deployment plus one, divided by its weight."""
        return (self._loads.get(key, _IDLE).calls + 1) / (weight or 1.0)

    def estimated_latencies(self, keys: list[ModelKey], load_class: int) -> list[float]:
        """Return for each deployment the estimated time to first content of another call.

        It is the deployment's average time multiplied by its running calls plus one. Without an
        average it is that of the quickest deployment, so that the deployment is tried.
        """
        now = self.monotonic()
        loads = [self._loads.get(key, _IDLE) for key in keys]
        averages = [load.average(load_class, now) for load in loads]
        quickest = min((seconds for seconds in averages if seconds is not None), default=_UNKNOWN_S)
        return [
            (quickest if average is None else average) * (load.calls + 1)
            for load, average in zip(loads, averages, strict=True)
        ]
