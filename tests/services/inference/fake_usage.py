"""A place for usage records, for tests that use none."""

from collections.abc import Sequence

from gateway.accounts.v1.usage_pb2 import UsageRecord


async def no_usage(records: Sequence[UsageRecord]) -> None:
    """Take usage records."""
