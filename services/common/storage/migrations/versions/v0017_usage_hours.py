"""Sums of usage by hour, latencies in all sums, and which records are in them."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

_USAGE = (
    *("requests", "failed_requests", "input_tokens", "output_tokens", "cached_tokens"),
    *("cache_written_tokens", "reasoning_tokens", "cost_pusd", "unpriced", "estimated"),
)
_BOUNDS = (
    *(10, 13, 18, 24, 32, 42, 56, 75),
    *(100, 130, 180, 240, 320, 420, 560, 750),
    *(1000, 1300, 1800, 2400, 3200, 4200, 5600, 7500),
    *(10000, 13000, 18000, 24000, 32000, 42000, 56000, 75000),
    *(100000, 130000, 180000, 240000, 320000, 420000, 560000, 750000),
)
_MEASURES = ("first_content_ms", "duration_ms")
_LATENCIES = (
    *_MEASURES,
    *(
        f"{measure}_{bucket}"
        for measure in _MEASURES
        for bucket in (*(f"le_{bound}" for bound in _BOUNDS), "longer")
    ),
    *(f"{measure}_max" for measure in _MEASURES),
)
_CALLERS = (("user_id", 64), ("team_id", 64), ("key_id", 64))
_MODELS = (("model", 512), ("provider", 256))
_UNSUMMED = "ix_usage_records_unsummed"
# Building an index may take longer than the time that a statement usually has.
_INDEX_TIMEOUT_S = 6 * 3600.0


def upgrade() -> None:
    """Make the tables and add the columns; the records that exist are summed up later."""
    _create("usage_hours", (*_CALLERS, *_MODELS))
    _create("usage_model_hours", _MODELS)
    for name in ("user_id", "team_id", "key_id"):
        op.create_index(f"ix_usage_hours_{name}_hour", "usage_hours", [name, "hour"])
    for column in _activity():
        op.add_column("usage_days", column)
    for name in ("user_id", "team_id"):
        op.create_index(f"ix_usage_days_{name}_day", "usage_days", [name, "day"])
    op.add_column(
        "usage_records", sa.Column("summed", sa.SmallInteger(), nullable=False, server_default="0")
    )
    _create_index_of_unsummed()


def _create(table: str, names: Sequence[tuple[str, int]]) -> None:
    op.create_table(
        table,
        sa.Column("hour", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.String(length), nullable=False) for name, length in names),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _USAGE),
        *_activity(),
        sa.PrimaryKeyConstraint("hour", *(name for name, _ in names), name=f"pk_{table}"),
    )


def _activity() -> Sequence[sa.Column[int]]:
    return [
        sa.Column("cancelled_requests", sa.BigInteger(), nullable=False, server_default="0"),
        *(sa.Column(name, sa.BigInteger(), nullable=True) for name in _LATENCIES),
    ]


def _create_index_of_unsummed() -> None:
    """Index the records that are not in all sums yet: at first, all."""
    sql = f"CREATE INDEX {_UNSUMMED} ON usage_records (id) WHERE summed = 0"
    driver: Any = op.get_bind().connection.dbapi_connection
    if op.get_bind().dialect.name == "postgresql":
        driver.run_async(lambda connection: connection.execute(sql, timeout=_INDEX_TIMEOUT_S))
    else:
        op.execute(sql)
