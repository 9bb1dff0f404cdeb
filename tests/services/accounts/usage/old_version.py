"""Adds usage records as the versions before sums by hour did: SQL of step 0016."""

from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1.usage_pb2 import USAGE_OUTCOME_FAILED, UsageRecord
from services.common.storage.database import writing

_COLUMNS = (
    *("id", "time_ms", "request_id", "user_id", "team_id", "key_id", "endpoint"),
    *("requested_model", "model", "provider", "upstream_model", "step", "outcome", "requests"),
    *("attempts", "first_content_ms", "duration_ms", "input_tokens", "output_tokens"),
    *("cached_tokens", "cache_written_tokens", "reasoning_tokens", "cost_pusd", "estimated"),
)
_KEY = ("day", "user_id", "team_id", "key_id", "model", "provider")
_SUMS = (
    *("requests", "failed_requests", "input_tokens", "output_tokens", "cached_tokens"),
    *("cache_written_tokens", "reasoning_tokens", "cost_pusd", "unpriced", "estimated"),
)
_RECORD = text(
    f"INSERT INTO usage_records ({', '.join(_COLUMNS)}) "
    f"VALUES ({', '.join(f':{name}' for name in _COLUMNS)}) ON CONFLICT (id) DO NOTHING"
)
_DAY = text(
    f"INSERT INTO usage_days ({', '.join((*_KEY, *_SUMS))}) "
    f"VALUES ({', '.join(f':{name}' for name in (*_KEY, *_SUMS))}) "
    f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET "
    + ", ".join(f"{name} = usage_days.{name} + excluded.{name}" for name in _SUMS)
)


async def add_as_before(engine: AsyncEngine, records: Sequence[UsageRecord]) -> None:
    """Add the records that are new, and their sums of days."""
    for one in records:
        values = {name: getattr(one, name) for name in _COLUMNS if name != "requests"}
        values["requests"] = int(not one.is_part)
        values["estimated"] = int(one.estimated)
        for name in ("cost_pusd", "first_content_ms"):
            if not one.HasField(name):  # type: ignore[arg-type]  # the name is of any field
                values[name] = None
        async with writing(engine) as connection:
            if not (await connection.execute(_RECORD, values)).rowcount:
                continue
            failed = one.outcome == USAGE_OUTCOME_FAILED
            sums = values | {
                "day": one.time_ms // 86_400_000,
                "failed_requests": values["requests"] if failed else 0,
                "cost_pusd": values["cost_pusd"] or 0,
                "unpriced": int(values["cost_pusd"] is None),
            }
            await connection.execute(_DAY, {name: sums[name] for name in (*_KEY, *_SUMS)})
