"""Who calls: the one door that every service and the facade share.

Each gRPC call carries the caller's own API key in the metadata entry
`authorization`. Accounts looks keys up; everybody else asks through `Identify`.
"""

import re
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass

from gateway.accounts.v1.accounts_pb2 import Plan

from services.common.errors import invalid_api_key

_KEY = re.compile(r"gw-[A-Za-z0-9_-]{43}", re.ASCII)
_BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of the key a call came with.

    Attributes:
        user_id: the user.
        team_id: the user's team, or "".
        plan: the team's plan where there is a team, else the user's.
    """

    user_id: str
    team_id: str
    plan: Plan.ValueType


# Takes an API key; raises `invalid_api_key` when it belongs to nobody.
Identify = Callable[[str], Awaitable[Caller]]

# The caller of the gRPC call that the current task serves.
caller: ContextVar[Caller] = ContextVar("caller")


def is_key(text: str) -> bool:
    """Tell whether `text` has the form of an API key."""
    return _KEY.fullmatch(text) is not None


def bearer_key(header: str) -> str:
    """Give the key in an `Authorization` value, scheme in any case.

    Raises:
        GatewayError: `invalid_api_key` when there is none, or it cannot be a key of ours.
    """
    if header[: len(_BEARER)].lower() != _BEARER:
        raise invalid_api_key("send the API key as `Authorization: Bearer <API_KEY>`")
    key = header[len(_BEARER) :].strip()
    if not is_key(key):
        raise invalid_api_key()
    return key
