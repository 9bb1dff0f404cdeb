"""JSON objects of keys, users, teams, limits and audit entries, with their JSON schemas."""

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, get_args

from facade.dialects.admin.bodies import EPOCH, Kind, PlanName, RoleName
from facade.dialects.caller_usage import KIND, LIMIT_USAGE
from facade.dialects.json_schemas import JsonObject
from gateway.accounts.v1 import admin_pb2
from gateway.accounts.v1.accounts_pb2 import Plan
from gateway.accounts.v1.admin_pb2 import ApiKey, AuditEntry, Erasure, KeyState, Team, User
from gateway.accounts.v1.limits_pb2 import SubjectKind, SubjectLimits
from gateway.accounts.v1.sessions_pb2 import Role
from services.common.money import decimal_dollars

_STRING = {"type": "string"}
_OPTIONAL_STRING = {"type": ["string", "null"]}
_TIME = {"type": "integer", "description": "Unix seconds."}
_OPTIONAL_TIME = {"type": ["integer", "null"], "description": "Unix seconds, or null."}
_OPTIONAL_OBJECT = {"type": ["object", "null"]}
_PLAN = {"enum": list(get_args(PlanName))}


def object_schema(kind: str, properties: JsonObject) -> JsonObject:
    """Return the schema of an object with a fixed `object` value and only required properties."""
    named = {"object": {"const": kind}, **properties}
    return {
        "type": "object",
        "required": list(named),
        "additionalProperties": False,
        "properties": named,
    }


def list_schema(item: JsonObject) -> JsonObject:
    """Return the schema of a page of a list."""
    return object_schema(
        "list",
        {
            "data": {"type": "array", "items": item},
            "first_id": _OPTIONAL_STRING,
            "last_id": _OPTIONAL_STRING,
            "has_more": {"type": "boolean"},
            "next_page": _OPTIONAL_STRING,
        },
    )


def render_list(
    items: Sequence[Any], next_page: str, render: Callable[[Any], JsonObject]
) -> JsonObject:
    """Return the JSON object of a page of a list."""
    data = [render(item) for item in items]
    return {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": bool(next_page),
        "next_page": next_page or None,
    }


