"""Limits as values: their measures, their subjects and their valid ranges."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import ModelPatterns, SubjectLimits
from services.accounts.names import check_name
from services.common.errors import invalid
from services.common.limit_windows import MEASURES, SPEND, Period

# About half of the range of 64-bit integers; as money, 4,000,000 US dollars.
MAX_AMOUNT = 4 * 10**18
MAX_CONCURRENT = 1_000_000
# Ten years, for the length of a period and the time since its start.
MAX_PERIOD_DAYS = 3_660
MAX_PATTERNS = 256
MAX_PATTERN_LENGTH = 256
MAX_MODEL_GROUPS = 8


class SubjectKind(StrEnum):
    """Kind of the subject of a limit or usage record; tables and commands use the values."""

    KEY = "key"
    USER = "user"
    TEAM = "team"
    PROVIDER = "provider"
    DEPLOYMENT = "deployment"
    TAG = "tag"
    END_USER = "end_user"
    END_USERS = "end_users"

    @property
    def proto(self) -> limits_pb2.SubjectKind.ValueType:
        """The value of `limits.proto`."""
        return limits_pb2.SubjectKind.Value(f"SUBJECT_KIND_{self.name}")

    @classmethod
    def of_proto(cls, number: limits_pb2.SubjectKind.ValueType) -> "SubjectKind":
        """Return the kind for an enum value of `limits.proto`.

        Raises:
            ValueError: there is no such kind.
        """
        return cls(limits_pb2.SubjectKind.Name(number).removeprefix("SUBJECT_KIND_").lower())


# The subjects of a caller, those of the labels of a request, and those whose limits are in the
# settings.
ACCOUNTS: Final = (SubjectKind.KEY, SubjectKind.USER, SubjectKind.TEAM)
LABELS: Final = (SubjectKind.TAG, SubjectKind.END_USER, SubjectKind.END_USERS)
PLACES: Final = (SubjectKind.PROVIDER, SubjectKind.DEPLOYMENT)


@dataclass(frozen=True, slots=True)
class UsageLimits:
    """The limits of one key, user or team; None means no limit.

    Attributes:
        requests_per_minute: requests that may begin in a UTC minute.
        tokens_per_minute: tokens of input and output in a UTC minute.
        concurrent_requests: requests running at once.
        spend_per_day_pusd: money in a UTC day, in 10^-12 US dollars.
        spend_per_week_pusd: money in a UTC week from Monday on, in 10^-12 US dollars.
        spend_per_month_pusd: money in a UTC calendar month, in 10^-12 US dollars.
        spend_per_period_pusd: money in a period, in 10^-12 US dollars.
        period_start_day: a UTC day on which a period begins, in days since 1970-01-01; None if it
            is to be set to today.
        period_days: length of a period; None for one without an end.
        soft_limit_percent: percentage of each budget from which on it is reported as nearly spent.
        allowed_models: names of models as callers write them; a trailing `*` matches any suffix.
            An empty tuple allows no models beside those of the groups.
        allowed_model_groups: names of groups of models that are allowed too.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent_requests: int | None = None
    spend_per_day_pusd: int | None = None
    spend_per_week_pusd: int | None = None
    spend_per_month_pusd: int | None = None
    spend_per_period_pusd: int | None = None
    period_start_day: int | None = None
    period_days: int | None = None
    soft_limit_percent: int | None = None
    allowed_models: tuple[str, ...] | None = None
    allowed_model_groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            GatewayError: invalid_request, naming the field that breaks a rule.
        """
        for name in AMOUNTS:
            _check_amount(name, getattr(self, name))
        _check_period(self)
        _check_soft_limit(self)
        if self.allowed_models is not None:
            check_patterns("allowed_models", self.allowed_models)
        _check_groups(self.allowed_model_groups)

    def __bool__(self) -> bool:
        """Return whether anything is limited."""
        has_models = self.allowed_models is not None or bool(self.allowed_model_groups)
        return has_models or any(getattr(self, name) is not None for name in AMOUNTS)

    @classmethod
    def of_proto(cls, limits: SubjectLimits) -> "UsageLimits":
        """Return the limits in a message.

        Raises:
            GatewayError: invalid_request, naming the field that breaks a rule.
        """
        numbers = {field.name: n for field, n in limits.ListFields() if field.name in NUMBERS}
        has_models = limits.HasField("allowed_models")
        patterns = tuple(limits.allowed_models.patterns) if has_models else None
        groups = tuple(limits.allowed_model_groups)
        return cls(**numbers, allowed_models=patterns, allowed_model_groups=groups)

    @property
    def period(self) -> Period:
        """The periods of `spend_per_period_pusd`."""
        return Period(self.period_start_day or 0, self.period_days or 0)

    def to_proto(self, kind: SubjectKind, subject_id: str) -> SubjectLimits:
        """Return the limits of a subject as a message."""
        models = self.allowed_models
        return SubjectLimits(
            kind=kind.proto,
            id=subject_id,
            allowed_models=None if models is None else ModelPatterns(patterns=models),
            allowed_model_groups=self.allowed_model_groups,
            **{name: getattr(self, name) for name in NUMBERS},
        )


# The names of the numeric limits, and of all fields with numbers.
AMOUNTS: Sequence[str] = [*MEASURES]
NUMBERS: Sequence[str] = [*AMOUNTS, "period_start_day", "period_days", "soft_limit_percent"]
# The names of the budgets.
BUDGETS: Sequence[str] = [name for name, measure in MEASURES.items() if measure in SPEND]


def _check_amount(name: str, amount: int | None) -> None:
    maximum = MAX_CONCURRENT if name == "concurrent_requests" else MAX_AMOUNT
    if amount is not None and not 0 <= amount <= maximum:
        raise invalid(name, f"{name}: must be an integer from 0 to {maximum:,}")


def _check_period(limits: UsageLimits) -> None:
    for name in ("period_start_day", "period_days"):
        if getattr(limits, name) is not None and limits.spend_per_period_pusd is None:
            raise invalid(name, f"{name}: requires spend_per_period")
    days = limits.period_days
    if days is not None and not 1 <= days <= MAX_PERIOD_DAYS:
        raise invalid(
            "period_days", f"period_days: must be an integer from 1 to {MAX_PERIOD_DAYS:,}"
        )


def _check_soft_limit(limits: UsageLimits) -> None:
    name, percent = "soft_limit_percent", limits.soft_limit_percent
    if percent is None:
        return
    if not 1 <= percent <= 100:
        raise invalid(name, f"{name}: must be an integer from 1 to 100")
    if all(getattr(limits, budget) is None for budget in BUDGETS):
        raise invalid(name, f"{name}: requires a budget, such as spend_per_month")


def check_period_start(limits: UsageLimits, today: int) -> None:
    """Check when the periods of limits began.

    Args:
        limits: the limits.
        today: the UTC day, in days since 1970-01-01.

    Raises:
        GatewayError: invalid_request, when they begin in the future or too long ago.
    """
    start = limits.period_start_day
    if start is not None and not today - MAX_PERIOD_DAYS <= start <= today:
        raise invalid(
            "period_start_day",
            f"period_start_day: must be today (UTC) or one of the last {MAX_PERIOD_DAYS:,} days",
        )


def _check_groups(names: tuple[str, ...]) -> None:
    field = "allowed_model_groups"
    if len(names) > MAX_MODEL_GROUPS:
        raise invalid(field, f"{field}: must contain at most {MAX_MODEL_GROUPS} names")
    for index, name in enumerate(names):
        check_name(f"{field}[{index}]", name)


def check_patterns(name: str, patterns: Sequence[str]) -> None:
    """Check names of models, each with a `*` at most at its end.

    Raises:
        GatewayError: invalid_request, naming the field `name` or an item of it.
    """
    if len(patterns) > MAX_PATTERNS:
        raise invalid(name, f"{name}: must contain at most {MAX_PATTERNS} names")
    for index, pattern in enumerate(patterns):
        is_name = pattern.isprintable() and "*" not in pattern[:-1]
        if not 1 <= len(pattern) <= MAX_PATTERN_LENGTH or not is_name:
            raise invalid(
                f"{name}[{index}]",
                f"{name}[{index}]: must be a model name of 1 to {MAX_PATTERN_LENGTH} printable "
                "characters, with `*` only at the end",
            )
