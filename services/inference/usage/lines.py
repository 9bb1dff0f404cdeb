"""Lines of the journal: the usage of requests, as JSON. Pure.

Nearly all requests are answered by one model that bills only tokens. They have a plain line: two
JSON arrays separated by a tab, which serialized JSON does not contain. The first array has the
values of `usage_batch.SHARED`, and is the same for many requests. The second has the time when the
request ended in Unix seconds, its id, its milliseconds to the first content and to the end, and the
tokens of a `UsedModel`. All other requests have a whole line: an array of the values of `UsedLine`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gateway.accounts.v1 import usage_pb2
from gateway.accounts.v1.usage_pb2 import UsageOutcome
from services.common.labels import Labels

# Separates the two parts of a plain line.
SEPARATOR = b"\t"

SERVED = usage_pb2.USAGE_OUTCOME_SERVED
FAILED = usage_pb2.USAGE_OUTCOME_FAILED
CANCELLED = usage_pb2.USAGE_OUTCOME_CANCELLED


class UsedModel(NamedTuple):
    """The usage of one model by a request.

    Attributes:
        model: the name that callers use.
        provider: the name of the provider.
        upstream: the provider's name of the model.
        input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens: as in
            `pricing.counts.counts_from`; `input_tokens` is None if nothing was used.
        other_units: counts that are billed separately, by the names of units.
        is_estimated: whether tokens are estimated, since the provider did not report them.
        is_batch: whether the provider's batch service was used, at its price.
    """

    model: str
    provider: str
    upstream: str
    input_tokens: int | None
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    other_units: Mapping[str, int] | None = None
    is_estimated: bool = False
    is_batch: bool = False


def tokens_of(used: UsedModel) -> int:
    """Return the input and output tokens of a model's usage."""
    return (
        (used.input_tokens or 0)
        + used.output_tokens
        + used.cache_read_tokens
        + used.cache_write_tokens
    )


class UsedLine(NamedTuple):
    """The usage of a request.

    Attributes:
        time_s: when the request ended, in Unix seconds.
        request_id, user_id, team_id, key_id: ids of the request and its caller.
        endpoint, requested: the endpoint and the requested model.
        step: the fallback step that answered, or the task of a helper.
        outcome: how the request ended.
        attempts: number of attempts sent to providers.
        first_ms: milliseconds from the first attempt to the first content, or None without any.
        duration_ms: milliseconds from the first attempt to the end.
        is_helper: whether the models helped another request; the line then counts as no request.
        used: the usage by model; the model that answered comes first.
        labels: its labels; left out if there are none.
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
    is_helper: bool
    used: Sequence[UsedModel]
    labels: Labels = ()
