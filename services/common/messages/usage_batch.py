"""A batch of usage records, used in place of the message of `RecordUsage`.

Building and reading a message per record takes longer than all other processing of the record.
Within a process, the values are therefore passed as they are written to the database.
"""

from collections.abc import Collection, Iterator
from typing import Any, Self

from gateway.accounts.v1.usage_pb2 import RecordUsageRequest, UsageLabel, UsageRecord
from services.common.labels import Labels

# Columns that records of one caller, model and outcome share, and columns of each single record.
# `requests` is 0 if the record `is_part`, else 1.
SHARED = (
    *("user_id", "team_id", "key_id", "endpoint", "requested_model", "model", "provider"),
    *("upstream_model", "step", "outcome", "requests", "attempts"),
)
OWN = (
    *("id", "time_ms", "request_id", "first_content_ms", "duration_ms", "input_tokens"),
    *("output_tokens", "cached_tokens", "cache_written_tokens", "reasoning_tokens", "cost_pusd"),
    "estimated",
)
# Maximum of a 64-bit column.
BIGGEST = 2**63 - 1

# Values in the order of `SHARED` and of `OWN`; None for unknown values.
Shared = tuple[Any, ...]
Own = tuple[Any, ...]

_REQUESTS = SHARED.index("requests")
# The number of leading columns of `SHARED` that are text.
_TEXTS = SHARED.index("outcome")
# Approximate size of a record as a message.
_RECORD_BYTES = 300


class UsageBatch:
    """A `RecordUsageRequest` that becomes a message only for another process.

    Attributes:
        groups: the records, grouped by their `Shared` values.
        labels: the labels of records that have any, by their ids.
    """

    def __init__(self) -> None:
        """Create an empty batch."""
        self.groups: dict[Shared, list[Own]] = {}
        self.labels: dict[str, Labels] = {}

    @classmethod
    def of(cls, request: RecordUsageRequest) -> Self:
        """Return the batch of a message."""
        batch = cls()
        for record in request.records:
            batch.rows(_shared(record)).append(_own(record))
            if record.labels:
                batch.labels[record.id] = tuple((one.name, one.value) for one in record.labels)
        return batch

    @property
    def size(self) -> int:
        """The number of records."""
        return sum(map(len, self.groups.values()))

    def rows(self, shared: Shared) -> list[Own]:
        """Return the list of records with these shared values, to which records can be added.

        Raises:
            TypeError: a value of a text column is not text.
        """
        rows = self.groups.get(shared)
        if rows is None:
            "".join(shared[:_TEXTS])
            rows = self.groups[shared] = []
        return rows

    def without(self, ids: Collection[str]) -> "UsageBatch":
        """Return the records with other ids than these, without duplicates."""
        remaining = UsageBatch()
        seen_ids = set(ids)
        for shared, rows in self.groups.items():
            for own in rows:
                if own[0] not in seen_ids:
                    seen_ids.add(own[0])
                    remaining.rows(shared).append(own)
                    if own[0] in self.labels:
                        remaining.labels[own[0]] = self.labels[own[0]]
        return remaining

    def records(self) -> Iterator[UsageRecord]:
        """Yield the records as messages."""
        for shared, rows in self.groups.items():
            common = dict(zip(SHARED, shared, strict=True))
            common["is_part"] = not common.pop("requests")
            for own in rows:
                values = dict(zip(OWN, own, strict=True))
                values["estimated"] = bool(values["estimated"])
                values["labels"] = [
                    UsageLabel(name=name, value=value)
                    for name, value in self.labels.get(own[0], ())
                ]
                yield UsageRecord(**common, **values)

    # The methods of protobuf messages that code which sends messages calls.

    def ByteSize(self) -> int:
        """Return the approximate size of the serialized message in bytes."""
        return self.size * _RECORD_BYTES

    def SerializeToString(self) -> bytes:
        """Return the serialized message."""
        return RecordUsageRequest(records=self.records()).SerializeToString()


def _shared(record: UsageRecord) -> Shared:
    names = (*SHARED[:_REQUESTS], *SHARED[_REQUESTS + 1 :])
    values = [getattr(record, name) for name in names]
    values.insert(_REQUESTS, int(not record.is_part))
    return tuple(values)


def _own(record: UsageRecord) -> Own:
    return (
        record.id,
        record.time_ms,
        record.request_id,
        record.first_content_ms if record.HasField("first_content_ms") else None,
        record.duration_ms,
        min(record.input_tokens, BIGGEST),
        min(record.output_tokens, BIGGEST),
        min(record.cached_tokens, BIGGEST),
        min(record.cache_written_tokens, BIGGEST),
        min(record.reasoning_tokens, BIGGEST),
        record.cost_pusd if record.HasField("cost_pusd") else None,
        int(record.estimated),
    )
