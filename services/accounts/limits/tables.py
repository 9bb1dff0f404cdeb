"""The tables of limits and of the leases on them."""

from sqlalchemy import BigInteger, CheckConstraint, Column, String, Table, Text

from services.accounts.limits.rules import AMOUNTS, SubjectKind
from services.common.database import metadata

_IS_KIND = f"subject_kind IN ({', '.join(repr(kind.value) for kind in SubjectKind)})"

limits = Table(
    "limits",
    metadata,
    Column(
        "subject_kind",
        String(16),
        CheckConstraint(_IS_KIND, name="subject_kind"),
        primary_key=True,
    ),
    Column("subject_id", String(64), primary_key=True),
    *(Column(name, BigInteger) for name in AMOUNTS),
    Column("allowed_models", Text),  # a JSON array
    Column("updated_at_ms", BigInteger, nullable=False),
)

# What each worker holds of an allowance, which is what a subject may use of a measure in a window.
# The rows of one window that have not ended never hold more than the limit together.
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
)
