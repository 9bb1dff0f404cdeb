"""Teams, users, API keys, sessions of the console and the gateway's own secrets."""

import sqlalchemy as sa
from alembic import op

_PLANS = "plan IN ('personal_free', 'personal_pro', 'team_pro', 'enterprise')"

_ROLES = "role IN ('viewer', 'user', 'team_admin', 'admin')"


def create() -> None:
    """Create the tables."""
    op.create_table(
        "teams",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("plan", sa.String(32), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_teams"),
        sa.UniqueConstraint("name", name="uq_teams_name"),
        sa.CheckConstraint(_PLANS, name="ck_teams_plan"),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("team_id", sa.String(64)),
        sa.Column("plan", sa.String(32), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("role", sa.String(16)),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("name", name="uq_users_name"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_users_team_id"),
        sa.CheckConstraint(_PLANS, name="ck_users_plan"),
        sa.CheckConstraint(_ROLES, name="ck_users_role"),
    )
    op.create_index("ix_users_team_id", "users", ["team_id"])
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False),
        sa.Column("prefix", sa.String(16), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at_ms", sa.BigInteger()),
        sa.Column("name", sa.String(128), nullable=False, server_default=""),
        sa.Column("expires_at_ms", sa.BigInteger()),
        sa.Column("disabled", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("replaces", sa.String(64)),
        sa.Column("for_sign_in", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("hash", name="uq_api_keys_hash"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_api_keys_user_id"),
    )
    op.create_index("ix_api_keys_prefix", "api_keys", ["prefix"])
    op.create_index("ix_api_keys_user_id", "api_keys", ["user_id"])
    op.create_index("ix_api_keys_replaces", "api_keys", ["replaces"], unique=True)
    op.create_table(
        "console_sessions",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("role", sa.String(16)),
        sa.Column("method", sa.String(16), nullable=False),
        sa.Column("admin_key_id", sa.String(64), nullable=False, server_default=""),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("used_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("ends_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_console_sessions"),
        sa.UniqueConstraint("hash", name="uq_console_sessions_hash"),
        sa.ForeignKeyConstraint(["key_id"], ["api_keys.id"], name="fk_console_sessions_key_id"),
        sa.CheckConstraint(_ROLES, name="ck_console_sessions_role"),
    )
    op.create_index("ix_console_sessions_key_id", "console_sessions", ["key_id"])
    op.create_index("ix_console_sessions_ends_at_ms", "console_sessions", ["ends_at_ms"])
    op.create_table(
        "invitations",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("user_name", sa.String(64), nullable=False, server_default=""),
        sa.Column("team_id", sa.String(64)),
        sa.Column("plan", sa.String(32)),
        sa.Column("created_by", sa.String(64), nullable=False),
        sa.Column("created_by_name", sa.String(128), nullable=False, server_default=""),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("accepted_at_ms", sa.BigInteger()),
        sa.Column("accepted_user_id", sa.String(64)),
        sa.PrimaryKeyConstraint("id", name="pk_invitations"),
        sa.UniqueConstraint("hash", name="uq_invitations_hash"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_invitations_team_id"),
        sa.ForeignKeyConstraint(
            ["accepted_user_id"], ["users.id"], name="fk_invitations_accepted_user_id"
        ),
        sa.CheckConstraint(_ROLES, name="ck_invitations_role"),
        sa.CheckConstraint(_PLANS, name="ck_invitations_plan"),
    )
    op.create_index("ix_invitations_team_id", "invitations", ["team_id"])
    op.create_index("ix_invitations_created_by", "invitations", ["created_by"])
    op.create_index("ix_invitations_accepted_user_id", "invitations", ["accepted_user_id"])
    op.create_index("ix_invitations_expires_at_ms", "invitations", ["expires_at_ms"])
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", "key_id", name="pk_secrets"),
    )
