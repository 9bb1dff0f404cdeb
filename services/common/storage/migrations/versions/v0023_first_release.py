"""All tables of the first release."""

import sqlalchemy as sa
from alembic import op

from services.common.storage.migrations.first_release import (
    accounts,
    administration,
    articles,
    batches,
    files,
    limits,
    memory,
    memory_archive,
    memory_profile,
    responses,
    usage,
    vector_stores,
)

revision = "0023"
down_revision = None

# In an order in which each refers to earlier ones alone.
_AREAS = (
    accounts,
    administration,
    files,
    articles,
    memory,
    memory_archive,
    memory_profile,
    responses,
    limits,
    usage,
    batches,
    vector_stores,
)


def upgrade() -> None:
    """Create the tables, and the column of the oldest step, which `record` writes."""
    for area in _AREAS:
        area.create()
    op.add_column("alembic_version", sa.Column("oldest_step", sa.String(32), nullable=True))