_KEY_FIELDS: JsonObject = {
    "id": _STRING,
    "prefix": {"type": "string", "description": "First characters of the key."},
    "name": _STRING,
    "user": _STRING,
    "user_id": _STRING,
    "team": _OPTIONAL_STRING,
    "team_id": _OPTIONAL_STRING,
    "plan": _PLAN,
    "state": {"enum": ["active", "disabled", "expired", "revoked"]},
    "enabled": {"type": "boolean"},
    "created_at": _TIME,
    "expires_at": _OPTIONAL_TIME,
    "revoked_at": _OPTIONAL_TIME,
    "replaces": {
        "type": ["string", "null"],
        "description": "Id of the key that this key replaced in a rotation, or null.",
    },
    "for_sign_in": {
        "type": "boolean",
        "description": "Whether a sign-in with the key has the role of its user; with another key "
        "it is at most `user`.",
    },
}
KEY = object_schema("api_key", _KEY_FIELDS)
_WHOLE_KEY = {"key": {"type": "string", "description": "The key itself; returned only once."}}
CREATED_KEY = object_schema("api_key", {**_KEY_FIELDS, **_WHOLE_KEY})
ROTATED_KEY = object_schema("api_key", {**_KEY_FIELDS, **_WHOLE_KEY, "replaced": KEY})
USER = object_schema(
    "user",
    {
        "id": _STRING,
        "name": _STRING,
        "team": _OPTIONAL_STRING,
        "team_id": _OPTIONAL_STRING,
        "plan": {
            **_PLAN,
            "description": "Effective plan: the team's plan if the user is in a team.",
        },
        "role": {
            "enum": [*get_args(RoleName), None],
            "description": "The role that an administrator or an invitation has set, or null.",
        },
        "created_at": _TIME,
    },
)
TEAM = object_schema(
    "team",
    {
        "id": _STRING,
        "name": _STRING,
        "plan": _PLAN,
        "users": {"type": "integer", "minimum": 0},
        "created_at": _TIME,
    },
)
_DELETED = {"id": _STRING, "name": _STRING, "deleted": {"const": True}}
DELETED_USER = object_schema(
    "user",
    {
        **_DELETED,
        "key_ids": {
            "type": "array",
            "items": _STRING,
            "description": "Ids of the deleted keys, oldest first.",
        },
    },
)
_REMOVED = {
    "type": "object",
    "required": ["items", "bytes"],
    "additionalProperties": False,
    "properties": {
        "items": {"type": "integer", "minimum": 1},
        "bytes": {"type": "integer", "minimum": 0, "description": "0 for kinds without a size."},
    },
}
ERASURE = object_schema(
    "erasure",
    {
        "user_id": _STRING,
        "state": {"enum": ["in_progress", "finished"]},
        "requested_at": _TIME,
        "finished_at": _OPTIONAL_TIME,
        "removed": {
            "type": "object",
            "additionalProperties": _REMOVED,
            "description": "By kind, such as `files`; kinds of which there was nothing are absent.",
        },
    },
)
DELETED_TEAM = object_schema("team", _DELETED)
_OPTIONAL_INTEGER = {"type": ["integer", "null"]}
_OPTIONAL_DOLLARS = {"type": ["string", "null"], "description": "Decimal US dollars, or null."}
_LIMIT_FIELDS: JsonObject = {
    "subject_kind": KIND,
    "subject_id": _STRING,
    "requests_per_minute": _OPTIONAL_INTEGER,
    "tokens_per_minute": _OPTIONAL_INTEGER,
    "concurrent_requests": _OPTIONAL_INTEGER,
    "spend_per_day": _OPTIONAL_DOLLARS,
    "spend_per_week": _OPTIONAL_DOLLARS,
    "spend_per_month": _OPTIONAL_DOLLARS,
    "spend_per_period": _OPTIONAL_DOLLARS,
    "period_start": {"type": ["string", "null"], "format": "date"},
    "period_days": _OPTIONAL_INTEGER,
    "soft_limit_percent": _OPTIONAL_INTEGER,
    "allowed_models": {"type": ["array", "null"], "items": _STRING},
    "allowed_model_groups": {"type": "array", "items": _STRING},
}
LIMITS = object_schema("limits", _LIMIT_FIELDS)
LIMITS_WITH_USAGE = object_schema(
    "limits", {**_LIMIT_FIELDS, "usage": {"type": "array", "items": LIMIT_USAGE}}
)
BUDGET = object_schema("budget", LIMIT_USAGE["properties"])
AUDIT_ENTRY = object_schema(
    "audit_entry",
    {
        "id": _STRING,
        "at": {"type": "number", "description": "Unix seconds, with millisecond precision."},
        "actor": {
            "type": "string",
            "description": "Id of an admin key, or, for example, `command line`.",
        },
        "actor_name": {
            "type": ["string", "null"],
            "description": "Name of the admin key, if it has one.",
        },
        "address": {
            "type": ["string", "null"],
            "description": "Network address of the caller; null on the command line.",
        },
        "action": _STRING,
        "subject_kind": {"enum": [*get_args(Kind)]},
        "subject_id": _STRING,
        "before": {
            **_OPTIONAL_OBJECT,
            "description": "State before the change; null if the subject was created.",
        },
        "after": {
            **_OPTIONAL_OBJECT,
            "description": "State after the change; null if the subject was deleted.",
        },
        "request_id": _OPTIONAL_STRING,
    },
)


def render_key(key: ApiKey) -> JsonObject:
    """Return the JSON object of a key, without the key itself."""
    return {
        "object": "api_key",
        "id": key.id,
        "prefix": key.prefix,
        "name": key.name,
        "user": key.user,
        "user_id": key.user_id,
        "team": key.team or None,
        "team_id": key.team_id or None,
        "plan": plan_name(key.plan),
        "state": KeyState.Name(key.state).removeprefix("KEY_STATE_").lower(),
        "enabled": not key.disabled,
        "created_at": key.created_at_ms // 1000,
        "expires_at": key.expires_at_ms // 1000 if key.HasField("expires_at_ms") else None,
        "revoked_at": key.revoked_at_ms // 1000 if key.HasField("revoked_at_ms") else None,
        "replaces": key.replaces or None,
        "for_sign_in": key.for_sign_in,
    }


def render_created_key(created: admin_pb2.CreateKeyResponse) -> JsonObject:
    """Return the JSON object of a new key, with the key itself."""
    return {**render_key(created.api_key), "key": created.key}


