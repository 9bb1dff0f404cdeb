"""Tables of usage: a record per model of a request, and sums by day (UTC).

Amounts are picodollars (10^-12 US dollars). A row of sums is for one day, user, team, key, model
and provider.
"""

from sqlalchemy import BigInteger, Column, Integer, SmallInteger, String, Table

from services.common.storage.database import metadata

DAY_MS = 86_400_000

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

days = Table(
    "usage_days",
    metadata,
    Column("day", Integer, primary_key=True),  # days since 1970-01-01
    Column("user_id", String(64), primary_key=True),
    Column("team_id", String(64), primary_key=True),
    Column("key_id", String(64), primary_key=True),
    Column("model", String(512), primary_key=True),
    Column("provider", String(256), primary_key=True),
    Column("requests", BigInteger, nullable=False),
    Column("failed_requests", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("cache_written_tokens", BigInteger, nullable=False),
    Column("reasoning_tokens", BigInteger, nullable=False),
    Column("cost_pusd", BigInteger, nullable=False),
    Column("unpriced", BigInteger, nullable=False),
    Column("estimated", BigInteger, nullable=False, server_default="0"),
)
TOKENS = (
    *("input_tokens", "output_tokens", "cached_tokens"),
    *("cache_written_tokens", "reasoning_tokens"),
)
