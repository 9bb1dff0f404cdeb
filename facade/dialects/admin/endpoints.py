"""The table of endpoints of administration."""

from collections.abc import Sequence
from typing import Any

from facade.dialects.admin import answers, bodies
from facade.dialects.admin.limits import LIMITS
from facade.dialects.admin.providers import PROVIDERS
from facade.dialects.admin.table import Arguments, Endpoint
from facade.dialects.admin.usage import USAGE
from gateway.accounts.v1 import accounts_pb2, admin_pb2
from gateway.accounts.v1.accounts_pb2 import Plan

PREFIX = "/admin/v1"


def _create_key(given: Arguments) -> admin_pb2.CreateKeyRequest:
    body: bodies.CreateKey = given.body
    return admin_pb2.CreateKeyRequest(
        user=body.user,
        team=body.team,
        plan=_plan(body.plan),
        name=body.name,
        expires_at_ms=_ms(body.expires_at),
    )


def _list_keys(given: Arguments) -> admin_pb2.ListKeysRequest:
    return admin_pb2.ListKeysRequest(**_page(given), user=given.query.user, team=given.query.team)


def _update_key(given: Arguments) -> admin_pb2.UpdateKeyRequest:
    body: bodies.UpdateKey = given.body
    request = admin_pb2.UpdateKeyRequest(key_id=given.ids["key_id"])
    if "name" in body.model_fields_set:
        request.name = body.name
    if "enabled" in body.model_fields_set:
        request.disabled = not body.enabled
    if body.expires_at is not None:
        request.expires_at_ms = 1000 * body.expires_at
    elif "expires_at" in body.model_fields_set:
        request.never_expires = True
    return request


def _update_user(given: Arguments) -> admin_pb2.UpdateUserRequest:
    body: bodies.UpdateUser = given.body
    request = admin_pb2.UpdateUserRequest(user_id=given.ids["user_id"], plan=_plan(body.plan))
    if "team" in body.model_fields_set:
        request.team = body.team or ""
    return request


def _list_audit(given: Arguments) -> admin_pb2.ListAuditEntriesRequest:
    query: bodies.AuditQuery = given.query
    return admin_pb2.ListAuditEntriesRequest(
        **_page(given),
        since_ms=_ms(query.since),
        until_ms=_ms(query.until),
        subject_kind=query.subject_kind or "",
        subject_id=query.subject_id or "",
    )


