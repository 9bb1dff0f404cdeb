"""Usage records for tests."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1.usage_pb2 import (
    USAGE_OUTCOME_SERVED,
    RecordUsageRequest,
    UsageRecord,
)
from services.accounts.usage.recording import add_records
from services.common.ids import RECORD, time_prefix
from services.common.messages.usage_batch import UsageBatch

DAY_MS = 86_400_000
# 2026-11-23 00:00 UTC
MIDNIGHT_MS = 20_780 * DAY_MS


def record(number: int, **fields: Any) -> UsageRecord:
    """Return a record with an id of its time and number."""
    time_ms = fields.get("time_ms", MIDNIGHT_MS)
    defaults: dict[str, Any] = {
        "id": f"{time_prefix(RECORD, time_ms)}_{number:05}",
        "time_ms": time_ms,
        "request_id": f"req_{number}",
        "user_id": "user_1",
        "key_id": "key_1",
        "endpoint": "chat",
        "requested_model": "fast",
        "model": "fast",
        "provider": "openai",
        "upstream_model": "gpt-4o",
        "step": "primary",
        "outcome": USAGE_OUTCOME_SERVED,
        "attempts": 1,
        "first_content_ms": 5,
        "duration_ms": 9,
        "input_tokens": 100,
        "output_tokens": 10,
        "cost_pusd": 350_000_000,
    }
    return UsageRecord(**{name: value for name, value in (defaults | fields).items()})


def unpriced(number: int, **fields: Any) -> UsageRecord:
    """Return a record without a cost."""
    usage_record = record(number, **fields)
    usage_record.ClearField("cost_pusd")
    return usage_record


async def add(engine: AsyncEngine, records: Sequence[UsageRecord]) -> int:
    """Add records; return how many were new."""
    return await add_records(engine, UsageBatch.of(RecordUsageRequest(records=records)))
