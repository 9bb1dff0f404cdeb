"""Scopes of admin keys: the methods that each of them permits."""

from collections.abc import Iterable

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, permission_denied

READ = "read"
USERS = "users"
MONEY = "money"
# Permits every method.
ALL = "all"
SCOPES = (READ, USERS, MONEY, ALL)
EVERYTHING = frozenset((ALL,))
# Of administrators of a team: the keys and users of the team. Admin keys cannot have it.
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
    }
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
            "your role is team_admin, which permits the keys and users of your team alone"
        )
    raise GatewayError(
        errors_pb2.REASON_PERMISSION_DENIED,
        f"this request requires an admin key with the scope {required!r}; this key has: "
        f"{', '.join(sorted(scopes))}",
    )
