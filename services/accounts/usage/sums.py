"""Sums of the records of a batch, by hour and by day. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gateway.accounts.v1.usage_pb2 import (
    USAGE_OUTCOME_CANCELLED,
    USAGE_OUTCOME_FAILED,
    USAGE_OUTCOME_SERVED,
)
from services.accounts.usage.latency import ADDED, MEASURES, count_in_buckets
from services.accounts.usage.tables import (
    ACTIVITY_SUMS,
    HOUR_MS,
    MAXIMUMS,
    TOKENS,
    USAGE_SUMS,
    days,
    hours,
    model_hours,
)
from services.common.messages.usage_batch import BIGGEST, OWN, SHARED, Own, Shared, UsageBatch

# The grouping columns of each table; then come `SUMS`.
KEYS = {
    table.name: tuple(column.name for column in table.primary_key.columns)
    for table in (days, hours, model_hours)
}
# The summed columns of each table.
SUMS = (*USAGE_SUMS, *ACTIVITY_SUMS, *MAXIMUMS)

# A row of a table: its key, then `SUMS`.
Row = tuple[int | str | None, ...]
_Key = tuple[int | str, ...]

_TIME = OWN.index("time_ms")
_COST = OWN.index("cost_pusd")
_ESTIMATED = OWN.index("estimated")
_FIRST_TOKENS = OWN.index(TOKENS[0])
_MEASURES = [OWN.index(name) for name in MEASURES]
_OF_SHARED = tuple(SHARED.index(name) for name in KEYS[hours.name][1:])
_OUTCOME, _REQUESTS = SHARED.index("outcome"), SHARED.index("requests")
_FIRST_LATENCY = SUMS.index(ADDED[0])
_FIRST_MAXIMUM = SUMS.index(MAXIMUMS[0])
_NO_LATENCIES = [0] * len(ADDED)


class BatchSums(NamedTuple):
    """Rows for the tables of sums, each in the order of its keys."""

    days: Sequence[Row]
    hours: Sequence[Row]
    model_hours: Sequence[Row]


def sums_of(batch: UsageBatch) -> BatchSums:
    """Return the sums of a batch."""
    of_hours: dict[_Key, list[int]] = {}
    for shared, rows in batch.groups.items():
        names = tuple(shared[place] for place in _OF_SHARED)
        for hour, of_hour in _by_hour(rows):
            _add(of_hours, (hour, *names), _amounts(shared, of_hour))
    of_days: dict[_Key, list[int]] = {}
    of_models: dict[_Key, list[int]] = {}
    for key, amounts in of_hours.items():
        _add(of_days, (int(key[0]) // 24, *key[1:]), amounts)
        _add(of_models, (key[0], *key[-2:]), amounts)
    return BatchSums(_rows(of_days), _rows(of_hours), _rows(of_models))


def _by_hour(rows: Sequence[Own]) -> Iterator[tuple[int, Sequence[Own]]]:
    """Yield hours with their rows."""
    times = [row[_TIME] for row in rows]
    if min(times) // HOUR_MS == max(times) // HOUR_MS:
        yield times[0] // HOUR_MS, rows
        return
    rows_by_hour: dict[int, list[Own]] = {}
    for row in rows:
        rows_by_hour.setdefault(row[_TIME] // HOUR_MS, []).append(row)
    yield from rows_by_hour.items()


def _amounts(shared: Shared, rows: Sequence[Own]) -> list[int]:
    """Return the values of `SUMS` for records with the same shared values."""
    outcome, requests = shared[_OUTCOME], shared[_REQUESTS] * len(rows)
    columns = list(zip(*rows, strict=True))
    costs = [cost for cost in columns[_COST] if cost is not None]
    latencies, maximums = _NO_LATENCIES, [0, 0]
    if outcome == USAGE_OUTCOME_SERVED and requests:
        measured = [[ms for ms in columns[place] if ms is not None] for place in _MEASURES]
        latencies = [sum(durations) for durations in measured]
        for durations in measured:
            latencies += count_in_buckets(durations)
        maximums = [max(durations, default=0) for durations in measured]
    return [
        requests,
        requests if outcome == USAGE_OUTCOME_FAILED else 0,
        *map(sum, columns[_FIRST_TOKENS : _FIRST_TOKENS + len(TOKENS)]),
        sum(costs),
        len(rows) - len(costs),
        sum(columns[_ESTIMATED]),
        requests if outcome == USAGE_OUTCOME_CANCELLED else 0,
        *latencies,
        *maximums,
    ]


def _add(totals: dict[_Key, list[int]], key: _Key, amounts: list[int]) -> None:
    before = totals.get(key)
    if before is None:
        totals[key] = amounts
        return
    totals[key] = [
        *(a + b for a, b in zip(before[:_FIRST_MAXIMUM], amounts, strict=False)),
        *map(max, before[_FIRST_MAXIMUM:], amounts[_FIRST_MAXIMUM:]),
    ]


def _rows(totals: Mapping[_Key, list[int]]) -> Sequence[Row]:
    """Return rows in the order of their keys; latencies that do not occur are NULL."""
    return [
        (
            *key,
            *(min(amount, BIGGEST) for amount in amounts[:_FIRST_LATENCY]),
            *(min(amount, BIGGEST) or None for amount in amounts[_FIRST_LATENCY:]),
        )
        for key, amounts in sorted(totals.items())
    ]
