"""Times as text."""

from datetime import UTC, datetime


def utc_time(ms: int) -> str:
    """Return a time in Unix milliseconds by RFC 3339, in UTC and whole seconds."""
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
