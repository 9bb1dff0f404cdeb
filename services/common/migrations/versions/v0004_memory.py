"""Memories: turns, keys, summaries, jobs and locks."""

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the tables."""
