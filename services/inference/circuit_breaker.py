"""Circuit breakers: models that keep failing are skipped for a while.

A breaker opens after a number of consecutive transient failures. After a pause it is half
open: one attempt probes the model, while all others still skip it. A successful probe closes
the breaker. A failed probe leaves it open for another pause, twice as long. Pauses have
jitter, so that gateways do not probe together, and count from the start of the probe, so that
a model that fails slowly is not skipped for longer.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

FIRST_PAUSE_S = 10.0
# A model that has recovered from a long outage is called again within this time. Of all requests
# that would have called the model meanwhile, a probe costs one.
LONGEST_PAUSE_S = 15.0
# Maximum share by which a pause is shortened.
_JITTER = 0.2
# Maximum number of breakers: callers can name as many models as they like. Only models that have
# failed have one.
_MOST = 1_000

State = Literal["closed", "open", "half_open"]
# Returns a random number between two bounds, as `random.uniform` does.
Uniform = Callable[[float, float], float]


class ModelKey(NamedTuple):
    """The key of a breaker: a provider, and the provider's name of a model."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


class _Breaker:
    __slots__ = ("failures", "is_open", "pause_s", "probed_at", "probing", "until")

    def __init__(self) -> None:
        self.failures = 0
        self.is_open = False
        self.pause_s = FIRST_PAUSE_S  # of the next time it opens
        self.until = 0.0
        self.probed_at = 0.0
        self.probing = False


class CircuitBreakers:
    """The circuit breakers of a process.

    Args:
        failures: consecutive transient failures that open a breaker.
        monotonic: monotonic clock, in seconds.
        changed: called with each new state.
        uniform: random source for jitter.

    Attributes:
        by_model: the breakers of models that have failed recently; while there are none, nobody
            needs to ask for that of a model.
    """

    def __init__(
        self,
        failures: int,
        monotonic: Callable[[], float],
        changed: Callable[[ModelKey, State], None],
        uniform: Uniform,
    ) -> None:
        self._failures = failures
        self._monotonic = monotonic
        self._changed = changed
        self._uniform = uniform
        self.by_model: dict[ModelKey, _Breaker] = {}

    def states(self) -> Mapping[ModelKey, State]:
        """Return the states of models that have failed recently; all others are closed."""
        return {key: self._state(breaker) for key, breaker in self.by_model.items()}

    def open_of(self, provider: str) -> Sequence[ModelKey]:
        """Return the models of a provider whose breakers are open, the first to open first."""
        return [
            key
            for key, breaker in self.by_model.items()
            if breaker.is_open and key.provider == provider
        ]

    def next_probe_at(self, key: ModelKey) -> float | None:
        """Return when a model may be probed, by the clock; None while its breaker is closed."""
        breaker = self.by_model.get(key)
        return breaker.until if breaker is not None and breaker.is_open else None

    def admits(self, key: ModelKey) -> bool:
        """Return whether a model may be called: its breaker is closed, or a probe is due."""
        breaker = self.by_model.get(key)
        return breaker is None or not breaker.is_open or self._is_due(breaker)

    def begin(self, key: ModelKey) -> bool:
        """Record that an attempt begins; return whether it is a probe."""
        breaker = self.by_model.get(key)
        if breaker is None or not breaker.is_open or not self._is_due(breaker):
            return False
        breaker.probing = True
        breaker.probed_at = self._monotonic()
        self._changed(key, "half_open")
        return True

    def answers(self, key: ModelKey) -> None:
        """Record that a model has begun to answer a probe, or a health check: close its breaker.

        If the answer breaks off, the breaker opens again at once, and for longer.
        """
        breaker = self.by_model.get(key)
        if breaker is not None and breaker.is_open:
            breaker.is_open = breaker.probing = False
            self._changed(key, "closed")

    def succeeded(self, key: ModelKey) -> None:
        """Record that a model has responded completely, even if with a rejection."""
        self._forget(key)

    def failed(self, key: ModelKey, probe: bool) -> None:
        """Record a transient failure; `probe` is the result of `begin`."""
        breaker = self.by_model.get(key)
        if breaker is None:
            if len(self.by_model) >= _MOST:
                self._forget(next(iter(self.by_model)))
            breaker = self.by_model[key] = _Breaker()
        if breaker.is_open and not probe:
            return  # it began before the breaker opened, and has no new information
        breaker.failures += 1
        if breaker.failures >= self._failures:
            began = breaker.probed_at if breaker.is_open else self._monotonic()
            breaker.until = began + breaker.pause_s * (1 - self._uniform(0, _JITTER))
            breaker.pause_s = min(2 * breaker.pause_s, LONGEST_PAUSE_S)
            breaker.is_open = True
            breaker.probing = False
            self._changed(key, "open")

    def cancelled(self, key: ModelKey, probe: bool) -> None:
        """Record that an attempt was cancelled; counts neither as success nor as failure."""
        breaker = self.by_model.get(key)
        if probe and breaker is not None and breaker.probing:
            breaker.probing = False
            self._changed(key, "open")

    def _forget(self, key: ModelKey) -> None:
        breaker = self.by_model.pop(key, None)
        if breaker is not None and breaker.is_open:
            self._changed(key, "closed")

    def _is_due(self, breaker: _Breaker) -> bool:
        """Return whether an open breaker may be probed now."""
        return not breaker.probing and self._monotonic() >= breaker.until

    def _state(self, breaker: _Breaker) -> State:
        if not breaker.is_open:
            return "closed"
        return "half_open" if breaker.probing or self._is_due(breaker) else "open"
