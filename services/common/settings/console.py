"""Settings of the console: sessions, and the issuer that signs people in."""

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from services.common.settings.base import Section, VariableName, setting, without_variables

Role = Literal["viewer", "user", "team_admin", "admin"]
# Signatures with a key pair: with a shared secret, whoever verifies tokens could make them.
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Oidc(Section):
    """The OpenID Connect issuer that signs people in (docs/sign-in.md)."""

    issuer: str = setting(
        "", "its address, such as https://login.example.com/realms/main; empty: none"
    )
    name: Annotated[str, Field(max_length=64)] = setting(
        "single sign-on", "what the page of the sign-in calls it"
    )
    client_id: str = setting("", "id of the gateway at the issuer")
    client_secret: SecretStr = setting(SecretStr(""), "its secret; empty: a public client")
    client_secret_env: VariableName = setting("", "variable with the secret")
    client_secret_file: str = setting("", "file with the secret")
    scopes: list[str] = setting(
        ["openid", "profile", "email"], "scopes that the gateway asks for; openid is required"
    )
    algorithms: Annotated[list[Algorithm], Field(min_length=1)] = setting(
        ["RS256", "ES256", "PS256", "EdDSA"], "signatures of tokens that are accepted"
    )
    audiences: list[str] = setting(
        [],
        "audiences of the issuer's tokens that callers may send in place of an API key; empty: "
        "none",
        example=["https://gateway.example.com"],
    )
    user_claim: Annotated[str, Field(min_length=1)] = setting(
        "email", "claim with the name of the user, for example email or preferred_username"
    )
    link_users: bool = setting(
        False,
        "whether people sign in as users of their name who were made otherwise; only if the issuer "
        "lets nobody choose the claim",
    )
    team_claim: str = setting(
        "", "claim with the user's team, a text or a list; empty: teams are set in the gateway"
    )
    teams: dict[str, str] = setting(
        {},
        "teams by values of that claim; empty: the first value is the team's name",
        example={"group-research": "research"},
    )
    role_claim: str = setting(
        "", "claim with the user's roles, a text or a list; a.b is a field of a field"
    )
    roles: dict[str, Role] = setting(
        {},
        "roles by values of that claim: viewer | user | team_admin | admin; the highest counts",
        example={"gateway-admins": "admin", "auditors": "viewer"},
    )
    default_role: Literal["", "viewer", "user", "team_admin", "admin"] = setting(
        "user", "role of people without such a value; empty: they may not sign in"
    )

    @field_validator("issuer", "client_id", "client_secret", mode="before")
    @classmethod
    def _is_literal(cls, value: Any) -> Any:
        return without_variables(value)

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if not self.issuer:
            return self
        if not is_safe_address(self.issuer):
            raise ValueError(
                "issuer: must be an https:// address without a query (http:// on this machine)"
            )
        if not self.client_id:
            raise ValueError("issuer: requires client_id")
        if "openid" not in self.scopes:
            raise ValueError("scopes: must include openid")
        if (self.teams and not self.team_claim) or (self.roles and not self.role_claim):
            raise ValueError("teams requires team_claim, and roles requires role_claim")
        return self

    def secret(self, environ: Mapping[str, str] = os.environ) -> str:
        """Return the secret, or "" for a public client."""
        return self.client_secret.get_secret_value() or environ.get(self.client_secret_env, "")


class Console(Section):
    """The console's sessions, and how people sign in."""

    public_url: str = setting(
        "",
        "address at which browsers reach the gateway, such as https://gateway.example.com; with "
        "https, cookies are sent over TLS only; required for [console.oidc]",
    )
    session_idle_s: Annotated[float, Field(ge=60, le=90 * 86_400)] = setting(
        12 * 3600,
        "time without a request after which a session ends",
        seen="the page asks to sign in again, and goes on; requests get 401 `invalid_api_key`",
    )
    session_ttl_s: Annotated[float, Field(ge=60, le=365 * 86_400)] = setting(
        7 * 86_400,
        "time after which a session ends in any case",
        seen="as `console.session_idle_s`",
    )
    oidc: Oidc = setting(Oidc(), "the issuer that signs people in (docs/sign-in.md)")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.public_url and not (
            is_safe_address(self.public_url) and urlsplit(self.public_url).path in ("", "/")
        ):
            raise ValueError(
                "public_url: must be an https:// address without a path (http:// on this machine)"
            )
        if self.oidc.issuer and not self.public_url:
            raise ValueError("oidc.issuer: requires public_url")
        return self

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach the gateway over TLS."""
        return self.public_url.startswith("https://")

    @property
    def redirect_uri(self) -> str:
        """The address to which the issuer sends browsers back."""
        return f"{self.public_url.rstrip('/')}/console/oidc/callback"


def is_safe_address(text: str) -> bool:
    """Return whether a text is an https URL, or an http URL of this machine, without a query."""
    try:
        url = urlsplit(text)
        has_rest = bool(url.query or url.fragment or url.username or url.password)
        return (
            bool(url.hostname)
            and not has_rest
            and url.port != 0
            and (url.scheme == "https" or (url.scheme == "http" and url.hostname in _LOOPBACK))
        )
    except ValueError:  # an invalid port
        return False
