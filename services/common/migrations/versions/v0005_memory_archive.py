"""The index of archived turns."""

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the tables."""
