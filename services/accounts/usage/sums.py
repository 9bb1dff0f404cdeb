"""Sums of the records of a batch, by day. Pure."""

from collections.abc import Iterator, Sequence

from gateway.accounts.v1.usage_pb2 import USAGE_OUTCOME_FAILED
from services.accounts.usage.tables import DAY_MS, TOKENS, days
from services.common.messages.usage_batch import BIGGEST, OWN, SHARED, Own, UsageBatch

# The grouping columns, and the summed columns, of the table.
GROUP = tuple(column.name for column in days.primary_key.columns)
SUMS = tuple(column.name for column in days.columns if column.name not in GROUP)

_TIME = OWN.index("time_ms")
_COST = OWN.index("cost_pusd")
_ESTIMATED = OWN.index("estimated")
_FIRST_TOKENS = OWN.index(TOKENS[0])
_OF_SHARED = tuple(SHARED.index(name) for name in GROUP[1:])
_OUTCOME, _REQUESTS = SHARED.index("outcome"), SHARED.index("requests")


def sums_of(batch: UsageBatch) -> Sequence[tuple[int | str, ...]]:
    """Return rows of the table of sums, in the order of their keys: `GROUP`, then `SUMS`."""
    totals: dict[tuple[int | str, ...], list[int]] = {}
    for shared, rows in batch.groups.items():
        names = tuple(shared[place] for place in _OF_SHARED)
        requests = shared[_REQUESTS]
        failures = requests if shared[_OUTCOME] == USAGE_OUTCOME_FAILED else 0
        for day, of_day in _by_day(rows):
            columns = list(zip(*of_day, strict=True))
            tokens = columns[_FIRST_TOKENS : _FIRST_TOKENS + len(TOKENS)]
            costs = [cost for cost in columns[_COST] if cost is not None]
            added = [
                len(of_day) * requests,
                len(of_day) * failures,
                *map(sum, tokens),
                sum(costs),
                len(of_day) - len(costs),
                sum(columns[_ESTIMATED]),
            ]
            total_before = totals.get((day, *names))
            if total_before is not None:
                added = [a + b for a, b in zip(total_before, added, strict=True)]
            totals[(day, *names)] = added
    return [
        (*key, *(min(amount, BIGGEST) for amount in sums)) for key, sums in sorted(totals.items())
    ]


def _by_day(rows: Sequence[Own]) -> Iterator[tuple[int, Sequence[Own]]]:
    """Yield days with their rows."""
    times = [row[_TIME] for row in rows]
    if min(times) // DAY_MS == max(times) // DAY_MS:
        yield times[0] // DAY_MS, rows
        return
    rows_by_day: dict[int, list[Own]] = {}
    for row in rows:
        rows_by_day.setdefault(row[_TIME] // DAY_MS, []).append(row)
    yield from rows_by_day.items()
