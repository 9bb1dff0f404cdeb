"""Rules of the names of users, teams, plans and keys. Pure."""

import re

from services.accounts.plans import PLANS
from services.common.errors import GatewayError, invalid

MAX_LABEL = 128

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}", re.ASCII)
_ID = re.compile(r"[A-Za-z0-9_]{1,64}", re.ASCII)


def is_id(text: str) -> bool:
    """Return whether a text has the form of an id."""
    return _ID.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Return whether a text has the form of the name of a user, team or model group."""
    return _NAME.fullmatch(text) is not None


def check_name(field: str, name: str) -> None:
    """Check the name of a user, a team or a model group.

    Raises:
        GatewayError: invalid_request, naming `field`.
    """
    if not is_name(name):
        raise invalid(
            field,
            f"{field}: must be 1 to 64 letters, digits and . _ @ + -, starting with a letter or "
            "digit",
        )


def check_plan(plan: str) -> None:
    """Check the name of a plan.

    Raises:
        GatewayError: invalid_request.
    """
    if plan not in PLANS:
        raise invalid("plan", f"plan: must be one of {', '.join(PLANS)}")


def check_label(name: str) -> None:
    """Check the display name of a key.

    Raises:
        GatewayError: invalid_request.
    """
    if len(name) > MAX_LABEL or not name.isprintable():
        raise invalid("name", f"name: must be at most {MAX_LABEL} printable characters")


def unknown_user(user: str) -> GatewayError:
    """Return the error for an unknown user name."""
    return invalid("user", f"user: no user {user!r}; `keys create` creates users")
