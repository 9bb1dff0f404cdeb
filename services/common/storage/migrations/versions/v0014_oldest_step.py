"""The oldest step whose programs still work with the tables, beside the step that they are at."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add the column; whoever takes the steps writes it."""
    op.add_column("alembic_version", sa.Column("oldest_step", sa.String(32), nullable=True))
