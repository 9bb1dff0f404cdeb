"""The purposes of files that OpenAI's clients send beside the first three."""

from alembic import op

revision = "0008"
down_revision = "0007"

_CONSTRAINT = "ck_files_purpose"
_FIRST = ("assistants", "batch", "fine_tune")
_ALL = (*_FIRST, "vision", "user_data", "evals")


def upgrade() -> None:
    """Allow the new purposes."""
    _allow(_ALL)


def _allow(purposes: tuple[str, ...]) -> None:
    # SQLite cannot change a constraint: there the table is written anew.
    with op.batch_alter_table("files") as files:
        files.drop_constraint(_CONSTRAINT, type_="check")
        files.create_check_constraint(_CONSTRAINT, f"purpose IN {purposes}")
