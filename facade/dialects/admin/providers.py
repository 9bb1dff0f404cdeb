"""The JSON of the health of providers, with its schema."""

from typing import Final

from facade.dialects.admin import answers
from facade.dialects.json_schemas import STRING, JsonObject
from gateway.errors.v1.errors_pb2 import Reason
from gateway.inference.v1.providers_pb2 import (
    AttemptFailure,
    BreakerState,
    ListProvidersResponse,
    Provider,
    ProviderModel,
    ProviderStatus,
)

_FALLBACKS: Final = "model.fallbacks"
_COUNT: JsonObject = {"type": "integer", "minimum": 0}
_OPTIONAL_TIME: JsonObject = {"type": ["number", "null"]}
_OPTIONAL_MS: JsonObject = {"type": ["number", "null"], "minimum": 0}

_FAILURE: JsonObject = {
    "type": ["object", "null"],
    "description": "The latest failed attempt within the last hour, or null.",
    "required": ["at", "reason", "status"],
    "additionalProperties": False,
    "properties": {
        "at": {"type": "number", "description": "Unix seconds, with millisecond precision."},
        "reason": {
            "type": "string",
            "description": "Reason of the failure, as in the `code` of errors.",
        },
        "status": {"type": ["integer", "null"], "description": "The provider's HTTP status."},
    },
}
_MODEL = answers.object_schema(
    "provider.model",
    {
        "id": {"type": "string", "description": "The provider's name for the model."},
        "names": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Names of the configured models that it serves.",
        },
        "healthy": {"type": "boolean", "description": "True if no worker avoids the model."},
        "breaker": {
            "enum": ["closed", "half_open", "open"],
            "description": "The worst state in any worker.",
        },
        "retry_at": {
            **_OPTIONAL_TIME,
            "description": "Time from which the next request may probe the model, in Unix seconds.",
        },
        "cooling_until": {
            **_OPTIONAL_TIME,
            "description": "Time until which the provider asked not to be called, in Unix seconds.",
        },
        "workers_avoiding": {**_COUNT, "description": "Number of workers that avoid the model."},
        "requests": {**_COUNT, "description": "Attempts in the window."},
        "failed_requests": _COUNT,
        "cancelled_requests": {
            **_COUNT,
            "description": "Attempts cancelled because the caller disconnected or another model "
            "answered first.",
        },
        "mean_first_content_ms": {**_OPTIONAL_MS, "description": "Mean time to the first content."},
        "mean_duration_ms": {
            **_OPTIONAL_MS,
            "description": "Mean duration of successful attempts.",
        },
        "last_failure": _FAILURE,
    },
)
_PROVIDER = answers.object_schema(
    "provider",
    {
        "id": {"type": "string", "description": "Name of the provider in the settings."},
        "kind": {"type": "string"},
        "status": {"enum": ["healthy", "degraded", "down"]},
        "models": {"type": "array", "items": _MODEL},
    },
)
PROVIDERS = answers.list_schema(_PROVIDER)
PROVIDERS["properties"] |= {
    "workers": {**_COUNT, "description": "Number of workers of the host that are included."},
    "window_seconds": {**_COUNT, "description": "Length of the time window of the attempt counts."},
}
PROVIDERS["properties"]["fallbacks"] = {
    "type": "array",
    "description": "The models of the settings that have fallbacks.",
    "items": answers.object_schema(
        _FALLBACKS, {"id": STRING, "models": {"type": "array", "items": STRING}}
    ),
}
PROVIDERS["required"] += ["workers", "window_seconds", "fallbacks"]


def render_providers(response: ListProvidersResponse) -> JsonObject:
    """Return the JSON object of the list of providers."""
    return {
        **answers.render_list(response.providers, "", _render_provider),
        "workers": response.workers,
        "window_seconds": response.window_s,
        "fallbacks": [
            {"object": _FALLBACKS, "id": model.name, "models": [*model.fallbacks]}
            for model in response.fallbacks
        ],
    }


def _render_provider(provider: Provider) -> JsonObject:
    return {
        "object": "provider",
        "id": provider.name,
        "kind": provider.kind,
        "status": ProviderStatus.Name(provider.status).removeprefix("PROVIDER_STATUS_").lower(),
        "models": [_render_model(model) for model in provider.models],
    }


def _render_model(model: ProviderModel) -> JsonObject:
    counts = model.attempts
    return {
        "object": "provider.model",
        "id": model.model,
        "names": list(model.names),
        "healthy": not model.workers_avoiding,
        "breaker": BreakerState.Name(model.breaker).removeprefix("BREAKER_STATE_").lower(),
        "retry_at": model.retry_at_ms / 1000 if model.HasField("retry_at_ms") else None,
        "cooling_until": (
            model.cooling_until_ms / 1000 if model.HasField("cooling_until_ms") else None
        ),
        "workers_avoiding": model.workers_avoiding,
        "requests": counts.served + counts.failed + counts.cancelled,
        "failed_requests": counts.failed,
        "cancelled_requests": counts.cancelled,
        "mean_first_content_ms": _mean(counts.first_content_ms, counts.first_contents),
        "mean_duration_ms": _mean(counts.served_ms, counts.served),
        "last_failure": (
            _render_failure(model.last_failure) if model.HasField("last_failure") else None
        ),
    }


def _render_failure(failure: AttemptFailure) -> JsonObject:
    return {
        "at": failure.time_ms / 1000,
        "reason": Reason.Name(failure.reason).removeprefix("REASON_").lower(),
        "status": failure.status if failure.HasField("status") else None,
    }


def _mean(total: int, count: int) -> float | None:
    return round(total / count, 1) if count else None