def render_rotated_key(rotated: admin_pb2.RotateKeyResponse) -> JsonObject:
    """Return the JSON object of a new key with the key itself, and that of the old key."""
    return {
        **render_key(rotated.api_key),
        "key": rotated.key,
        "replaced": render_key(rotated.replaced),
    }


def render_user(user: User) -> JsonObject:
    """Return the JSON object of a user."""
    return {
        "object": "user",
        "id": user.id,
        "name": user.name,
        "team": user.team or None,
        "team_id": user.team_id or None,
        "plan": plan_name(user.plan),
        "role": role_name(user.role),
        "created_at": user.created_at_ms // 1000,
    }


def render_deleted(kind: str, deleted: User | Team) -> JsonObject:
    """Return the JSON object of a deleted user or team."""
    return {"object": kind, "id": deleted.id, "name": deleted.name, "deleted": True}


def render_deleted_user(deleted: admin_pb2.DeleteUserResponse) -> JsonObject:
    """Return the JSON object of a deleted user, with the ids of the deleted keys."""
    return {**render_deleted("user", deleted.user), "key_ids": list(deleted.key_ids)}


def render_erasure(erasure: Erasure) -> JsonObject:
    """Return the JSON object of an erasure."""
    is_finished = erasure.HasField("finished_at_ms")
    return {
        "object": "erasure",
        "user_id": erasure.user_id,
        "state": "finished" if is_finished else "in_progress",
        "requested_at": erasure.requested_at_ms // 1000,
        "finished_at": erasure.finished_at_ms // 1000 if is_finished else None,
        "removed": {
            one.kind: {"items": one.items, "bytes": one.size_bytes} for one in erasure.erased
        },
    }


def render_team(team: Team) -> JsonObject:
    """Return the JSON object of a team."""
    return {
        "object": "team",
        "id": team.id,
        "name": team.name,
        "plan": plan_name(team.plan),
        "users": team.users,
        "created_at": team.created_at_ms // 1000,
    }


def render_limits(limits: SubjectLimits) -> JsonObject:
    """Return the JSON object of the limits of a key, user or team; null is unlimited."""
    set_limits = {field.name: value for field, value in limits.ListFields()}
    models = set_limits.get("allowed_models")
    return {
        "object": "limits",
        "subject_kind": SubjectKind.Name(limits.kind).removeprefix("SUBJECT_KIND_").lower(),
        "subject_id": limits.id,
        "requests_per_minute": set_limits.get("requests_per_minute"),
        "tokens_per_minute": set_limits.get("tokens_per_minute"),
        "concurrent_requests": set_limits.get("concurrent_requests"),
        "spend_per_day": _dollars(set_limits.get("spend_per_day_pusd")),
        "spend_per_week": _dollars(set_limits.get("spend_per_week_pusd")),
        "spend_per_month": _dollars(set_limits.get("spend_per_month_pusd")),
        "spend_per_period": _dollars(set_limits.get("spend_per_period_pusd")),
        "period_start": _date(set_limits.get("period_start_day")),
        "period_days": set_limits.get("period_days"),
        "soft_limit_percent": set_limits.get("soft_limit_percent"),
        "allowed_models": None if models is None else [*models.patterns],
        "allowed_model_groups": [*limits.allowed_model_groups],
    }


def render_audit_entry(entry: AuditEntry) -> JsonObject:
    """Return the JSON object of an entry of the audit log."""
    return {
        "object": "audit_entry",
        "id": entry.id,
        "at": entry.at_ms / 1000,
        "actor": entry.actor,
        "actor_name": entry.actor_name or None,
        "address": entry.address or None,
        "action": entry.action,
        "subject_kind": entry.subject_kind,
        "subject_id": entry.subject_id,
        "before": json.loads(entry.before) if entry.before else None,
        "after": json.loads(entry.after) if entry.after else None,
        "request_id": entry.request_id or None,
    }


def plan_name(plan: Plan.ValueType) -> str:
    """Return the name of a plan, such as `team_pro`."""
    return Plan.Name(plan).removeprefix("PLAN_").lower()


def role_name(role: Role.ValueType) -> str | None:
    """Return the name of a role, such as `team_admin`, or None."""
    return Role.Name(role).removeprefix("ROLE_").lower() if role else None


def _date(day: int | None) -> str | None:
    """Return a day, in days since 1970-01-01, as a date."""
    return None if day is None else (EPOCH + timedelta(days=day)).isoformat()


def _dollars(pusd: int | None) -> str | None:
    return None if pusd is None else decimal_dollars(pusd)
