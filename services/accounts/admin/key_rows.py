"""Rows of keys, with their users and teams; and the parameters of new ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, select

from gateway.accounts.v1 import admin_pb2
from gateway.accounts.v1.admin_pb2 import ApiKey, KeyState
from services.accounts.plans import PLANS
from services.accounts.tables import api_keys, plan_in_force, teams, users


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
        for_sign_in=row["for_sign_in"],
        state=_state(row, now_ms),
    )


def _state(row: Mapping[str, Any], now_ms: int) -> KeyState.ValueType:
    if row["revoked_at_ms"] is not None:
        return admin_pb2.KEY_STATE_REVOKED
    if row["expires_at_ms"] is not None and row["expires_at_ms"] <= now_ms:
        return admin_pb2.KEY_STATE_EXPIRED
    return admin_pb2.KEY_STATE_DISABLED if row["disabled"] else admin_pb2.KEY_STATE_ACTIVE
