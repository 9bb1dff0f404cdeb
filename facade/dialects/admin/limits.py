"""The endpoints of limits: GET, PUT and DELETE for each kind of subject."""

from collections.abc import Iterator, Sequence
from functools import partial

from facade.dialects.admin import answers, bodies
from facade.dialects.admin.table import Arguments, Endpoint, JsonObject
from facade.dialects.caller_usage import render_limits
from gateway.accounts.v1 import admin_pb2, limits_pb2
from gateway.accounts.v1.limits_pb2 import ModelPatterns, SubjectKind, SubjectLimits
from services.common.money import parse_dollars

_KINDS = {
    "key": limits_pb2.SUBJECT_KIND_KEY,
    "user": limits_pb2.SUBJECT_KIND_USER,
    "team": limits_pb2.SUBJECT_KIND_TEAM,
}


def _subject(kind: str, given: Arguments) -> tuple[SubjectKind.ValueType, str]:
    return _KINDS[kind], given.ids[f"{kind}_id"]


def _get(kind: str, given: Arguments) -> admin_pb2.GetLimitsRequest:
    number, subject_id = _subject(kind, given)
    return admin_pb2.GetLimitsRequest(kind=number, id=subject_id)


def _set(kind: str, given: Arguments) -> admin_pb2.SetLimitsRequest:
    number, subject_id = _subject(kind, given)
    body: bodies.SetLimits = given.body
    models = body.allowed_models
    limits = SubjectLimits(
        kind=number,
        id=subject_id,
        requests_per_minute=body.requests_per_minute,
        tokens_per_minute=body.tokens_per_minute,
        concurrent_requests=body.concurrent_requests,
        spend_per_day_pusd=_pusd(body.spend_per_day),
        spend_per_month_pusd=_pusd(body.spend_per_month),
        allowed_models=None if models is None else ModelPatterns(patterns=models),
    )
    return admin_pb2.SetLimitsRequest(limits=limits)


def _clear(kind: str, given: Arguments) -> admin_pb2.ClearLimitsRequest:
    number, subject_id = _subject(kind, given)
    return admin_pb2.ClearLimitsRequest(kind=number, id=subject_id)


def _render(found: admin_pb2.SetLimitsResponse) -> JsonObject:
    return answers.render_limits(found.limits)


def _render_with_usage(found: admin_pb2.GetLimitsResponse) -> JsonObject:
    return {**answers.render_limits(found.limits), "usage": render_limits(found.usage)}


def _render_cleared(_: admin_pb2.ClearLimitsResponse) -> JsonObject:
    return {"object": "limits", "deleted": True}


def _pusd(dollars: str | None) -> int | None:
    return None if dollars is None else parse_dollars(dollars)


def _endpoints(kind: str) -> Iterator[Endpoint]:
    path = f"/{kind}s/{{{kind}_id}}/limits"
    name = f"{kind.capitalize()}Limits"
    yield Endpoint(
        method="GET",
        path=path,
        operation=f"get{name}",
        summary=f"Get the limits of a {kind}",
        rpc="GetLimits",
        request=partial(_get, kind),
        render=_render_with_usage,
        answer=answers.LIMITS_WITH_USAGE,
    )
    yield Endpoint(
        method="PUT",
        path=path,
        operation=f"set{name}",
        summary=f"Replace the limits of a {kind}",
        rpc="SetLimits",
        request=partial(_set, kind),
        render=_render,
        answer=answers.LIMITS,
        body=bodies.SetLimits,
    )
    yield Endpoint(
        method="DELETE",
        path=path,
        operation=f"clear{name}",
        summary=f"Remove the limits of a {kind}",
        rpc="ClearLimits",
        request=partial(_clear, kind),
        render=_render_cleared,
        answer=answers.object_schema("limits", {"deleted": {"const": True}}),
    )


LIMITS: Sequence[Endpoint] = [endpoint for kind in _KINDS for endpoint in _endpoints(kind)]
