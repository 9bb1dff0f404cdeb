"""The JSON of a caller's limits and usage: what is used, reserved and left."""

from collections.abc import Iterable, Mapping

import orjson

from facade.credentials import ApiFormat, Format
from facade.dialects.json_schemas import (
    COUNT,
    STRING,
    JsonObject,
    array,
    closed_object,
    described,
    open_object,
)
from gateway.accounts.v1.accounts_pb2 import GetUsageResponse
from gateway.accounts.v1.limits_pb2 import LimitUsage, Measure, SubjectKind
from gateway.accounts.v1.usage_pb2 import UsageSum
from services.common.limit_windows import SPEND
from services.common.money import decimal_dollars
from services.common.text.times import utc_time

COUNTS = (
    *("requests", "failed_requests", "input_tokens", "output_tokens", "cached_tokens"),
    *("cache_written_tokens", "reasoning_tokens", "unpriced", "estimated"),
)
KIND: JsonObject = {"enum": ["key", "user", "team", "tag", "end_user", "end_users"]}
_AMOUNT = {
    "type": ["integer", "string"],
    "description": "A number; of `spend_…`, decimal US dollars as text.",
}
_OPTIONAL_TIME = {"type": ["string", "null"], "format": "date-time"}
_OPTIONAL_DOLLARS = {"type": ["string", "null"]}
_LIMITS = (
    *("requests_per_minute", "tokens_per_minute", "concurrent_requests"),
    *("spend_per_day", "spend_per_week", "spend_per_month", "spend_per_period"),
)
LIMIT_USAGE = closed_object(
    {
        "subject_kind": KIND,
        "subject_id": STRING,
        "name": {"enum": list(_LIMITS)},
        "limit": _AMOUNT,
        "used": _AMOUNT,
        "reserved": _AMOUNT,
        "remaining": _AMOUNT,
        "resets_at": {
            "type": ["string", "null"],
            "format": "date-time",
            "description": "The end of the window; null for concurrent requests, and for a period "
            "without an end.",
        },
        "starts_at": described(_OPTIONAL_TIME, "The start of the window."),
        "added": described(_OPTIONAL_DOLLARS, "What was added to a budget for this window."),
        "reset_at": described(_OPTIONAL_TIME, "When a budget was last reset in this window."),
        "forecast": described(
            _OPTIONAL_DOLLARS,
            "What will have been used of a budget at the end of the window, at the present pace; "
            "null in its first hour.",
        ),
        "exhausted_at": described(
            _OPTIONAL_TIME, "When a budget will be used up at that pace, if before its window ends."
        ),
        "soft_limit_percent": described(
            {"type": ["integer", "null"]}, "The soft limit as a percentage of a budget."
        ),
        "soft_limit_reached": described(
            {"type": ["boolean", "null"]}, "Whether it is reached; null without a soft limit."
        ),
    }
)
_USED = open_object(
    {
        "period": described(STRING, "The day or the month (UTC)."),
        **dict.fromkeys(COUNTS, COUNT),
        "cost": described(STRING, "Decimal US dollars, exact."),
    }
)
_ALLOWED_MODELS = array(open_object({"subject_kind": KIND, "models": array(STRING)}))
USAGE = open_object(
    {
        "object": {"const": "caller_usage", "description": "OpenAI format only."},
        "type": {"const": "caller_usage", "description": "Anthropic format only."},
        "limits": array(LIMIT_USAGE),
        "allowed_models": described(
            _ALLOWED_MODELS,
            "One for each subject that restricts models; all must allow a model.",
        ),
        "usage": open_object({"day": _USED, "month": _USED}),
    },
    optional=["object", "type"],
)


def render(usage: GetUsageResponse, api_format: Format) -> bytes:
    """Return the JSON of a caller's limits and usage."""
    name = "object" if api_format is ApiFormat.OPENAI else "type"
    return orjson.dumps(
        {
            name: "caller_usage",
            "limits": render_limits(usage.limits),
            "allowed_models": [
                {"subject_kind": _kind(one.kind), "models": [*one.allowed_models.patterns]}
                for one in usage.subjects
                if one.HasField("allowed_models")
            ],
            "usage": {"day": _used(usage.day), "month": _used(usage.month)},
        }
    )


def render_limits(limits: Iterable[LimitUsage]) -> list[JsonObject]:
    """Return the JSON objects of the states of limits."""
    return [_limit(one) for one in limits]


def _limit(one: LimitUsage) -> JsonObject:
    is_money = one.measure in SPEND
    amounts: Mapping[str, int] = {
        name: getattr(one, name) for name in ("limit", "used", "reserved", "remaining")
    }
    times_ms = {field.name: value for field, value in one.ListFields()}
    times = {
        name: utc_time(times_ms[f"{name}_ms"]) if f"{name}_ms" in times_ms else None
        for name in ("resets_at", "starts_at", "reset_at", "exhausted_at")
    }
    has_soft_limit = one.HasField("soft_limit_percent")
    return {
        "subject_kind": _kind(one.kind),
        "subject_id": one.id,
        "name": Measure.Name(one.measure).removeprefix("MEASURE_").lower(),
        **{
            name: decimal_dollars(amount) if is_money else amount
            for name, amount in amounts.items()
        },
        **times,
        "added": decimal_dollars(one.added) if is_money else None,
        "forecast": decimal_dollars(one.forecast) if one.HasField("forecast") else None,
        "soft_limit_percent": one.soft_limit_percent if has_soft_limit else None,
        "soft_limit_reached": one.soft_limit_reached if has_soft_limit else None,
    }


def _used(used: UsageSum) -> JsonObject:
    return {
        "period": used.group,
        **{name: getattr(used, name) for name in COUNTS},
        "cost": used.cost_dollars,
    }


def _kind(kind: SubjectKind.ValueType) -> str:
    return SubjectKind.Name(kind).removeprefix("SUBJECT_KIND_").lower()
