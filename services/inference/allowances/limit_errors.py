"""Errors for reached limits: they name the subject, the limit, and when to try again.

Of the caller's key, user, team and end user only the kind is named.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import Measure, SubjectKind
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.limit_windows import SPEND
from services.common.text.texts import quoted
from services.inference.allowances.allowance import Allowance
from services.inference.allowances.leaser import Key

_SUBJECTS: Mapping[SubjectKind.ValueType, str] = {
    limits_pb2.SUBJECT_KIND_KEY: "key",
    limits_pb2.SUBJECT_KIND_USER: "user",
    limits_pb2.SUBJECT_KIND_TEAM: "team",
    limits_pb2.SUBJECT_KIND_PROVIDER: "provider",
    limits_pb2.SUBJECT_KIND_DEPLOYMENT: "deployment",
    limits_pb2.SUBJECT_KIND_TAG: "tag",
    limits_pb2.SUBJECT_KIND_END_USER: "end_user",
}
_SHOWN: Mapping[SubjectKind.ValueType, str] = {
    limits_pb2.SUBJECT_KIND_KEY: "the API key",
    limits_pb2.SUBJECT_KIND_USER: "the user",
    limits_pb2.SUBJECT_KIND_TEAM: "the team",
    limits_pb2.SUBJECT_KIND_PROVIDER: "the provider",
    limits_pb2.SUBJECT_KIND_DEPLOYMENT: "the deployment",
    limits_pb2.SUBJECT_KIND_TAG: "the tag",
    limits_pb2.SUBJECT_KIND_END_USER: "the end user",
}
# Subjects whose id is named too: it is the name that callers or operators have given.
_NAMED = frozenset(
    {
        limits_pb2.SUBJECT_KIND_PROVIDER,
        limits_pb2.SUBJECT_KIND_DEPLOYMENT,
        limits_pb2.SUBJECT_KIND_TAG,
    }
)
_MEASURES: Mapping[Measure.ValueType, tuple[str, str]] = {
    limits_pb2.MEASURE_REQUESTS_PER_MINUTE: ("requests_per_minute", "requests per minute"),
    limits_pb2.MEASURE_TOKENS_PER_MINUTE: ("tokens_per_minute", "tokens per minute"),
    limits_pb2.MEASURE_CONCURRENT_REQUESTS: ("concurrent_requests", "concurrent requests"),
    limits_pb2.MEASURE_SPEND_PER_DAY: ("spend_per_day", "a day"),
    limits_pb2.MEASURE_SPEND_PER_WEEK: ("spend_per_week", "a week"),
    limits_pb2.MEASURE_SPEND_PER_MONTH: ("spend_per_month", "a month"),
    limits_pb2.MEASURE_SPEND_PER_PERIOD: ("spend_per_period", "a period"),
}
_PUSD = 10**12


def limit_reached(key: Key, allowance: Allowance, now_ms: int) -> GatewayError:
    """Return the error for a request that needs more than remains in the window.

    If requests in progress have reserved what remains, the next one may pass once they have ended.
    """
    kind, measure = key.kind, key.measure
    shown = f"{_SHOWN[kind]} {key.subject_id}" if kind in _NAMED else _SHOWN[kind]
    name, unit = _MEASURES[measure]
    limit_name = f"{_SUBJECTS[kind]}.{name}"
    limit, end_ms = allowance.limit, allowance.window.end_ms
    is_spent = allowance.is_spent and not allowance.is_slots
    wait_s = seconds_to_wait(allowance, now_ms)
    if measure in SPEND and is_spent and not allowance.window.has_end:
        return GatewayError(
            errors_pb2.REASON_BUDGET_EXCEEDED,
            f"{shown} has spent its budget of {dollars(limit)} US dollars, and no other one "
            "follows; ask the operator to raise it",
            limit=limit_name,
        )
    if measure in SPEND and is_spent:
        until = datetime.fromtimestamp(end_ms // 1000, UTC).strftime("%Y-%m-%d at %H:%M UTC")
        return GatewayError(
            errors_pb2.REASON_BUDGET_EXCEEDED,
            f"{shown} has spent its budget of {dollars(limit)} US dollars {unit}; the next "
            f"budget starts on {until}",
            retry_after_s=wait_s,
            limit=limit_name,
        )
    reached = f"the limit of {shown}, {limit:,} {unit}, "
    if measure in SPEND:
        reached = f"the budget of {shown}, {dollars(limit)} US dollars {unit}, "
    if not (is_spent or allowance.is_slots):
        message = f"{reached}is reserved by requests in progress; try again in {wait_s} s"
    else:
        message = f"{reached}is reached; try again in {wait_s} s"
    return GatewayError(
        errors_pb2.REASON_RATE_LIMITED, message, retry_after_s=wait_s, limit=limit_name
    )


def seconds_to_wait(allowance: Allowance, now_ms: int) -> int:
    """Return after how many seconds a request may pass again that needs more than remains."""
    if allowance.is_slots or not allowance.is_spent:
        return 1
    return max(1, -(-(allowance.window.end_ms - now_ms) // 1000))


def model_refused(path: str, name: str, kind: SubjectKind.ValueType) -> GatewayError:
    """Return the error for a model that a subject may not use, whether or not it exists."""
    return GatewayError(
        errors_pb2.REASON_PERMISSION_DENIED,
        f"{path}: {_SHOWN[kind]} may not use the model {quoted(name)}; GET /v1/models lists "
        "the available models",
        param=path,
        limit=f"{_SUBJECTS[kind]}.allowed_models",
    )


def dollars(pusd: int) -> str:
    """Format an amount of 10^-12 US dollars in dollars, without trailing zeros."""
    whole_dollars, fraction = divmod(pusd, _PUSD)
    return f"{whole_dollars:,}.{fraction:012}".rstrip("0").rstrip(".")
