"""Requests about keys, users, teams and the audit log."""

from typing import Any

from facade.dialects.admin import bodies
from facade.dialects.admin.arguments import Arguments
from gateway.accounts.v1 import accounts_pb2, admin_pb2, sessions_pb2
from gateway.accounts.v1.accounts_pb2 import Plan
from gateway.accounts.v1.sessions_pb2 import Role


def create_key(arguments: Arguments) -> admin_pb2.CreateKeyRequest:
    """Return the request that creates a key."""
    body: bodies.CreateKey = arguments.body
    return admin_pb2.CreateKeyRequest(
        user=body.user,
        team=body.team,
        plan=plan(body.plan),
        name=body.name,
        expires_at_ms=to_ms(body.expires_at),
    )


def list_keys(arguments: Arguments) -> admin_pb2.ListKeysRequest:
    """Return the request for a list of keys."""
    return admin_pb2.ListKeysRequest(
        **page(arguments), user=arguments.query.user, team=arguments.query.team
    )


def update_key(arguments: Arguments) -> admin_pb2.UpdateKeyRequest:
    """Return the request that changes a key."""
    body: bodies.UpdateKey = arguments.body
    request = admin_pb2.UpdateKeyRequest(key_id=arguments.ids["key_id"])
    if "name" in body.model_fields_set:
        request.name = body.name
    if "enabled" in body.model_fields_set:
        request.disabled = not body.enabled
    if body.expires_at is not None:
        request.expires_at_ms = 1000 * body.expires_at
    elif "expires_at" in body.model_fields_set:
        request.never_expires = True
    return request


def update_user(arguments: Arguments) -> admin_pb2.UpdateUserRequest:
    """Return the request that changes a user."""
    body: bodies.UpdateUser = arguments.body
    request = admin_pb2.UpdateUserRequest(user_id=arguments.ids["user_id"], plan=plan(body.plan))
    if "team" in body.model_fields_set:
        request.team = body.team or ""
    if "role" in body.model_fields_set:
        request.role = role(body.role)
    return request


def list_audit(arguments: Arguments) -> admin_pb2.ListAuditEntriesRequest:
    """Return the request for a list of audit entries."""
    query: bodies.AuditQuery = arguments.query
    return admin_pb2.ListAuditEntriesRequest(
        **page(arguments),
        since_ms=to_ms(query.since),
        until_ms=to_ms(query.until),
        subject_kind=query.subject_kind or "",
        subject_id=query.subject_id or "",
    )


def page(arguments: Arguments) -> dict[str, Any]:
    """Return the fields of a request for a page of a list."""
    return {"page_size": arguments.query.limit, "page_token": arguments.query.page}


def plan(name: str | None) -> Plan.ValueType:
    """Return the value of a plan; unspecified for None."""
    return accounts_pb2.PLAN_UNSPECIFIED if name is None else Plan.Value(f"PLAN_{name.upper()}")


def role(name: str | None) -> Role.ValueType:
    """Return the value of a role; unspecified for None."""
    return sessions_pb2.ROLE_UNSPECIFIED if name is None else Role.Value(f"ROLE_{name.upper()}")


def to_ms(at_s: int | None) -> int | None:
    """Return a time in Unix milliseconds, None for None."""
    return None if at_s is None else 1000 * at_s
