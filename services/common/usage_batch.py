"""A batch of usage records as a message of `RecordUsage`.

To make a message of each record, and to read it again, takes longer than all else that is done to
it. Within a process the values are handed over as they go to the database.
"""

from collections.abc import Collection, Iterator
from typing import Any, Self

from gateway.accounts.v1.usage_pb2 import RecordUsageRequest, UsageRecord

# What records of one caller, model and outcome have in common, and what each has of its own: the
# columns of the values below. `requests` is 0 where the record `is_part`, else 1.
SHARED = (
    *("user_id", "team_id", "key_id", "endpoint", "requested_model", "model", "provider"),
    *("upstream_model", "step", "outcome", "requests", "attempts"),
)
OWN = (
    *("id", "time_ms", "request_id", "first_content_ms", "duration_ms", "input_tokens"),
    *("output_tokens", "cached_tokens", "cache_written_tokens", "reasoning_tokens", "cost_pusd"),
)
# What a column of 64 bits holds.
BIGGEST = 2**63 - 1

# Values in the order of `SHARED` and of `OWN`; None for what is not known.
Shared = tuple[Any, ...]
Own = tuple[Any, ...]

_REQUESTS = SHARED.index("requests")
# So many of the first of `SHARED` are text.
_TEXTS = SHARED.index("outcome")
# About as many bytes as a record has as a message.
_RECORD_BYTES = 300


class UsageBatch:
    """A `RecordUsageRequest` that is only made for another process.

    Attributes:
        groups: the records, those with equal `Shared` values together.
    """

    def __init__(self) -> None:
        """Create a batch without a record."""
        self.groups: dict[Shared, list[Own]] = {}

    @classmethod
    def of(cls, request: RecordUsageRequest) -> Self:
        """Return the batch of a message."""
        batch = cls()
        for record in request.records:
            batch.rows(_shared(record)).append(_own(record))
        return batch

    @property
    def size(self) -> int:
        """How many records there are."""
        return sum(map(len, self.groups.values()))

    def rows(self, shared: Shared) -> list[Own]:
        """Return the records with these values, for one more to be added.

        Raises:
            TypeError: what is to be text is none.
        """
        rows = self.groups.get(shared)
        if rows is None:
            "".join(shared[:_TEXTS])
            rows = self.groups[shared] = []
        return rows

    def without(self, ids: Collection[str]) -> "UsageBatch":
        """Return the records that have none of these ids, each id once."""
        left = UsageBatch()
        seen = set(ids)
        for shared, rows in self.groups.items():
            for own in rows:
                if own[0] not in seen:
                    seen.add(own[0])
                    left.rows(shared).append(own)
        return left

    def records(self) -> Iterator[UsageRecord]:
        """Yield the records as messages."""
        for shared, rows in self.groups.items():
            common = dict(zip(SHARED, shared, strict=True))
            common["is_part"] = not common.pop("requests")
            for own in rows:
                yield UsageRecord(**common, **dict(zip(OWN, own, strict=True)))

    # As protobuf calls them: code that sends messages calls these.

    def ByteSize(self) -> int:
        """Return about as many bytes as the message has, serialized."""
        return self.size * _RECORD_BYTES

    def SerializeToString(self) -> bytes:
        """Return the message, serialized."""
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
    )
