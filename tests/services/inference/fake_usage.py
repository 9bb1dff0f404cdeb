"""A place for usage records, for tests that use none."""

from services.common.messages.usage_batch import UsageBatch


async def no_usage(batch: UsageBatch) -> None:
    """Take usage records."""
