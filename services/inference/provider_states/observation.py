"""Observations of models in one process: attempts, circuit breakers and cooldowns."""

from collections import defaultdict

from gateway.inference.v1.providers_pb2 import (
    BREAKER_STATE_CLOSED,
    BREAKER_STATE_HALF_OPEN,
    BREAKER_STATE_OPEN,
    AttemptFailure,
    BreakerState,
    ProviderModel,
)
from services.common.clock import Clock
from services.inference.circuit_breaker import ModelKey, State
from services.inference.fallback.attempt_log import Failure
from services.inference.run.engine import Engine

_BREAKER_STATES: dict[State, BreakerState.ValueType] = {
    "closed": BREAKER_STATE_CLOSED,
    "half_open": BREAKER_STATE_HALF_OPEN,
    "open": BREAKER_STATE_OPEN,
}


def observe(engine: Engine, clock: Clock) -> list[ProviderModel]:
    """Return the observations of the engine of this process, by model."""
    now = clock.monotonic()
    now_ms = clock.now_ms()

    def unix_ms(at: float) -> int:
        return now_ms + round(1000 * (at - now))

    models: dict[ModelKey, ProviderModel] = defaultdict(ProviderModel)
    for key, counts, failure in engine.recent_attempts.counts():
        models[key].attempts.CopyFrom(counts)
        if failure is not None:
            models[key].last_failure.CopyFrom(_failure(failure, unix_ms(failure.at)))
    for key, state in engine.breakers.states().items():
        probe_at = engine.breakers.next_probe_at(key)
        if probe_at is not None:
            models[key].breaker = _BREAKER_STATES[state]
            models[key].retry_at_ms = unix_ms(probe_at)
    for key, wait_s in engine.balancer.loads.cooling().items():
        models[key].cooling_until_ms = unix_ms(now + wait_s)
    for key, model in models.items():
        model.provider, model.model = key
        model.breaker = model.breaker or BREAKER_STATE_CLOSED
        is_avoided = model.breaker != BREAKER_STATE_CLOSED or model.HasField("cooling_until_ms")
        model.workers_avoiding = int(is_avoided)
    return list(models.values())


def _failure(failure: Failure, time_ms: int) -> AttemptFailure:
    return AttemptFailure(time_ms=time_ms, reason=failure.reason, status=failure.status)
