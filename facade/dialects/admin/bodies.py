"""Wire types of the bodies and queries of administration."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

DEFAULT_LIMIT = 20
MAX_LIMIT = 1000
MAX_GRACE_S = 30 * 86_400
# Maximum value of a limit; a test checks that the service has the same.
MAX_AMOUNT = 4 * 10**18

# The names of the plans; a test checks that the proto has the same.
PlanName = Literal["personal_free", "personal_pro", "team_pro", "enterprise"]
Kind = Literal["key", "user", "team", "admin_key"]

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$"
Name = Annotated[str, Field(pattern=_NAME)]
# Unix seconds below the year 10000.
Time = Annotated[int, Field(ge=0, le=253_402_300_799)]


def _digits(text: object) -> object:
    """Reject a parameter with characters that `int` accepts beside digits."""
    if isinstance(text, str) and not (text.isascii() and text.isdigit() and len(text) < 16):
        raise ValueError("must be an integer")
    return text


_Digits = BeforeValidator(_digits)
QueryTime = Annotated[Time, _Digits]


class Body(BaseModel):
    """A JSON body: unknown fields are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", defer_build=True)


class Query(BaseModel):
    """A query: unknown parameters are errors."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


class Page(Query):
    """The page of a list."""

    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT), _Digits] = DEFAULT_LIMIT
    page: Annotated[str, Field(min_length=1, max_length=64)] = Field(
        "", description="The `next_page` of an earlier list.", json_schema_extra={"default": None}
    )


class KeysQuery(Page):
    """Selects keys."""

    user: Name | None = Field(None, description="Keys of the user with this name alone.")
    team: Name | None = Field(None, description="Keys of this team's users alone.")


class UsersQuery(Page):
    """Selects users."""

    name: Name | None = Field(None, description="The user with this name alone.")
    team: Name | None = Field(None, description="Users of this team alone.")


class TeamsQuery(Page):
    """Selects teams."""

    name: Name | None = Field(None, description="The team with this name alone.")


class AuditQuery(Page):
    """Selects entries of the audit log."""

    since: QueryTime | None = Field(None, description="Unix seconds, inclusive.")
    until: QueryTime | None = Field(None, description="Unix seconds, exclusive.")
    subject_kind: Kind | None = None
    subject_id: Annotated[str, Field(min_length=1, max_length=64)] | None = None


_Amount = Annotated[int, Field(ge=0, le=MAX_AMOUNT)] | None
_MONEY = "Decimal US dollars, with at most 12 decimals,"
# Less than the four million dollars that a limit may have.
Dollars = Annotated[str, Field(pattern=r"^[0-9]{1,6}(\.[0-9]{1,12})?$")]
_LABEL = Annotated[str, Field(max_length=128)]
_EXPIRY = "Unix seconds in the future; null: it does not expire."


class NoFields(Body):
    """An empty object, or no body at all."""


class CreateKey(Body):
    """Describes the key to create."""

    user: Name = Field(description="Name of the user, created when it is new.")
    team: Name | None = Field(
        None, description="Team of a new user, created when it is new; a known user's own team."
    )
    plan: PlanName | None = Field(
        None, description="Plan of a new team or, without a team, of a new user."
    )
    name: _LABEL = Field("", description="For people.")
    expires_at: Time | None = Field(None, description=_EXPIRY)


class UpdateKey(Body):
    """Describes changes of a key; omitted fields stay unchanged."""

    name: _LABEL = Field("", description="For people.")
    enabled: bool = Field(True, description="False: it is not valid until it is enabled again.")
    expires_at: Time | None = Field(None, description=_EXPIRY)


class RotateKey(Body):
    """Describes the rotation of a key."""

    grace_seconds: Annotated[int, Field(ge=0, le=MAX_GRACE_S)] = Field(
        86_400, description="For how long the old key stays valid."
    )


class SetLimits(Body):
    """All limits of a key, user or team; a field that is omitted or null is unlimited."""

    requests_per_minute: _Amount = Field(None, description="Requests begun in a UTC minute.")
    tokens_per_minute: _Amount = Field(None, description="Tokens in and out in a UTC minute.")
    concurrent_requests: Annotated[int, Field(ge=0, le=1_000_000)] | None = Field(
        None, description="Requests under way at once."
    )
    spend_per_day: Dollars | None = Field(None, description=f"{_MONEY} in a UTC day.")
    spend_per_month: Dollars | None = Field(None, description=f"{_MONEY} in a UTC month.")
    allowed_models: (
        Annotated[list[Annotated[str, Field(min_length=1, max_length=256)]], Field(max_length=256)]
        | None
    ) = Field(None, description="Models as callers name them; `*` at the end stands for any rest.")


class CreateUser(Body):
    """Describes the user to create."""

    name: Name
    team: Name | None = Field(None, description="Name of the team, created when it is new.")
    plan: PlanName | None = Field(
        None, description="Plan of a new team or, without a team, of the user."
    )


class UpdateUser(Body):
    """Describes changes of a user; omitted fields stay unchanged."""

    team: Name | None = Field(None, description="Name of a team that exists; null for none.")
    plan: PlanName | None = Field(None, description="Plan of a user who is in no team then.")


class CreateTeam(Body):
    """Describes the team to create."""

    name: Name
    plan: PlanName = "personal_free"


class UpdateTeam(Body):
    """Describes changes of a team."""

    plan: PlanName
