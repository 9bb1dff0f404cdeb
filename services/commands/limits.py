"""`gateway limits`: manage the limits of keys, users, teams, tags and end users."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import date
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypeVar

import typer

from services.commands.shared import FLAGS, WRONG, fail, on_database, print_fields, time_of

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from gateway.accounts.v1.limits_pb2 import LimitUsage, Measure
    from services.accounts.admin.limits import LimitAdministration
    from services.accounts.limits.rules import SubjectKind, UsageLimits
    from services.common.settings import Settings

_EPOCH = date(1970, 1, 1).toordinal()

Result = TypeVar("Result")

_KeyOption = Annotated[
    str, typer.Option("--key", metavar="KEY", help="Id of a key, its prefix, or the key itself.")
]
_UserOption = Annotated[str, typer.Option("--user", metavar="NAME", help="Name of a user.")]
_TeamOption = Annotated[str, typer.Option("--team", metavar="NAME", help="Name of a team.")]

_TagOption = Annotated[
    str, typer.Option("--tag", metavar="KEY=VALUE", help="A tag, for example project=alpha.")
]
_EndUserOption = Annotated[
    str, typer.Option("--end-user", metavar="ID", help="An end user of --user.")
]
_EndUsersOption = Annotated[
    bool, typer.Option("--end-users", help="Each end user of --user without limits of its own.")
]

app = typer.Typer(help="Show and set the limits of a key, user, team, tag or end user.", **FLAGS)


class _Subject(NamedTuple):
    """A subject in the database."""

    kind: "SubjectKind"
    id: str


@app.command("show")
def show_limits(
    key: _KeyOption = "",
    user: _UserOption = "",
    team: _TeamOption = "",
    tag: _TagOption = "",
    end_user: _EndUserOption = "",
    end_users: _EndUsersOption = False,
) -> None:
    """Show the limits of a key, user, team, tag or end user, and what is used of them."""

    async def work(
        limits: "LimitAdministration", subject: _Subject
    ) -> "tuple[UsageLimits, Sequence[LimitUsage]]":
        return await limits.get_with_usage(*subject)

    subject_limits, usage = _on_subject(work, key, user, team, tag, end_user, end_users=end_users)
    models = subject_limits.allowed_models
    from services.common.limit_windows import MEASURES

    states = {one.measure: one for one in usage}

    def state(name: str, write: Callable[[int | None], str]) -> str:
        return _state(getattr(subject_limits, name), write, states.get(MEASURES[name]))

    print_fields(
        REQUESTS_PER_MINUTE=state("requests_per_minute", _number),
        TOKENS_PER_MINUTE=state("tokens_per_minute", _number),
        CONCURRENT_REQUESTS=state("concurrent_requests", _number),
        SPEND_PER_DAY=state("spend_per_day_pusd", _dollars),
        SPEND_PER_WEEK=state("spend_per_week_pusd", _dollars),
        SPEND_PER_MONTH=state("spend_per_month_pusd", _dollars),
        SPEND_PER_PERIOD=state("spend_per_period_pusd", _dollars),
        PERIOD=_period(subject_limits),
        SOFT_LIMIT=_percent(subject_limits.soft_limit_percent),
        ALLOWED_MODELS="-" if models is None else ", ".join(models) or "none",
        ALLOWED_MODEL_GROUPS=", ".join(subject_limits.allowed_model_groups) or "-",
    )


@app.command("set")
def set_limits(
    key: _KeyOption = "",
    user: _UserOption = "",
    team: _TeamOption = "",
    tag: _TagOption = "",
    end_user: _EndUserOption = "",
    end_users: _EndUsersOption = False,
    requests_per_minute: Annotated[
        int | None, typer.Option(min=0, help="Requests per UTC minute.")
    ] = None,
    tokens_per_minute: Annotated[
        int | None, typer.Option(min=0, help="Input and output tokens per UTC minute.")
    ] = None,
    concurrent_requests: Annotated[
        int | None, typer.Option(min=0, help="Concurrent requests.")
    ] = None,
    spend_per_day: Annotated[
        str | None,
        typer.Option(metavar="DOLLARS", help="US dollars per UTC day, for example 12.50."),
    ] = None,
    spend_per_week: Annotated[
        str | None,
        typer.Option(metavar="DOLLARS", help="US dollars per UTC week, which begins on Monday."),
    ] = None,
    spend_per_month: Annotated[
        str | None, typer.Option(metavar="DOLLARS", help="US dollars per UTC calendar month.")
    ] = None,
    spend_per_period: Annotated[
        str | None,
        typer.Option(metavar="DOLLARS", help="US dollars per --period-days, or since --since."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="DATE",
            help="A UTC day on which a period begins, today or earlier; today if not given.",
        ),
    ] = None,
    period_days: Annotated[
        int | None,
        typer.Option(min=1, help="Days of each period; without it, one period without an end."),
    ] = None,
    soft_limit_percent: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100,
            help="Percentage of each budget; when it is spent, the webhook of [budgets] is told.",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Allowed model, as named in requests; a `*` at the end matches any suffix. "
            "Repeatable; all other models are then forbidden.",
        ),
    ] = None,
    model_group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Allowed group of models (`gateway model-groups`). Repeatable; all other models "
            "are then forbidden.",
        ),
    ] = None,
) -> None:
    """Replace the limits of a key, user, team, tag or end user, everywhere within 5 seconds.

    Limits that are not given are removed.
    """

    async def work(limits: "LimitAdministration", subject: _Subject) -> None:
        from services.accounts.limits.rules import UsageLimits

        new_limits = UsageLimits(
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            concurrent_requests=concurrent_requests,
            spend_per_day_pusd=_pusd(spend_per_day),
            spend_per_week_pusd=_pusd(spend_per_week),
            spend_per_month_pusd=_pusd(spend_per_month),
            spend_per_period_pusd=_pusd(spend_per_period),
            period_start_day=_day(since),
            period_days=period_days,
            soft_limit_percent=soft_limit_percent,
            allowed_models=tuple(model) if model else None,
            allowed_model_groups=tuple(model_group or ()),
        )
        if not new_limits:
            fail("set at least one limit; `limits clear` removes all limits", WRONG)
        await limits.set(*subject, new_limits)

    _on_subject(work, key, user, team, tag, end_user, end_users=end_users)


@app.command("clear")
def clear_limits(
    key: _KeyOption = "",
    user: _UserOption = "",
    team: _TeamOption = "",
    tag: _TagOption = "",
    end_user: _EndUserOption = "",
    end_users: _EndUsersOption = False,
) -> None:
    """Remove all limits of a key, user, team, tag or end user, everywhere within 5 seconds."""

    async def work(limits: "LimitAdministration", subject: _Subject) -> None:
        from services.accounts.limits.rules import UsageLimits

        await limits.set(*subject, UsageLimits())

    _on_subject(work, key, user, team, tag, end_user, end_users=end_users)


_PerOption = Annotated[
    Literal["day", "week", "month", "period"],
    typer.Option("--per", help="The budget: that per day, week, month or period."),
]


@app.command("reset")
def reset_budget(
    per: _PerOption,
    key: _KeyOption = "",
    user: _UserOption = "",
    team: _TeamOption = "",
    tag: _TagOption = "",
    end_user: _EndUserOption = "",
) -> None:
    """Count the spending of a budget from 0 on for the rest of its window."""

    async def work(limits: "LimitAdministration", subject: _Subject) -> "LimitUsage":
        return await limits.reset_budget(*subject, _measure(per))

    _print_budget(_on_subject(work, key, user, team, tag, end_user))


@app.command("top-up")
def top_up_budget(
    per: _PerOption,
    amount: Annotated[
        str, typer.Option(metavar="DOLLARS", help="US dollars to add, for example 12.50.")
    ],
    key: _KeyOption = "",
    user: _UserOption = "",
    team: _TeamOption = "",
    tag: _TagOption = "",
    end_user: _EndUserOption = "",
) -> None:
    """Add an amount to a budget for the rest of its window."""

    async def work(limits: "LimitAdministration", subject: _Subject) -> "LimitUsage":
        return await limits.top_up_budget(*subject, _measure(per), _pusd(amount) or 0)

    _print_budget(_on_subject(work, key, user, team, tag, end_user))


def _measure(per: str) -> "Measure.ValueType":
    from services.common.limit_windows import MEASURES

    return MEASURES[f"spend_per_{per}_pusd"]


def _print_budget(usage: "LimitUsage") -> None:
    print_fields(
        BUDGET=_dollars(usage.limit),
        ADDED=_dollars(usage.added),
        USED=_dollars(usage.used),
        RESERVED=_dollars(usage.reserved),
        REMAINING=_dollars(usage.remaining),
    )


def _on_subject(
    work: "Callable[[LimitAdministration, _Subject], Awaitable[Result]]",
    key: str,
    user: str,
    team: str,
    tag: str,
    end_user: str,
    *,
    end_users: bool = False,
) -> "Result":
    """Run a function with the limits and the subject that the options name."""
    if sum(map(bool, (key, user, team, tag))) != 1:
        fail("exactly one of --key, --user, --team and --tag is required", WRONG)
    if (end_user or end_users) and (not user or (end_user and end_users)):
        fail("--end-user or --end-users requires --user", WRONG)

    async def run(engine: "AsyncEngine", settings: "Settings") -> "Result":
        from services.accounts.admin.keys import KeyAdministration
        from services.accounts.admin.limits import LimitAdministration
        from services.accounts.admin.teams import TeamAdministration
        from services.accounts.admin.users import UserAdministration
        from services.accounts.limits.rules import SubjectKind

        if key:
            subject = _Subject(SubjectKind.KEY, (await KeyAdministration(engine).find(key)).id)
        elif tag:
            subject = _Subject(SubjectKind.TAG, tag)
        elif user:
            user_id = (await UserAdministration(engine).named(user)).id
            subject = _Subject(SubjectKind.USER, user_id)
            if end_users:
                subject = _Subject(SubjectKind.END_USERS, user_id)
            elif end_user:
                subject = _Subject(SubjectKind.END_USER, f"{user_id}/{end_user}")
        else:
            subject = _Subject(SubjectKind.TEAM, (await TeamAdministration(engine).named(team)).id)
        return await work(LimitAdministration(engine), subject)

    return on_database(run)


def _state(
    limit: int | None, write: Callable[[int | None], str], usage: "LimitUsage | None"
) -> str:
    """Return a limit with what is used and reserved of it."""
    if usage is None:
        return write(limit)
    parts = [f"{write(usage.used)} used", f"{write(usage.reserved)} reserved"]
    if usage.added:
        parts.append(f"{write(usage.added)} added")
    if usage.forecast:
        parts.append(f"{write(usage.forecast)} forecast")
    if usage.HasField("exhausted_at_ms"):
        parts.append(f"used up at {time_of(usage.exhausted_at_ms // 1000)}")
    if usage.soft_limit_reached:
        parts.append("soft limit reached")
    return f"{write(usage.limit)} ({', '.join(parts)})"


def _period(limits: "UsageLimits") -> str:
    """Return the periods of `spend_per_period_pusd`."""
    if limits.period_start_day is None:
        return "-"
    start = date.fromordinal(_EPOCH + limits.period_start_day)
    return f"{limits.period_days} days from {start} on" if limits.period_days else f"since {start}"


def _day(text: str | None) -> int | None:
    """Return a date in days since 1970-01-01."""
    if text is None:
        return None
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH
    except ValueError:
        fail(f"--since {text}: must be a date such as 2026-11-23", WRONG)


def _percent(value: int | None) -> str:
    return "-" if value is None else f"{value}%"


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _dollars(pusd: int | None) -> str:
    from services.common.money import decimal_dollars

    return "-" if pusd is None else f"${decimal_dollars(pusd)}"


def _pusd(dollars: str | None) -> int | None:
    from services.accounts.limits.rules import MAX_AMOUNT
    from services.common.money import PER_DOLLAR, parse_dollars

    if dollars is None:
        return None
    try:
        amount = parse_dollars(dollars)
    except ValueError as error:
        fail(f"{dollars}: {error}", WRONG)
    if amount > MAX_AMOUNT:
        fail(f"{dollars}: must be at most {MAX_AMOUNT // PER_DOLLAR:,} US dollars", WRONG)
    return amount
