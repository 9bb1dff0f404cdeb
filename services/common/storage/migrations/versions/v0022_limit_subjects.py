"""Limits of further kinds of subjects: the kind is checked by the services alone."""

from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Remove the check."""
    with op.batch_alter_table("limits") as limits:
        limits.drop_constraint("ck_limits_subject_kind", type_="check")