_KEYS: Sequence[Endpoint] = [
    Endpoint(
        method="POST",
        path="/keys",
        operation="createKey",
        summary="Create an API key, and its user and team if they do not exist",
        rpc="CreateKey",
        request=_create_key,
        render=answers.render_created_key,
        answer=answers.CREATED_KEY,
        body=bodies.CreateKey,
    ),
    Endpoint(
        method="GET",
        path="/keys",
        operation="listKeys",
        summary="List API keys, oldest first",
        rpc="ListKeys",
        request=_list_keys,
        render=lambda found: answers.render_list(
            found.api_keys, found.next_page_token, answers.render_key
        ),
        answer=answers.list_schema(answers.KEY),
        query=bodies.KeysQuery,
    ),
    Endpoint(
        method="GET",
        path="/keys/{key_id}",
        operation="getKey",
        summary="Get an API key, without the key itself",
        rpc="GetKey",
        request=lambda given: admin_pb2.GetKeyRequest(**given.ids),
        render=lambda found: answers.render_key(found.api_key),
        answer=answers.KEY,
    ),
    Endpoint(
        method="PATCH",
        path="/keys/{key_id}",
        operation="updateKey",
        summary="Rename, disable or enable an API key, or change its expiration time",
        rpc="UpdateKey",
        request=_update_key,
        render=lambda found: answers.render_key(found.api_key),
        answer=answers.KEY,
        body=bodies.UpdateKey,
    ),
    Endpoint(
        method="POST",
        path="/keys/{key_id}/revoke",
        operation="revokeKey",
        summary="Revoke an API key permanently",
        rpc="RevokeKey",
        request=lambda given: admin_pb2.RevokeKeyRequest(**given.ids),
        render=lambda found: answers.render_key(found.api_key),
        answer=answers.KEY,
        body=bodies.NoFields,
        body_may_be_empty=True,
    ),
    Endpoint(
        method="POST",
        path="/keys/{key_id}/rotate",
        operation="rotateKey",
        summary="Rotate an API key; the old key stays valid for a grace period",
        rpc="RotateKey",
        request=lambda given: admin_pb2.RotateKeyRequest(
            **given.ids, grace_s=given.body.grace_seconds
        ),
        render=answers.render_rotated_key,
        answer=answers.ROTATED_KEY,
        body=bodies.RotateKey,
        body_may_be_empty=True,
    ),
]
_USERS: Sequence[Endpoint] = [
    Endpoint(
        method="POST",
        path="/users",
        operation="createUser",
        summary="Create a user without a key",
        rpc="CreateUser",
        request=lambda given: admin_pb2.CreateUserRequest(
            name=given.body.name, team=given.body.team, plan=_plan(given.body.plan)
        ),
        render=lambda created: answers.render_user(created.user),
        answer=answers.USER,
        body=bodies.CreateUser,
    ),
    Endpoint(
        method="GET",
        path="/users",
        operation="listUsers",
        summary="List users, oldest first",
        rpc="ListUsers",
        request=lambda given: admin_pb2.ListUsersRequest(
            **_page(given), name=given.query.name, team=given.query.team
        ),
        render=lambda found: answers.render_list(
            found.users, found.next_page_token, answers.render_user
        ),
        answer=answers.list_schema(answers.USER),
        query=bodies.UsersQuery,
    ),
    Endpoint(
        method="GET",
        path="/users/{user_id}",
        operation="getUser",
        summary="One user",
        rpc="GetUser",
        request=lambda given: admin_pb2.GetUserRequest(**given.ids),
        render=lambda found: answers.render_user(found.user),
        answer=answers.USER,
    ),
    Endpoint(
        method="PATCH",
        path="/users/{user_id}",
        operation="updateUser",
        summary="Change the team of a user, or the plan of a user without a team",
        rpc="UpdateUser",
        request=_update_user,
        render=lambda found: answers.render_user(found.user),
        answer=answers.USER,
        body=bodies.UpdateUser,
    ),
    Endpoint(
        method="DELETE",
        path="/users/{user_id}",
        operation="deleteUser",
        summary="Delete a user and all its keys; stored data remains but is inaccessible",
        rpc="DeleteUser",
        request=lambda given: admin_pb2.DeleteUserRequest(**given.ids),
        render=answers.render_deleted_user,
        answer=answers.DELETED_USER,
    ),
]
_TEAMS: Sequence[Endpoint] = [
    Endpoint(
        method="POST",
        path="/teams",
        operation="createTeam",
        summary="Create a team",
        rpc="CreateTeam",
        request=lambda given: admin_pb2.CreateTeamRequest(
            name=given.body.name, plan=_plan(given.body.plan)
        ),
        render=lambda created: answers.render_team(created.team),
        answer=answers.TEAM,
        body=bodies.CreateTeam,
    ),
    Endpoint(
        method="GET",
        path="/teams",
        operation="listTeams",
        summary="List teams, oldest first",
        rpc="ListTeams",
        request=lambda given: admin_pb2.ListTeamsRequest(**_page(given), name=given.query.name),
        render=lambda found: answers.render_list(
            found.teams, found.next_page_token, answers.render_team
        ),
        answer=answers.list_schema(answers.TEAM),
        query=bodies.TeamsQuery,
    ),
    Endpoint(
        method="GET",
        path="/teams/{team_id}",
        operation="getTeam",
        summary="One team",
        rpc="GetTeam",
        request=lambda given: admin_pb2.GetTeamRequest(**given.ids),
        render=lambda found: answers.render_team(found.team),
        answer=answers.TEAM,
    ),
    Endpoint(
        method="PATCH",
        path="/teams/{team_id}",
        operation="updateTeam",
        summary="Set the plan of a team",
        rpc="UpdateTeam",
        request=lambda given: admin_pb2.UpdateTeamRequest(**given.ids, plan=_plan(given.body.plan)),
        render=lambda found: answers.render_team(found.team),
        answer=answers.TEAM,
        body=bodies.UpdateTeam,
    ),
    Endpoint(
        method="DELETE",
        path="/teams/{team_id}",
        operation="deleteTeam",
        summary="Delete a team that has no users",
        rpc="DeleteTeam",
        request=lambda given: admin_pb2.DeleteTeamRequest(**given.ids),
        render=lambda deleted: answers.render_deleted("team", deleted.team),
        answer=answers.DELETED_TEAM,
    ),
]
_AUDIT: Sequence[Endpoint] = [
    Endpoint(
        method="GET",
        path="/audit",
        operation="listAuditEntries",
        summary="List the audit log of all changes, newest first",
        rpc="ListAuditEntries",
        request=_list_audit,
        render=lambda found: answers.render_list(
            found.entries, found.next_page_token, answers.render_audit_entry
        ),
        answer=answers.list_schema(answers.AUDIT_ENTRY),
        query=bodies.AuditQuery,
    ),
]
ENDPOINTS: Sequence[Endpoint] = [*_KEYS, *_USERS, *_TEAMS, *LIMITS, *USAGE, PROVIDERS, *_AUDIT]


def _page(given: Arguments) -> dict[str, Any]:
    return {"page_size": given.query.limit, "page_token": given.query.page}


def _plan(name: str | None) -> Plan.ValueType:
    return accounts_pb2.PLAN_UNSPECIFIED if name is None else Plan.Value(f"PLAN_{name.upper()}")


def _ms(at_s: int | None) -> int | None:
    return None if at_s is None else 1000 * at_s
