"""When models are deprecated and retired, from the lists of their providers. Pure.

Anthropic's lists have a stage and two dates, OpenAI's a date of the shutdown, Mistral's one of the
deprecation, OpenRouter's one of the removal, and Bedrock's two dates. Google's lists have none.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any, Final, NamedTuple

_DEPRECATED: Final = ("deprecated_at", "deprecation", "legacyTime")
_RETIRES: Final = ("retires_at", "shutdown_date", "expiration_date", "endOfLifeTime")
_STAGE, _RETIRED = "lifecycle", "retired"
_MAX_DATE: Final = 40


class ModelLifecycle(NamedTuple):
    """The end of a model, in Unix seconds; 0 where it is not announced.

    Attributes:
        deprecated_at: when it was or will be deprecated.
        retires_at: when it is or will be removed.
        is_retired: whether it has been removed.
    """

    deprecated_at: int = 0
    retires_at: int = 0
    is_retired: bool = False


NO_END: Final = ModelLifecycle()
# By provider and the provider's name for the model.
ModelLifecycles = dict[tuple[str, str], ModelLifecycle]


def seconds_of(day: date) -> int:
    """Return the beginning of a day in Unix seconds, in UTC."""
    return int(datetime.combine(day, time(), UTC).timestamp())


def lifecycle_of(entry: Mapping[str, Any]) -> ModelLifecycle:
    """Return the lifecycle in a provider's description of a model; texts of no date are ignored."""
    return ModelLifecycle(
        next(filter(None, (_seconds(entry.get(name)) for name in _DEPRECATED)), 0),
        next(filter(None, (_seconds(entry.get(name)) for name in _RETIRES)), 0),
        entry.get(_STAGE) == _RETIRED,
    )


def _seconds(value: object) -> int:
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_DATE:
        return 0
    try:
        moment = datetime.fromisoformat(value)
        return max(0, int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()))
    except (ArithmeticError, ValueError):
        return 0
