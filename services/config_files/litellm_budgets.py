"""Translation of LiteLLM's budgets to commands: amounts here are set by `gateway limits`. Pure."""

from typing import Final

from services.config_files.litellm_values import Report, Section

# Options by LiteLLM's durations of a budget.
_CALENDAR: Final = {
    **dict.fromkeys(("1d", "24h", "daily"), "--spend-per-day"),
    **dict.fromkeys(("7d", "1w", "weekly"), "--spend-per-week"),
    **dict.fromkeys(("1mo", "monthly"), "--spend-per-month"),
}
_LIMITS: Final = {
    "rpm_limit": "--requests-per-minute",
    "tpm_limit": "--tokens-per-minute",
    "max_parallel_requests": "--concurrent-requests",
}


def add_budgets(litellm: Section, report: Report) -> None:
    """Add the commands that set the budgets of `litellm_settings`."""
    amount = litellm.number("max_budget", 0)
    if amount is not None:
        litellm.unsupported(
            "max_budget",
            f"{amount} for all callers together; budgets here are of keys, users and teams",
        )
        report.steps.append(
            "litellm_settings.max_budget: put the users into a team with the budget: "
            f"gateway limits set --team NAME {_spend(litellm.text('budget_duration'), amount)}"
        )
    duration = litellm.text("internal_user_budget_duration")
    budgets = [
        (name, amount)
        for name in ("max_internal_user_budget", "max_end_user_budget")
        if (amount := litellm.number(name, 0)) is not None
    ]
    for name, amount in budgets:
        report.steps.append(
            f"litellm_settings.{name}: for each user, gateway limits set --user NAME "
            f"{_spend(duration, amount)}"
        )
    if duration and not budgets:
        litellm.unsupported("internal_user_budget_duration", "of a budget that is not set")
    for index, item in enumerate(litellm.items("default_team_settings")):
        _add_team(Section(item, f"{litellm.path}.default_team_settings[{index}]", report), report)


def _add_team(team: Section, report: Report) -> None:
    options: list[str] = []
    amount = team.number("max_budget", 0)
    if amount is not None:
        options.append(_spend(team.text("budget_duration"), amount))
    for name, option in _LIMITS.items():
        if (limit := team.whole(name)) is not None:
            options.append(f"{option} {limit}")
    if options:
        name = team.text("team_id") or "NAME"
        report.steps.append(f"{team.path}: gateway limits set --team {name} {' '.join(options)}")
    team.list_unread({}, {})


def _spend(duration: str, amount: float) -> str:
    """Return the options for a budget; one without a duration never starts again."""
    if duration in _CALENDAR:
        return f"{_CALENDAR[duration]} {amount}"
    days = duration.removesuffix("d")
    if days != duration and days.isascii() and days.isdecimal():
        return f"--period-days {days} --spend-per-period {amount}"
    return f"--spend-per-period {amount}"
