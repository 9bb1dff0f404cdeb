"""The tables of batches.

The requests of a batch are numbered from 0. A result is only ever inserted, and its primary key
makes a second one impossible. Both are inserted and deleted many at a time, by transactions that
hold the row of the batch or of one of its tasks: foreign keys would look at it once for each row,
and take almost half of the time. The tasks are a queue: a task exists until it is done, and a free
one has a lease that has ended (`ends_at_ms` 0).
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
)

from services.common.storage.database import metadata

# `metadata`, `headers` and `errors` are JSON. Times are 0 as long as they are not known; a batch
# whose requests are being stored is deleted soon unless that is completed.
batches = Table(
    "batches",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("user_id", String(64), nullable=False),
    Column("key_id", String(64), nullable=False),
    Column("dialect", SmallInteger, nullable=False),
    Column("endpoint", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("input_file_id", String(64), nullable=False),
    Column("output_file_id", String(64), nullable=False),
    Column("error_file_id", String(64), nullable=False),
    Column("output_ttl_s", BigInteger),
    Column("own_workers", Boolean, nullable=False),
    Column("metadata", LargeBinary, nullable=False),
    Column("headers", LargeBinary, nullable=False),
    Column("errors", LargeBinary, nullable=False),
    Column("total", Integer, nullable=False),
    Column("succeeded", Integer, nullable=False),
    Column("errored", Integer, nullable=False),
    Column("cancelled", Integer, nullable=False),
    Column("expired", Integer, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False),
    Column("started_at_ms", BigInteger, nullable=False),
    Column("finalizing_at_ms", BigInteger, nullable=False),
    Column("cancelling_at_ms", BigInteger, nullable=False),
    Column("ended_at_ms", BigInteger, nullable=False),
    Column("deleted_at_ms", BigInteger, nullable=False),
    Index("ix_batches_user_id", "user_id", "dialect", "id"),
    Index("ix_batches_deleted_at_ms", "deleted_at_ms"),
)

batch_requests = Table(
    "batch_requests",
    metadata,
    Column("batch_id", String(64), nullable=False),
    Column("number", Integer, nullable=False),
    Column("custom_id", String(512), nullable=False),
    Column("body", LargeBinary, nullable=False),
    # The batch at a provider that it is or was part of; "" for the gateway's own workers.
    Column("provider_batch_id", String(64), nullable=False),
    PrimaryKeyConstraint("batch_id", "number"),
)

batch_results = Table(
    "batch_results",
    metadata,
    Column("batch_id", String(64), nullable=False),
    Column("number", Integer, nullable=False),
    Column("custom_id", String(512), nullable=False),
    Column("outcome", SmallInteger, nullable=False),
    Column("status", SmallInteger, nullable=False),
    Column("request_id", String(128), nullable=False),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("batch_id", "number"),
)

# A batch of requests at a provider. `task_id` is the task that creates it; `provider_id` is ""
# until that is done.
provider_batches = Table(
    "provider_batches",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("batch_id", String(64), ForeignKey("batches.id"), nullable=False),
    Column("task_id", String(64), nullable=False),
    Column("provider", String(256), nullable=False),
    Column("model", String(1024), nullable=False),
    Column("provider_id", String(256), nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Index("ix_provider_batches_batch_id", "batch_id"),
    Index("ix_provider_batches_task_id", "task_id"),
)

# A task that runs or submits requests has those of its provider batch among `size` of them, from
# number `first` on. `claims` counts the workers that have claimed it and have not released it: all
# but the last have died. `begun_alone` counts how often the first of its requests without a result
# has been run with no other of the worker's tasks that a worker has died of.
batch_tasks = Table(
    "batch_tasks",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("batch_id", String(64), ForeignKey("batches.id"), nullable=False),
    Column("user_id", String(64), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("first", Integer, nullable=False),
    Column("size", Integer, nullable=False),
    Column("provider_batch_id", String(64), nullable=False),
    Column("not_before_ms", BigInteger, nullable=False),
    Column("holder", String(64), nullable=False),
    Column("ends_at_ms", BigInteger, nullable=False),
    Column("claims", Integer, nullable=False),
    Column("begun_alone", Integer, nullable=False),
    Index("ix_batch_tasks_batch_id", "batch_id"),
    Index("ix_batch_tasks_kind", "kind", "id"),
    Index("ix_batch_tasks_ends_at_ms", "ends_at_ms"),
)
