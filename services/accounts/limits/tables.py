"""The tables of limits and of the leases on them."""

from sqlalchemy import BigInteger, Column, Index, Integer, String, Table, Text

from services.accounts.limits.rules import NUMBERS
from services.common.storage.database import metadata

# Of subjects whose limits are in the settings there are rows without limits, which claims lock.
limits = Table(
    "limits",
    metadata,
    Column("subject_kind", String(16), primary_key=True),
    Column("subject_id", String(64), primary_key=True),
    *(Column(name, BigInteger) for name in NUMBERS),
    Column("allowed_models", Text),  # a JSON array
    Column("updated_at_ms", BigInteger, nullable=False),
    # A JSON object: of each budget that has reached its soft limit, the window and the amount.
    Column("soft_limits_reached", Text),
    # A JSON array. With groups, `allowed_models` is not NULL: programs that do not know groups then
    # allow too little rather than everything.
    Column("allowed_model_groups", Text),
    # Of a tag, its key and value; of an end user, the id that the caller has sent.
    Column("subject_name", Text),
)

# The amount that each worker holds of an allowance: of the use of a measure by a subject in a
# window. The sum of the unexpired rows of an allowance never exceeds the limit, except by one
# reservation, and by the usage of answers beyond what was reserved for them. `reserved` is the part
# of `amount` that is not spent yet; after `reserved_until_ms` it counts as spent, since the worker
# may have ended.
allowances = Table(
    "allowances",
    metadata,
    Column("subject_kind", String(16), primary_key=True),
    Column("subject_id", String(64), primary_key=True),
    Column("measure", String(32), primary_key=True),
    Column("window_start_ms", BigInteger, primary_key=True, autoincrement=False),
    Column("holder", String(64), primary_key=True),
    Column("amount", BigInteger, nullable=False),
    Column("ends_at_ms", BigInteger, nullable=False, index=True),
    Column("reserved", BigInteger, nullable=False, server_default="0"),
    Column("reserved_until_ms", BigInteger, nullable=False, server_default="0"),
)

# Named lists of models, which limits can allow.
model_groups = Table(
    "model_groups",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("models", Text, nullable=False),  # a JSON array
    Column("updated_at_ms", BigInteger, nullable=False),
)

# Notifications about budgets that the webhook has not accepted yet.
notifications = Table(
    "budget_notifications",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("subject_kind", String(16), nullable=False),
    Column("subject_id", String(64), nullable=False),
    Column("measure", String(32), nullable=False),
    Column("window_start_ms", BigInteger, nullable=False),
    Column("window_end_ms", BigInteger, nullable=False),
    Column("limit_pusd", BigInteger, nullable=False),
    Column("spent_pusd", BigInteger, nullable=False),
    Column("soft_limit_percent", BigInteger, nullable=False),
    Column("reached_at_ms", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_attempt_at_ms", BigInteger, nullable=False, index=True),
    Index("ix_budget_notifications_subject_id", "subject_id"),
)
