"""Tables of keys, users and teams, of admin keys, and of the audit log."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Table,
    Text,
    false,
    func,
)

from services.accounts.plans import PLANS
from services.common.grpc.admin_scopes import ALL
from services.common.grpc.roles import ROLES
from services.common.storage.database import metadata

IS_PLAN = f"plan IN ({', '.join(map(repr, PLANS))})"
IS_ROLE = f"role IN ({', '.join(map(repr, ROLES))})"

# In place of the beginning of a key, in records of people of an issuer.
SIGN_IN_PREFIX = "(sign-in)"

teams = Table(
    "teams",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("plan", String(32), CheckConstraint(IS_PLAN, name="plan"), nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
)

users = Table(
    "users",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("team_id", String(64), ForeignKey("teams.id"), index=True),
    Column("plan", String(32), CheckConstraint(IS_PLAN, name="plan"), nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    # The role that an administrator or an invitation has set, or NULL.
    Column("role", String(16), CheckConstraint(IS_ROLE, name="role")),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("hash", LargeBinary(32), nullable=False, unique=True),
    Column("prefix", String(16), nullable=False, index=True),
    Column("user_id", String(64), ForeignKey("users.id"), nullable=False, index=True),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("revoked_at_ms", BigInteger),
    Column("name", String(128), nullable=False, server_default=""),
    Column("expires_at_ms", BigInteger),
    Column("disabled", Boolean, nullable=False, server_default=false()),
    # The key that this key replaces by rotation; a key is rotated at most once.
    Column("replaces", String(64), index=True, unique=True),
    # Whether a sign-in with the key has the user's role.
    Column("for_sign_in", Boolean, nullable=False, server_default=false()),
)

admin_keys = Table(
    "admin_keys",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("hash", LargeBinary(32), nullable=False, unique=True),
    Column("prefix", String(16), nullable=False),
    Column("name", String(128), nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("revoked_at_ms", BigInteger),
    Column("scopes", String(64), nullable=False, server_default=ALL),  # separated by commas
)

audit_log = Table(
    "audit_log",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("actor", String(64), nullable=False),
    Column("action", String(64), nullable=False),
    Column("subject_kind", String(16), nullable=False),
    Column("subject_id", String(64), nullable=False),
    # JSON objects, or NULL.
    Column("before", Text),
    Column("after", Text),
    Column("request_id", String(128), nullable=False),
    Column("actor_name", String(128), nullable=False, server_default=""),
    Column("address", String(64), nullable=False, server_default=""),
    Index("ix_audit_log_at_ms", "at_ms", "id"),
    Index("ix_audit_log_subject_id", "subject_id", "at_ms", "id"),
)

# The effective plan of a user: that of the team, if there is a team.
plan_in_force = func.coalesce(teams.c.plan, users.c.plan)
