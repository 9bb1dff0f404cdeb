"""Rows of keys within a transaction: look-up and insertion."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.accounts.v1 import admin_pb2
from gateway.accounts.v1.admin_pb2 import ApiKey, KeyState
from gateway.errors.v1 import errors_pb2
from services.accounts.admin.audit import Actor, Subject, record
from services.accounts.admin.records import to_record
from services.accounts.keys import hash_key, shown_part
from services.accounts.membership import ensure_user
from services.accounts.names import is_id
from services.accounts.plans import PLANS
from services.accounts.tables import api_keys, plan_in_force, teams, users
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.ids import IdGenerator


@dataclass(frozen=True, slots=True)
class NewKey:
    """Parameters of a key to create.

    Attributes:
        user: name of the user, who is created if necessary.
        team: name of the user's team, which is created if necessary. None: no team for a new user,
            any team for an existing one.
        plan: plan of a new team or, without a team, of a new user. None: `personal_free` for new
            ones, any plan for existing ones.
        name: display name.
        expires_at_ms: expiry in Unix milliseconds, or None for never.
    """

    user: str
    team: str | None = None
    plan: str | None = None
    name: str = ""
    expires_at_ms: int | None = None


def select_keys() -> Select[Any]:
    """Return a query for keys with their users and teams, whose rows `to_api_key` converts."""
    return select(
        api_keys,
        users.c.name.label("user"),
        users.c.team_id,
        teams.c.name.label("team"),
        plan_in_force.label("plan"),
    ).select_from(api_keys.join(users).outerjoin(teams))


def to_api_key(row: Mapping[str, Any], now_ms: int) -> ApiKey:
    """Return the key of a row of `select_keys`."""
    return ApiKey(
        id=row["id"],
        prefix=row["prefix"],
        name=row["name"],
        user_id=row["user_id"],
        user=row["user"],
        team_id=row["team_id"] or "",
        team=row["team"] or "",
        plan=PLANS[row["plan"]],
        created_at_ms=row["created_at_ms"],
        expires_at_ms=row["expires_at_ms"],
        revoked_at_ms=row["revoked_at_ms"],
        disabled=row["disabled"],
        replaces=row["replaces"] or "",
        state=_state(row, now_ms),
    )


async def find_key(connection: AsyncConnection, key_id: str, now_ms: int) -> ApiKey:
    """Return a key.

    Raises:
        GatewayError: not_found.
    """
    row = None
    if is_id(key_id):
        found = await connection.execute(select_keys().where(api_keys.c.id == key_id))
        row = found.one_or_none()
    if row is None:
        raise GatewayError(errors_pb2.REASON_NOT_FOUND, "key_id: no such key", param="key_id")
    return to_api_key(row._mapping, now_ms)


async def insert_key(
    connection: AsyncConnection,
    clock: Clock,
    new_id: IdGenerator,
    key: str,
    new: NewKey,
    actor: Actor,
) -> ApiKey:
    """Insert a key with its user and team, and the entry of the audit log.

    Raises:
        GatewayError: invalid_request, as `ensure_user`.
    """
    user_id = await ensure_user(connection, clock, new_id, new.user, new.team, new.plan)
    key_id = await insert_row(
        connection,
        clock,
        new_id,
        key,
        user_id=user_id,
        name=new.name,
        expires_at_ms=new.expires_at_ms,
    )
    added = await find_key(connection, key_id, clock.now_ms())
    await record(
        connection,
        clock,
        new_id,
        actor,
        "key.create",
        Subject("key", key_id),
        after=to_record(added),
    )
    return added


async def insert_row(
    connection: AsyncConnection, clock: Clock, new_id: IdGenerator, key: str, **values: object
) -> str:
    """Insert the row of a key; return its id."""
    key_id = new_id("key_")
    await connection.execute(
        insert(api_keys).values(
            id=key_id,
            hash=hash_key(key),
            prefix=shown_part(key),
            created_at_ms=clock.now_ms(),
            **values,
        )
    )
    return key_id


def _state(row: Mapping[str, Any], now_ms: int) -> KeyState.ValueType:
    if row["revoked_at_ms"] is not None:
        return admin_pb2.KEY_STATE_REVOKED
    if row["expires_at_ms"] is not None and row["expires_at_ms"] <= now_ms:
        return admin_pb2.KEY_STATE_EXPIRED
    return admin_pb2.KEY_STATE_DISABLED if row["disabled"] else admin_pb2.KEY_STATE_ACTIVE
