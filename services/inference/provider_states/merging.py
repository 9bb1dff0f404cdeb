"""Merges the observations of all workers into a list of providers. Pure."""

from collections.abc import Iterable, Mapping

from gateway.inference.v1.providers_pb2 import (
    BREAKER_STATE_CLOSED,
    PROVIDER_STATUS_DEGRADED,
    PROVIDER_STATUS_DOWN,
    PROVIDER_STATUS_HEALTHY,
    AttemptCounts,
    Provider,
    ProviderModel,
    ProviderStatus,
)

_COUNTS = tuple(field.name for field in AttemptCounts.DESCRIPTOR.fields)


def merge(
    kinds: Mapping[str, str],
    configured: Iterable[tuple[str, str, str]],
    seen: Iterable[ProviderModel],
    now_ms: int,
) -> list[Provider]:
    """Return the providers by name, with their models.

    Args:
        kinds: the kinds of all providers, by name.
        configured: name, provider and provider's model name of each configured deployment.
        seen: the workers' observations of models, which may be of removed providers.
        now_ms: the time in Unix milliseconds; cooldowns that have ended are left out.
    """
    models: dict[tuple[str, str], ProviderModel] = {}

    def model_of(provider: str, model: str) -> ProviderModel:
        return models.setdefault(
            (provider, model),
            ProviderModel(provider=provider, model=model, breaker=BREAKER_STATE_CLOSED),
        )

    for name, of, upstream in configured:
        model_of(of, upstream).names.append(name)
    for one in seen:
        _add(model_of(one.provider, one.model), one, now_ms)
    providers = {name: Provider(name=name, kind=kind) for name, kind in kinds.items()}
    for of, upstream in sorted(models):
        if of in providers:
            providers[of].models.append(models[of, upstream])
    for provider in providers.values():
        provider.status = _status(provider.models)
    return [providers[name] for name in sorted(providers)]


def _add(total: ProviderModel, one: ProviderModel, now_ms: int) -> None:
    """Add one worker's observation of a model."""
    total.breaker = max(total.breaker, one.breaker)
    if one.HasField("retry_at_ms"):
        # The earliest probe of any worker.
        earliest = min(total.retry_at_ms, one.retry_at_ms) if total.retry_at_ms else one.retry_at_ms
        total.retry_at_ms = earliest
    is_cooling = one.cooling_until_ms > now_ms
    if is_cooling:
        total.cooling_until_ms = max(total.cooling_until_ms, one.cooling_until_ms)
    total.workers_avoiding += int(is_cooling or one.breaker > BREAKER_STATE_CLOSED)
    for name in _COUNTS:
        setattr(total.attempts, name, getattr(total.attempts, name) + getattr(one.attempts, name))
    if one.last_failure.time_ms > total.last_failure.time_ms:
        total.last_failure.CopyFrom(one.last_failure)


def _status(models: Iterable[ProviderModel]) -> ProviderStatus.ValueType:
    avoided = [model.workers_avoiding > 0 for model in models]
    if not any(avoided):
        return PROVIDER_STATUS_HEALTHY
    return PROVIDER_STATUS_DOWN if all(avoided) else PROVIDER_STATUS_DEGRADED
