"""Requests about limits, and the JSON of the answers."""

from datetime import date
from typing import Final

from facade.dialects.admin import answers, bodies
from facade.dialects.admin.arguments import Arguments
from facade.dialects.caller_usage import render_limits
from facade.dialects.json_schemas import JsonObject
from gateway.accounts.v1 import admin_pb2, limits_pb2
from gateway.accounts.v1.limits_pb2 import ModelPatterns, SubjectKind, SubjectLimits
from services.common.errors import invalid
from services.common.limit_windows import MEASURES
from services.common.money import parse_dollars

_KINDS = {
    "key": limits_pb2.SUBJECT_KIND_KEY,
    "user": limits_pb2.SUBJECT_KIND_USER,
    "team": limits_pb2.SUBJECT_KIND_TEAM,
    "tag": limits_pb2.SUBJECT_KIND_TAG,
    "end_user": limits_pb2.SUBJECT_KIND_END_USER,
    "end_users": limits_pb2.SUBJECT_KIND_END_USERS,
}
_NAMES = {number: name for name, number in _KINDS.items()}
_SUBJECT: JsonObject = {
    "id": {"type": "string", "description": "Kind and id of the subject; orders the list."},
    "subject_kind": {"enum": [*_KINDS]},
    "subject_id": {
        "type": "string",
        "description": "As in the paths of limits; of a tag `project=alpha`, of an end user "
        "`USER_ID/END_USER`.",
    },
    "subject_name": {
        "type": ["string", "null"],
        "description": "The name of the user, team or key, the tag, or the end user; null if there "
        "is no such subject any more.",
    },
}
_PROPERTIES = {**answers.LIMITS_WITH_USAGE["properties"], **_SUBJECT}
LIMITED_SUBJECT: JsonObject = {
    **answers.LIMITS_WITH_USAGE,
    "required": list(_PROPERTIES),
    "properties": _PROPERTIES,
}
CLEARED: Final = answers.object_schema("limits", {"deleted": {"const": True}})


def _subject(kind: str, arguments: Arguments) -> tuple[SubjectKind.ValueType, str]:
    ids = arguments.ids
    if kind == "tag":
        subject_id = f"{ids['tag']}={ids['value']}"
    elif kind == "end_user":
        subject_id = f"{ids['user_id']}/{ids['end_user']}"
    else:
        subject_id = ids["user_id" if kind == "end_users" else f"{kind}_id"]
    return _KINDS[kind], subject_id


def get_request(kind: str, arguments: Arguments) -> admin_pb2.GetLimitsRequest:
    """Return the request for the limits of a subject."""
    number, subject_id = _subject(kind, arguments)
    return admin_pb2.GetLimitsRequest(kind=number, id=subject_id)


def list_request(arguments: Arguments) -> admin_pb2.ListLimitsRequest:
    """Return the request for a list of limits."""
    query: bodies.LimitsQuery = arguments.query
    return admin_pb2.ListLimitsRequest(page_size=query.limit, page_token=query.page)


def render_subject(subject: admin_pb2.LimitedSubject) -> JsonObject:
    """Return the JSON object of the limits of a subject of a list."""
    kind, subject_id = _NAMES[subject.limits.kind], subject.limits.id
    return {
        **answers.render_limits(subject.limits),
        "usage": render_limits(subject.usage),
        "id": f"{kind}/{subject_id}",
        "subject_kind": kind,
        "subject_id": subject_id,
        "subject_name": subject.name or None,
    }


def set_request(kind: str, arguments: Arguments) -> admin_pb2.SetLimitsRequest:
    """Return the request that replaces the limits of a subject."""
    number, subject_id = _subject(kind, arguments)
    body: bodies.SetLimits = arguments.body
    models = body.allowed_models
    limits = SubjectLimits(
        kind=number,
        id=subject_id,
        requests_per_minute=body.requests_per_minute,
        tokens_per_minute=body.tokens_per_minute,
        concurrent_requests=body.concurrent_requests,
        spend_per_day_pusd=_pusd(body.spend_per_day),
        spend_per_week_pusd=_pusd(body.spend_per_week),
        spend_per_month_pusd=_pusd(body.spend_per_month),
        spend_per_period_pusd=_pusd(body.spend_per_period),
        period_start_day=_day(body.period_start),
        period_days=body.period_days,
        soft_limit_percent=body.soft_limit_percent,
        allowed_models=None if models is None else ModelPatterns(patterns=models),
        allowed_model_groups=body.allowed_model_groups,
    )
    return admin_pb2.SetLimitsRequest(limits=limits)


def clear_request(kind: str, arguments: Arguments) -> admin_pb2.ClearLimitsRequest:
    """Return the request that removes the limits of a subject."""
    number, subject_id = _subject(kind, arguments)
    return admin_pb2.ClearLimitsRequest(kind=number, id=subject_id)


def reset_request(kind: str, arguments: Arguments) -> admin_pb2.ResetBudgetRequest:
    """Return the request that resets a budget."""
    number, subject_id = _subject(kind, arguments)
    measure = MEASURES[f"{arguments.body.name}_pusd"]
    return admin_pb2.ResetBudgetRequest(kind=number, id=subject_id, measure=measure)


def top_up_request(kind: str, arguments: Arguments) -> admin_pb2.TopUpBudgetRequest:
    """Return the request that tops up a budget."""
    number, subject_id = _subject(kind, arguments)
    return admin_pb2.TopUpBudgetRequest(
        kind=number,
        id=subject_id,
        measure=MEASURES[f"{arguments.body.name}_pusd"],
        amount_pusd=parse_dollars(arguments.body.amount),
    )


def render_budget(
    response: admin_pb2.ResetBudgetResponse | admin_pb2.TopUpBudgetResponse,
) -> JsonObject:
    """Return the JSON object of the state of a budget."""
    [usage] = render_limits([response.usage])
    return {"object": "budget", **usage}


def render(response: admin_pb2.SetLimitsResponse) -> JsonObject:
    """Return the JSON object of limits."""
    return answers.render_limits(response.limits)


def render_with_usage(response: admin_pb2.GetLimitsResponse) -> JsonObject:
    """Return the JSON object of limits and their usage."""
    return {**answers.render_limits(response.limits), "usage": render_limits(response.usage)}


def render_cleared(_: admin_pb2.ClearLimitsResponse) -> JsonObject:
    """Return the JSON object of removed limits."""
    return {"object": "limits", "deleted": True}


def _day(text: str | None) -> int | None:
    """Return a date in days since 1970-01-01.

    Raises:
        GatewayError: invalid_request, when there is no such date.
    """
    if text is None:
        return None
    try:
        return (date.fromisoformat(text) - bodies.EPOCH).days
    except ValueError:
        raise invalid("period_start", "period_start: must be a date such as 2026-11-23") from None


def _pusd(dollars: str | None) -> int | None:
    return None if dollars is None else parse_dollars(dollars)
