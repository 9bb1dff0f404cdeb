"""What requests used and cost, the sums of that by day and hour, and the log of requests."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

_TOKENS = (
    *("input_tokens", "output_tokens", "cached_tokens"),
    *("cache_written_tokens", "reasoning_tokens"),
)
_USAGE = (*("requests", "failed_requests", *_TOKENS, "cost_pusd", "unpriced", "estimated"),)
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
# Sorted by bytes, whatever the collation of the database: bounds of partitions are prefixes.
_SORTED_ID = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
_CALLERS = (("user_id", 64), ("team_id", 64), ("key_id", 64))
_MODELS = (("model", 512), ("provider", 256))


def create() -> None:
    """Create the tables."""
    _create_records()
    _create_days()
    _create_hours("usage_hours", (*_CALLERS, *_MODELS))
    _create_hours("usage_model_hours", _MODELS)
    for name in ("user_id", "team_id", "key_id"):
        op.create_index(f"ix_usage_hours_{name}_hour", "usage_hours", [name, "hour"])
    _create_label_days()
    _create_request_log()


def _create_records() -> None:
    op.create_table(
        "usage_records",
        sa.Column("id", _SORTED_ID, nullable=False),
        sa.Column("time_ms", sa.BigInteger(), nullable=False),
        sa.Column("request_id", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("team_id", sa.String(64), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("endpoint", sa.String(16), nullable=False),
        sa.Column("requested_model", sa.String(512), nullable=False),
        sa.Column("model", sa.String(512), nullable=False),
        sa.Column("provider", sa.String(256), nullable=False),
        sa.Column("upstream_model", sa.String(512), nullable=False),
        sa.Column("step", sa.String(256), nullable=False),
        sa.Column("outcome", sa.SmallInteger(), nullable=False),
        sa.Column("requests", sa.SmallInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("first_content_ms", sa.BigInteger(), nullable=True),
        sa.Column("duration_ms", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _TOKENS),
        sa.Column("cost_pusd", sa.BigInteger(), nullable=True),
        sa.Column("estimated", sa.SmallInteger(), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("id", name="pk_usage_records"),
        # The partitions are created by `services.accounts.usage.partitions`.
        postgresql_partition_by="RANGE (id)",
    )


def _create_days() -> None:
    op.create_table(
        "usage_days",
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("team_id", sa.String(64), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("model", sa.String(512), nullable=False),
        sa.Column("provider", sa.String(256), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.Column("failed_requests", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _TOKENS),
        sa.Column("cost_pusd", sa.BigInteger(), nullable=False),
        sa.Column("unpriced", sa.BigInteger(), nullable=False),
        sa.Column("estimated", sa.BigInteger(), nullable=False, server_default="0"),
        *_activity(),
        sa.PrimaryKeyConstraint(
            *("day", "user_id", "team_id", "key_id", "model", "provider"), name="pk_usage_days"
        ),
    )
    for name in ("user_id", "team_id"):
        op.create_index(f"ix_usage_days_{name}_day", "usage_days", [name, "day"])


def _create_hours(table: str, names: Sequence[tuple[str, int]]) -> None:
    op.create_table(
        table,
        sa.Column("hour", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.String(length), nullable=False) for name, length in names),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _USAGE),
        *_activity(),
        sa.PrimaryKeyConstraint("hour", *(name for name, _ in names), name=f"pk_{table}"),
    )


def _create_label_days() -> None:
    key: list[sa.Column[Any]] = [
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("label", sa.String(32), nullable=False),
        sa.Column("value", sa.String(64), nullable=False),
        *(sa.Column(name, sa.String(length), nullable=False) for name, length in _CALLERS),
        *(sa.Column(name, sa.String(length), nullable=False) for name, length in _MODELS),
    ]
    op.create_table(
        "usage_label_days",
        *key,
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _USAGE),
        sa.PrimaryKeyConstraint(*(column.name for column in key), name="pk_usage_label_days"),
    )
    for names in (("label", "day"), ("user_id", "label", "day")):
        op.create_index(f"ix_usage_label_days_{'_'.join(names)}", "usage_label_days", [*names])


def _activity() -> Sequence[sa.Column[int]]:
    return [
        sa.Column("cancelled_requests", sa.BigInteger(), nullable=False, server_default="0"),
        *(sa.Column(name, sa.BigInteger(), nullable=True) for name in _LATENCIES),
    ]


def _create_request_log() -> None:
    op.create_table(
        "request_log",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("time_ms", sa.BigInteger(), nullable=False),
        sa.Column("request_id", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("team_id", sa.String(64), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("endpoint", sa.String(256), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("error_code", sa.String(64), nullable=False),
        sa.Column("requested_model", sa.String(512), nullable=False),
        sa.Column("model", sa.String(512), nullable=False),
        sa.Column("provider", sa.String(256), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("duration_ms", sa.BigInteger(), nullable=False),
        sa.Column("first_content_ms", sa.BigInteger(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_pusd", sa.BigInteger(), nullable=True),
        sa.Column("has_bodies", sa.SmallInteger(), nullable=False),
        sa.Column("search_text", sa.Text(), nullable=False),
        sa.Column("details", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_request_log"),
    )
    op.create_index("ix_request_log_user_id_id", "request_log", ["user_id", "id"])
    op.create_index("ix_request_log_key_id_id", "request_log", ["key_id", "id"])
    op.create_index("ix_request_log_request_id_id", "request_log", ["request_id", "id"])
    op.create_table(
        "request_log_labels",
        sa.Column("entry_id", sa.String(64), nullable=False),
        sa.Column("label", sa.String(32), nullable=False),
        sa.Column("value", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("entry_id", "label", name="pk_request_log_labels"),
    )
    op.create_index(
        "ix_request_log_labels_label_value_entry_id",
        "request_log_labels",
        ["label", "value", "entry_id"],
    )
