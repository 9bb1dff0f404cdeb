"""Sums of the records of a batch by their labels and by day."""

from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import delete, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.accounts.v1.usage_pb2 import USAGE_OUTCOME_FAILED
from services.accounts.usage.tables import DAY_MS, TOKENS, USAGE_SUMS, label_days
from services.common.labels import END_USER
from services.common.messages.usage_batch import BIGGEST, OWN, SHARED, UsageBatch
from services.common.storage.database import execute_many

KEY: Final = tuple(column.name for column in label_days.primary_key.columns)
_ADD = text(
    f"INSERT INTO {label_days.name} ({', '.join((*KEY, *USAGE_SUMS))}) "
    f"VALUES ({', '.join(f':{name}' for name in (*KEY, *USAGE_SUMS))}) "
    f"ON CONFLICT ({', '.join(KEY)}) DO UPDATE SET "
    + ", ".join(f"{name} = {label_days.name}.{name} + excluded.{name}" for name in USAGE_SUMS)
)
_OF_SHARED: Final = ("user_id", "team_id", "key_id", "model", "provider")

Row = dict[str, int | str]


async def add_label_sums(connection: AsyncConnection, batch: UsageBatch) -> None:
    """Add the sums of the labels of new records, in the transaction that adds the records."""
    await execute_many(connection, _ADD, label_sums_of(batch))


async def unname_labels(connection: AsyncConnection, user_id: str, day_count: int) -> int:
    """Delete sums of a user's end users, and move those of tags to nobody, of some days.

    Returns:
        The number of rows.
    """
    theirs = label_days.c.user_id == user_id
    days = select(label_days.c.day).where(theirs).distinct().order_by(label_days.c.day)
    removal = delete(label_days).where(theirs, label_days.c.day.in_(days.limit(day_count)))
    removed = (await connection.execute(removal.returning(*label_days.c))).mappings().all()
    sums: dict[tuple[int | str, ...], Row] = {}
    for row in removed:
        if row["label"] != END_USER:
            _add(
                sums, {**row, "user_id": "", "key_id": ""}, {name: row[name] for name in USAGE_SUMS}
            )
    await execute_many(connection, _ADD, [sums[key] for key in sorted(sums)])
    return len(removed)


def label_sums_of(batch: UsageBatch) -> Sequence[Row]:
    """Return the rows to add, in the order of their keys, which prevents deadlocks. Pure."""
    sums: dict[tuple[int | str, ...], Row] = {}
    for shared_values, rows in batch.groups.items():
        shared = dict(zip(SHARED, shared_values, strict=True))
        for own_values in rows:
            labels = batch.labels.get(own_values[0])
            if labels is None:
                continue
            own = dict(zip(OWN, own_values, strict=True))
            amounts = _amounts(shared, own)
            for label, value in labels:
                row: Row = {"day": own["time_ms"] // DAY_MS, "label": label, "value": value}
                row |= {name: shared[name].replace("\0", "\ufffd") for name in _OF_SHARED}
                _add(sums, row, amounts)
    return [sums[key] for key in sorted(sums)]


def _add(
    sums: dict[tuple[int | str, ...], Row], row: Mapping[str, int | str], amounts: Mapping[str, int]
) -> None:
    """Add amounts to the row with the key of another one."""
    key = {name: row[name] for name in KEY}
    before = sums.setdefault(tuple(key.values()), key)
    for name, amount in amounts.items():
        before[name] = min(BIGGEST, int(before.get(name, 0)) + amount)


def _amounts(shared: Mapping[str, int], own: Mapping[str, int | None]) -> Mapping[str, int]:
    """Return the values of `USAGE_SUMS` for a record."""
    requests, cost = shared["requests"], own["cost_pusd"]
    return {
        "requests": requests,
        "failed_requests": requests if shared["outcome"] == USAGE_OUTCOME_FAILED else 0,
        **{name: own[name] or 0 for name in TOKENS},
        "cost_pusd": cost or 0,
        "unpriced": int(cost is None),
        "estimated": own["estimated"] or 0,
    }
