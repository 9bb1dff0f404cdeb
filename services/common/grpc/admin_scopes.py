"""Scopes of admin keys: the methods that each of them permits."""

from collections.abc import Iterable

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, permission_denied
from services.common.grpc.roles import ADMIN

READ = "read"
USERS = "users"
MONEY = "money"
# Permits every method.
ALL = "all"
SCOPES = (READ, USERS, MONEY, ALL)
EVERYTHING = frozenset((ALL,))
# Of administrators of a team: its keys, users and invitations. Admin keys cannot have it.
TEAM = "team"
OF_TEAM = frozenset((TEAM,))

# Methods whose names begin so change nothing.
_READING = ("Get", "List", "Report")
# Any admin key may check itself.
_CHECK = "CheckAdminKey"
# The scopes of the methods that change something; all others require `ALL`.
_CHANGING = {
    "CreateKey": USERS,
    "UpdateKey": USERS,
    "RevokeKey": USERS,
    "RotateKey": USERS,
    "CreateUser": USERS,
    "UpdateUser": USERS,
    "DeleteUser": USERS,
    "EraseUser": USERS,
    "CreateTeam": USERS,
    "UpdateTeam": USERS,
    "DeleteTeam": USERS,
    "CreateInvitation": USERS,
    "RevokeInvitation": USERS,
    "SetLimits": MONEY,
    "ClearLimits": MONEY,
    "ResetBudget": MONEY,
    "TopUpBudget": MONEY,
    "SetModelGroup": MONEY,
    "DeleteModelGroup": MONEY,
}

_OF_TEAM = frozenset(
    {
        *("ListKeys", "GetKey", "CreateKey", "UpdateKey", "RevokeKey", "RotateKey"),
        *("ListUsers", "GetUser", "GetTeam"),
        *("ListInvitations", "CreateInvitation", "RevokeInvitation"),
    }
)


def check_grant(scopes: Iterable[str], role: str) -> None:
    """Raise an error unless an administrator may give a role, or change what has it.

    Args:
        scopes: the scopes of the administrator.
        role: one of `roles.ROLES`, or "".

    Raises:
        GatewayError: permission_denied.
    """
    if role == ADMIN and ALL not in scopes:
        raise permission_denied(
            "the role admin is above yours: only administrators with the scope 'all' may give or "
            "change it"
        )


def check_scope(scopes: Iterable[str], method: str) -> None:
    """Raise an error unless one of an admin key's scopes permits a method.

    Args:
        scopes: the scopes of the key.
        method: full name of the method, `/package.Service/Method`.

    Raises:
        GatewayError: permission_denied, naming the scope that is missing.
    """
    name = method.rpartition("/")[2]
    required = READ if name.startswith(_READING) else _CHANGING.get(name, ALL)
    if ALL in scopes or required in scopes or name == _CHECK:
        return
    if TEAM in scopes:
        if name in _OF_TEAM:
            return
        raise permission_denied(
            "your role is team_admin, which permits the keys, users and invitations of your team "
            "alone"
        )
    raise GatewayError(
        errors_pb2.REASON_PERMISSION_DENIED,
        f"this request requires an admin key with the scope {required!r}; this key has: "
        f"{', '.join(sorted(scopes))}",
    )
