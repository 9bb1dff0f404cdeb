"""Wire types of the bodies and queries of administration."""

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from services.common.text.texts import parse_digits

DEFAULT_LIMIT = 20
MAX_LIMIT = 1000
MAX_GRACE_S = 30 * 86_400
# Maximum value of a limit; a test checks that the service has the same.
MAX_AMOUNT = 4 * 10**18

MAX_PERIOD_DAYS = 3_660

EPOCH = date(1970, 1, 1)

# The names of the plans; a test checks that the proto has the same.
PlanName = Literal["personal_free", "personal_pro", "team_pro", "enterprise"]
Kind = Literal[
    "key",
    "user",
    "team",
    "admin_key",
    "model_group",
    "tag",
    "end_user",
    "end_users",
    "session",
    "provider",
    "invitation",
]
# The names of the roles; a test checks that the service has the same.
RoleName = Literal["viewer", "user", "team_admin", "admin"]

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$"
Name = Annotated[str, Field(pattern=_NAME)]
# Unix seconds below the year 10000.
Time = Annotated[int, Field(ge=0, le=253_402_300_799)]


def _digits(text: object) -> object:
    """Reject a parameter with characters that `int` accepts beside digits."""
    if isinstance(text, str) and parse_digits(text, 15) is None:
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
        "",
        description="Page token: the `next_page` of the previous page.",
        json_schema_extra={"default": None},
    )


class KeysQuery(Page):
    """Selects keys."""

    user: Name | None = Field(None, description="Only keys of the user with this name.")
    team: Name | None = Field(None, description="Only keys of users in this team.")


class UsersQuery(Page):
    """Selects users."""

    name: Name | None = Field(None, description="Only the user with this name.")
    team: Name | None = Field(None, description="Only users in this team.")


class TeamsQuery(Page):
    """Selects teams."""

    name: Name | None = Field(None, description="Only the team with this name.")


class LimitsQuery(Page):
    """Selects limits."""

    page: Annotated[str, Field(min_length=1, max_length=128)] = Field(
        "",
        description="Page token: the `next_page` of the previous page.",
        json_schema_extra={"default": None},
    )


class AuditQuery(Page):
    """Selects entries of the audit log."""

    since: QueryTime | None = Field(None, description="Unix seconds, inclusive.")
    until: QueryTime | None = Field(None, description="Unix seconds, exclusive.")
    subject_kind: Kind | None = None
    subject_id: Annotated[str, Field(min_length=1, max_length=64)] | None = None


_Amount = Annotated[int, Field(ge=0, le=MAX_AMOUNT)] | None
_MONEY = "Maximum spend in decimal US dollars, with at most 12 decimal places,"
# Less than the four million dollars that a limit may have.
Dollars = Annotated[str, Field(pattern=r"^[0-9]{1,6}(\.[0-9]{1,12})?$")]
Date = Annotated[
    str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", json_schema_extra={"format": "date"})
]
Models = Annotated[list[Annotated[str, Field(min_length=1, max_length=256)]], Field(max_length=256)]
_LABEL = Annotated[str, Field(max_length=128)]
_EXPIRY = "Expiration time in Unix seconds, in the future; null if the key does not expire."


class NoFields(Body):
    """An empty object, or no body at all."""


class CreateKey(Body):
    """Describes the key to create."""

    user: Name = Field(description="Name of the user; created if it does not exist.")
    team: Name | None = Field(
        None,
        description="Team of a new user, created if it does not exist; for an existing "
        "user, the user's own team.",
    )
    plan: PlanName | None = Field(
        None, description="Plan of a new team or, without a team, of a new user."
    )
    name: _LABEL = Field("", description="Human-readable label.")
    expires_at: Time | None = Field(None, description=_EXPIRY)


class UpdateKey(Body):
    """Describes changes of a key; omitted fields stay unchanged."""

    name: _LABEL = Field("", description="Human-readable label.")
    enabled: bool = Field(
        True, description="If false, the key is rejected until it is enabled again."
    )
    expires_at: Time | None = Field(None, description=_EXPIRY)


class RotateKey(Body):
    """Describes the rotation of a key."""

    grace_seconds: Annotated[int, Field(ge=0, le=MAX_GRACE_S)] = Field(
        86_400, description="Number of seconds for which the old key stays valid."
    )


class SetModelGroup(Body):
    """The models of a group."""

    models: Models = Field(description="Model names; a trailing `*` matches any suffix.")


class SetLimits(Body):
    """All limits of a key, user or team; a field that is omitted or null is unlimited."""

    requests_per_minute: _Amount = Field(
        None, description="Maximum requests started per UTC minute."
    )
    tokens_per_minute: _Amount = Field(
        None, description="Maximum input and output tokens per UTC minute."
    )
    concurrent_requests: Annotated[int, Field(ge=0, le=1_000_000)] | None = Field(
        None, description="Maximum concurrent requests."
    )
    spend_per_day: Dollars | None = Field(None, description=f"{_MONEY} per UTC day.")
    spend_per_week: Dollars | None = Field(
        None, description=f"{_MONEY} per UTC week, which begins on Monday."
    )
    spend_per_month: Dollars | None = Field(None, description=f"{_MONEY} per UTC month.")
    spend_per_period: Dollars | None = Field(
        None, description=f"{_MONEY} per period of `period_days`, or since `period_start`."
    )
    period_start: Date | None = Field(
        None,
        description="A UTC day on which a period of `spend_per_period` begins, today or earlier; "
        "today if omitted. What was spent since the start of the current period counts.",
    )
    period_days: Annotated[int, Field(ge=1, le=MAX_PERIOD_DAYS)] | None = Field(
        None,
        description="Days of each period of `spend_per_period`; if omitted, there is one period, "
        "without an end.",
    )
    soft_limit_percent: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None,
        description="Percentage of each budget; when it is spent, this is recorded in the audit "
        "log and sent to the webhook.",
    )
    allowed_models: Models | None = Field(
        None, description="Model names that requests may use; a trailing `*` matches any suffix."
    )
    allowed_model_groups: Annotated[list[Name], Field(max_length=8)] = Field(
        [], description="Names of model groups, whose models requests may use too."
    )


BudgetName = Literal["spend_per_day", "spend_per_week", "spend_per_month", "spend_per_period"]


class ResetBudget(Body):
    """Names the budget to reset."""

    name: BudgetName = Field(description="Name of the budget.")


class TopUpBudget(Body):
    """Names the budget to top up."""

    name: BudgetName = Field(description="Name of the budget.")
    amount: Dollars = Field(
        description="Decimal US dollars to add for the rest of the window, with at most 12 decimal "
        "places; more than 0."
    )


class CreateUser(Body):
    """Describes the user to create."""

    name: Name
    team: Name | None = Field(None, description="Name of the team; created if it does not exist.")
    plan: PlanName | None = Field(
        None, description="Plan of a new team or, without a team, of the user."
    )


class UpdateUser(Body):
    """Describes changes of a user; omitted fields stay unchanged."""

    team: Name | None = Field(None, description="Name of an existing team; null for no team.")
    plan: PlanName | None = Field(
        None, description="Plan of the user; only if the user is in no team after the change."
    )
    role: RoleName | None = Field(
        None,
        description="What the user may do after a sign-in; null for no role, which is `user`, or "
        "the default of the issuer.",
    )


class CreateTeam(Body):
    """Describes the team to create."""

    name: Name
    plan: PlanName = "personal_free"


class UpdateTeam(Body):
    """Describes changes of a team."""

    plan: PlanName
