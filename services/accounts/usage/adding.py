"""SQL that adds sums to the tables of sums. Pure.

All transactions add to the tables in one order, and to rows in the order of their keys, which
prevents deadlocks. The rows of all users are added last, since every worker waits for them.
"""

from collections.abc import Iterator, Sequence

from sqlalchemy import Table

from gateway.accounts.v1.usage_pb2 import (
    USAGE_OUTCOME_CANCELLED,
    USAGE_OUTCOME_FAILED,
    USAGE_OUTCOME_SERVED,
)
from services.accounts.usage.latency import ADDED, BOUNDS, BUCKETS, MAXIMA, MEASURES
from services.accounts.usage.sums import KEYS, SUMS
from services.accounts.usage.tables import (
    HOUR_MS,
    MAXIMUMS,
    TOKENS,
    days,
    hours,
    model_hours,
    records,
)

# What the sums of a record are made of.
SUMMED_UP = (
    *("time_ms", "user_id", "team_id", "key_id", "model", "provider", "outcome", "requests"),
    *("first_content_ms", "duration_ms", *TOKENS, "cost_pusd", "estimated"),
)
# Columns of sums that are NULL if nothing was counted.
_NULLABLE = frozenset((*ADDED, *MAXIMUMS))


def adding_to(table: Table) -> str:
    """Return the end of an INSERT that adds its rows to those of a table of sums."""
    return f"ON CONFLICT ({', '.join(KEYS[table.name])}) DO UPDATE SET " + ", ".join(
        f"{name} = {_merged(f'{table.name}.{name}', f'excluded.{name}', name)}" for name in SUMS
    )


def _merged(stored: str, added: str, name: str) -> str:
    if name in MAXIMUMS:
        return f"COALESCE(CASE WHEN {stored} > {added} THEN {stored} ELSE {added} END, {stored})"
    if name in _NULLABLE:
        return f"COALESCE({stored} + {added}, {stored}, {added})"
    return f"{stored} + {added}"


def adding_rows_to_sqlite(table: Table) -> str:
    """Return the statement that adds a row of `sums_of`, for `executemany`."""
    names = (*KEYS[table.name], *SUMS)
    values = ", ".join(f"?{number + 1}" for number in range(len(names)))
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({values}) {adding_to(table)}"


def _adding_in_postgresql(source: str, returns: str) -> str:
    """Return the statement that adds the sums of records.

    Args:
        source: writes records, and returns the columns `SUMMED_UP` of each.
        returns: what the statement returns of the records: their number, or their ids.
    """
    measured = ", ".join(
        f"CASE WHEN requests = 1 AND outcome = {USAGE_OUTCOME_SERVED} THEN {measure} END"
        f" AS {measure}"
        for measure in MEASURES
    )
    others = ", ".join(name for name in SUMMED_UP if name not in MEASURES)
    hour_key = KEYS[hours.name]
    of_records = {
        "requests": "SUM(requests)",
        "failed_requests": _requests_with(USAGE_OUTCOME_FAILED),
        **{name: f"SUM({name})" for name in TOKENS},
        "cost_pusd": "COALESCE(SUM(cost_pusd), 0)",
        "unpriced": "SUM(CASE WHEN cost_pusd IS NULL THEN 1 ELSE 0 END)",
        "estimated": "SUM(estimated)",
        "cancelled_requests": _requests_with(USAGE_OUTCOME_CANCELLED),
        **{measure: f"SUM({measure})" for measure in MEASURES},
        **dict(_bucket_counts()),
        **{MAXIMA[measure]: f"MAX({measure})" for measure in MEASURES},
    }
    summed = (
        f"SELECT CAST(time_ms / {HOUR_MS} AS integer) AS hour, {', '.join(hour_key[1:])}, "
        f"{', '.join(f'{of_records[name]} AS {name}' for name in SUMS)} "
        f"FROM measured GROUP BY {_places(hour_key)}"
    )
    return (
        f"WITH written AS ({source} RETURNING {', '.join(('id', *SUMMED_UP))}), "
        f"measured AS (SELECT {others}, {measured} FROM written), "
        f"summed AS MATERIALIZED ({summed}), "
        # PostgreSQL executes the last of them first.
        f"to_models AS ({_adding_sums(model_hours, 'hour')}), "
        f"to_hours AS ({_adding_sums(hours, 'hour')}), "
        f"to_days AS ({_adding_sums(days, 'hour / 24')}) "
        f"SELECT {returns} FROM written"
    )


def _requests_with(outcome: int) -> str:
    return f"SUM(CASE WHEN outcome = {outcome} THEN requests ELSE 0 END)"


def _bucket_counts() -> Iterator[tuple[str, str]]:
    """Yield the columns of buckets, with their numbers of records."""
    for measure in MEASURES:
        lower = ""
        for name, bound in zip(BUCKETS[measure], (*BOUNDS, None), strict=True):
            upper = "" if bound is None else f"{measure} <= {bound}"
            condition = " AND ".join(filter(None, (lower, upper)))
            yield name, f"NULLIF(COUNT(*) FILTER (WHERE {condition}), 0)"
            lower = f"{measure} > {bound}"


def _adding_sums(table: Table, time: str) -> str:
    """Return the statement that adds the sums of hours to a table."""
    key = KEYS[table.name]
    values = [f"{'MAX' if name in MAXIMUMS else 'SUM'}({name})" for name in SUMS]
    return (
        f"INSERT INTO {table.name} ({', '.join((*key, *SUMS))}) "
        f"SELECT {', '.join((time, *key[1:], *values))} FROM summed "
        f"GROUP BY {_places(key)} ORDER BY {_places(key)} {adding_to(table)}"
    )


def _places(key: Sequence[str]) -> str:
    return ", ".join(str(place) for place in range(1, len(key) + 1))


def adding_records_to_postgresql(names: Sequence[str], returns: str = "count(*)") -> str:
    """Return the statement that adds the records that are new, and their sums.

    Its parameters are arrays with the values of the columns `names`; it returns the number of the
    new records, or their ids.
    """
    arrays = ", ".join(
        f"CAST(${number} AS {records.c[name].type.compile()}[])"
        for number, name in enumerate(names, 1)
    )
    return _adding_in_postgresql(
        f"INSERT INTO {records.name} ({', '.join(names)}) "
        f"SELECT * FROM unnest({arrays}) ON CONFLICT (id) DO NOTHING",
        returns,
    )
