"""Lines of the journal: what requests used, as JSON. Pure.

Nearly all requests are answered by one model that bills tokens alone: their lines are plain, and
have two JSON arrays with a tab between, which JSON has nowhere else. The first has the values of
`usage_batch.SHARED`, in the same bytes for many requests; the second has the time when the request
ended in Unix seconds, its id, its milliseconds to the first content and to the end, and the tokens
of a `UsedModel`. Lines of all other requests are whole: an array of the values of `UsedLine`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gateway.accounts.v1 import usage_pb2
from gateway.accounts.v1.usage_pb2 import UsageOutcome

# Between the two parts of a plain line.
SEPARATOR = b"\t"

SERVED = usage_pb2.USAGE_OUTCOME_SERVED
FAILED = usage_pb2.USAGE_OUTCOME_FAILED
CANCELLED = usage_pb2.USAGE_OUTCOME_CANCELLED


class UsedModel(NamedTuple):
    """What one model used for a request.

    Attributes:
        model: the name that callers use.
        provider: name of its provider.
        upstream: the provider's name of the model.
        read, wrote, cached, cached_anew, reasoning: tokens, as `pricing.counts.counts_from` takes
            them; None as `read` where the provider reported none.
        further: what is billed apart, by the names of units.
    """

    model: str
    provider: str
    upstream: str
    read: int | None
    wrote: int = 0
    cached: int = 0
    cached_anew: int = 0
    reasoning: int = 0
    further: Mapping[str, int] | None = None


class UsedLine(NamedTuple):
    """What a request used.

    Attributes:
        time_s: when it ended, in Unix seconds.
        request_id, user_id, team_id, key_id: of the request and its caller.
        endpoint, requested: what was called, and for which model.
        step: the fallback step that answered, or the task of a helper.
        outcome: how the request ended.
        attempts: sent to providers.
        first_ms: from the first attempt to the first content, or None without any.
        duration_ms: from the first attempt to the end.
        is_part: whether another line stands for the request.
        used: of each model that took part; the one that answered comes first.
    """

    time_s: float
    request_id: str
    user_id: str
    team_id: str
    key_id: str
    endpoint: str
    requested: str
    step: str
    outcome: UsageOutcome.ValueType
    attempts: int
    first_ms: int | None
    duration_ms: int
    is_part: bool
    used: Sequence[UsedModel]
