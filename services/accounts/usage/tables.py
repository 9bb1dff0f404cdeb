"""Tables of usage: a record per model of a request, and sums by day and by hour (UTC).

Amounts are picodollars (10^-12 US dollars). A row of sums is for one day or hour, user, team, key,
model and provider; rows of all users together make reports that name no user, team or key fast.
The sums of a record are added in the transaction that adds the record.
"""

from collections.abc import Sequence

from sqlalchemy import BigInteger, Column, Index, Integer, SmallInteger, String, Table

from services.accounts.usage.latency import ADDED, DURATION, FIRST_CONTENT, MAXIMA
from services.common.storage.database import metadata

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

TOKENS = (
    *("input_tokens", "output_tokens", "cached_tokens"),
    *("cache_written_tokens", "reasoning_tokens"),
)
# Columns of sums: of usage, of activity, and the maximums of latencies.
USAGE_SUMS = ("requests", "failed_requests", *TOKENS, "cost_pusd", "unpriced", "estimated")
ACTIVITY_SUMS = ("cancelled_requests", *ADDED)
MAXIMUMS = (MAXIMA[FIRST_CONTENT], MAXIMA[DURATION])

# The columns are in the order of a record in a batch; see `recording`.
records = Table(
    "usage_records",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("time_ms", BigInteger, nullable=False),
    Column("request_id", String(128), nullable=False),
    Column("user_id", String(64), nullable=False),
    Column("team_id", String(64), nullable=False),
    Column("key_id", String(64), nullable=False),
    Column("endpoint", String(16), nullable=False),
    Column("requested_model", String(512), nullable=False),
    Column("model", String(512), nullable=False),
    Column("provider", String(256), nullable=False),
    Column("upstream_model", String(512), nullable=False),
    Column("step", String(256), nullable=False),
    Column("outcome", SmallInteger, nullable=False),
    Column("requests", SmallInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("first_content_ms", BigInteger),
    Column("duration_ms", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("cache_written_tokens", BigInteger, nullable=False),
    Column("reasoning_tokens", BigInteger, nullable=False),
    Column("cost_pusd", BigInteger),
    Column("estimated", SmallInteger, nullable=False, server_default="0"),
)


def _callers() -> Sequence[Column[str]]:
    return [Column(name, String(64), primary_key=True) for name in ("user_id", "team_id", "key_id")]


def _models() -> Sequence[Column[str]]:
    return [
        Column("model", String(512), primary_key=True),
        Column("provider", String(256), primary_key=True),
    ]


def _counts() -> Sequence[Column[int]]:
    return [Column(name, BigInteger, nullable=False) for name in USAGE_SUMS]


def _activity() -> Sequence[Column[int]]:
    """Return the columns of cancelled requests, and of latencies."""
    return [
        Column("cancelled_requests", BigInteger, nullable=False, server_default="0"),
        *(Column(name, BigInteger) for name in (*ADDED, *MAXIMUMS)),
    ]


days = Table(
    "usage_days",
    metadata,
    Column("day", Integer, primary_key=True),  # days since 1970-01-01
    *_callers(),
    *_models(),
    *_counts(),
    *_activity(),
    Index("ix_usage_days_user_id_day", "user_id", "day"),
    Index("ix_usage_days_team_id_day", "team_id", "day"),
)

hours = Table(
    "usage_hours",
    metadata,
    Column("hour", Integer, primary_key=True),  # hours since 1970-01-01 00:00
    *_callers(),
    *_models(),
    *_counts(),
    *_activity(),
    Index("ix_usage_hours_user_id_hour", "user_id", "hour"),
    Index("ix_usage_hours_team_id_hour", "team_id", "hour"),
    Index("ix_usage_hours_key_id_hour", "key_id", "hour"),
)

# Of requests with tags or an end user, a row for each of them.
label_days = Table(
    "usage_label_days",
    metadata,
    Column("day", Integer, primary_key=True),
    Column("label", String(32), primary_key=True),
    Column("value", String(64), primary_key=True),
    *_callers(),
    *_models(),
    *_counts(),
    Index("ix_usage_label_days_label_day", "label", "day"),
    Index("ix_usage_label_days_user_id_label_day", "user_id", "label", "day"),
)

model_hours = Table(
    "usage_model_hours",
    metadata,
    Column("hour", Integer, primary_key=True),
    *_models(),
    *_counts(),
    *_activity(),
)
