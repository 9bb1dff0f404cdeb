"""Table of invitations."""

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, LargeBinary, String, Table

from services.accounts.tables import IS_PLAN, IS_ROLE
from services.common.storage.database import metadata

invitations = Table(
    "invitations",
    metadata,
    Column("id", String(64), primary_key=True),
    # SHA-256 of the token.
    Column("hash", LargeBinary(32), nullable=False, unique=True),
    Column("role", String(16), CheckConstraint(IS_ROLE, name="role"), nullable=False),
    # Name or address of the invited person, or "".
    Column("user_name", String(64), nullable=False, server_default=""),
    Column("team_id", String(64), ForeignKey("teams.id"), index=True),
    Column("plan", String(32), CheckConstraint(IS_PLAN, name="plan")),
    # Id of a user or an admin key, or `command line`.
    Column("created_by", String(64), nullable=False, index=True),
    Column("created_by_name", String(128), nullable=False, server_default=""),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False, index=True),
    Column("accepted_at_ms", BigInteger),
    Column("accepted_user_id", String(64), ForeignKey("users.id"), index=True),
)
