"""The tables of limits and of the leases on them."""

from sqlalchemy import BigInteger, CheckConstraint, Column, String, Table, Text

from services.accounts.limits.rules import NUMBERS, SubjectKind
from services.common.storage.database import metadata

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
    *(Column(name, BigInteger) for name in NUMBERS),
    Column("allowed_models", Text),  # a JSON array
    Column("updated_at_ms", BigInteger, nullable=False),
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
