"""People, as the claims of an issuer's token describe them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.accounts.names import is_name
from services.common.errors import permission_denied
from services.common.grpc.roles import ROLES
from services.common.settings import Oidc

# Longest subject that OpenID Connect allows (Core 1.0, section 2).
_MAX_SUBJECT = 255
# Values of a claim that are read.
_MAX_VALUES = 1_000


@dataclass(frozen=True, slots=True)
class Person:
    """A person of an issuer.

    Attributes:
        issuer: the issuer.
        subject: the person's id at the issuer, which never changes.
        name: name of the user.
        team: name of the user's team; "" for none; None if the issuer does not decide it.
        role: one of `roles.ROLES`; "" if no claim names one.
        email: the address that the issuer has verified, or "".
    """

    issuer: str
    subject: str
    name: str
    team: str | None
    role: str
    email: str = ""


def person_of(claims: Mapping[str, Any], settings: Oidc) -> Person:
    """Return the person whom verified claims describe.

    Raises:
        GatewayError: permission_denied, when a claim is missing or malformed.
    """
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _MAX_SUBJECT:
        raise permission_denied("the issuer's token has no valid claim sub")
    name = _claim(claims, settings.user_claim)
    if not isinstance(name, str) or not is_name(name):
        raise permission_denied(
            f"the issuer's token has no claim {settings.user_claim!r} that is the name of a user: "
            "1 to 64 letters, digits and . _ @ + - (console.oidc.user_claim)"
        )
    if settings.user_claim == "email" and claims.get("email_verified") in (False, "false"):
        raise permission_denied("the issuer has not verified your email address")
    return Person(
        settings.issuer,
        subject,
        name,
        _team(claims, settings),
        _role(claims, settings),
        _email(claims),
    )


def _team(claims: Mapping[str, Any], settings: Oidc) -> str | None:
    if not settings.team_claim:
        return None
    values = _values(_claim(claims, settings.team_claim))
    if settings.teams:
        values = [settings.teams[value] for value in values if value in settings.teams]
    return next(filter(is_name, values), "")


def _role(claims: Mapping[str, Any], settings: Oidc) -> str:
    values = _values(_claim(claims, settings.role_claim)) if settings.role_claim else []
    roles = [settings.roles[value] for value in values if value in settings.roles]
    return max(roles, key=ROLES.index, default="")


def _email(claims: Mapping[str, Any]) -> str:
    """Return the address that the issuer has verified, or ""."""
    email = claims.get("email")
    is_verified = claims.get("email_verified") in (True, "true")
    return email if is_verified and isinstance(email, str) else ""


def _claim(claims: Mapping[str, Any], path: str) -> Any:
    """Return a claim by its name, or by the names of nested fields with dots between them."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _values(claim: Any) -> Sequence[str]:
    if isinstance(claim, str):
        return [claim]
    if isinstance(claim, list):
        return [value for value in claim[:_MAX_VALUES] if isinstance(value, str)]
    return []
