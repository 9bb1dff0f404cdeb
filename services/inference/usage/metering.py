"""Meters the usage of one request at providers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.accounts.v1.usage_pb2 import UsageOutcome
from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Dialect, HelperUsage, Usage
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.grpc.authentication import Caller, caller
from services.common.labels import request_labels
from services.common.messages.passthrough_answer import TokenCounts
from services.common.process import logs
from services.inference.fallback.attempt_log import AttemptRecord
from services.inference.fallback.run import Run
from services.inference.pricing.counts import counts_of_other_units
from services.inference.pricing.iterations import of_advisors
from services.inference.pricing.price import PIECES
from services.inference.providers.base import Target
from services.inference.usage.journal import LineWriter
from services.inference.usage.lines import CANCELLED, FAILED, SERVED, UsedModel
from services.inference.usage.request_usage import RequestUsage, current_usage

_ENDPOINTS: Mapping[Dialect.ValueType, str] = {
    conversation_pb2.DIALECT_UNSPECIFIED: "generate",
    conversation_pb2.DIALECT_OPENAI: "chat",
    conversation_pb2.DIALECT_ANTHROPIC: "messages",
    conversation_pb2.DIALECT_RESPONSES: "responses",
    conversation_pb2.DIALECT_GEMINI: "generate_content",
}
_TASK = "task"
# Ends the endpoint of a request that a provider's batch service has run.
_BATCH = "_batch"
_OUTCOMES: Mapping[str | None, UsageOutcome.ValueType] = {"served": SERVED, "cancelled": CANCELLED}
# Longer recordings are errors of a provider.
_MOST_SECONDS = 1e9
_NO_MODEL = (("", "", "", None),)
_NO_COUNTS: tuple[int | None, int, int, int, int] = (None, 0, 0, 0, 0)
# Returns the estimated input tokens of a request, for providers that do not report them.
EstimateInput = Callable[[], int]


class Meter:
    """A meter that records nothing."""

    __slots__ = ()

    def add(self, run: Run) -> None:
        """Add the usage of one of the request's runs."""

    def end(self, run: Run | None = None) -> None:
        """Record the request, which has ended; `run` is its only run, unless runs were added."""


NO_METER = Meter()


class RequestMeter(Meter):
    """The meter of one request.

    Every request has one, so it does as little as possible before the request ends.

    Args:
        writer: writes a line when the request has ended; None if usage is not recorded.
        total: receives the same usage when the request has ended; None if it is not needed.
        owner: the caller.
        request: the request.
        estimate_input: estimates its input tokens.
        task: the helper task that the request does for another request, or "".
        endpoint: the endpoint, if it does not follow from the request's dialect.
        is_batch: whether the provider's batch service has run the request.
    """

    __slots__ = (
        *("_endpoint", "_estimate_input", "_id", "_is_batch", "_labels", "_owner", "_records"),
        *("_request", "_task", "_total", "_writer"),
    )

    def __init__(
        self,
        writer: LineWriter | None,
        total: RequestUsage | None,
        owner: Caller,
        request: GenerateRequest,
        estimate_input: EstimateInput,
        task: str,
        endpoint: str,
        is_batch: bool,
    ) -> None:
        self._writer = writer
        self._is_batch = is_batch
        self._total = total
        if total is not None:
            total.begin()
        self._estimate_input = estimate_input
        self._owner = owner
        self._request = request
        self._task = task
        self._endpoint = endpoint
        self._id = logs.request_id.get()
        self._labels = request_labels.get()
        self._records: list[AttemptRecord] = []

    def add(self, run: Run) -> None:
        """Add the usage of one of the request's runs."""
        self._records += run.records

    def end(self, run: Run | None = None) -> None:
        """Record the request, which has ended; `run` is its only run, unless runs were added."""
        if run is not None:
            self._records = run.records
        records = self._records
        if len(records) == 1 and not (self._task or self._labels or self._is_batch):
            self._end_of_only(records[0])
        else:
            self._end_of_all()
        if self._total is not None:
            self._total.end()

    def _end_of_only(self, record: AttemptRecord) -> None:
        """Record a request of one attempt, as nearly all are."""
        usage = None if record.attempt is None else record.attempt.usage
        is_reported = usage is not None and record.delivered_tokens is None
        if not is_reported and is_estimated(record):
            self._end_of_all()
            return
        counts: tuple[int | None, int, int, int, int]
        if isinstance(usage, TokenCounts):
            counts = usage
        elif usage is None:
            counts = _NO_COUNTS
        elif usage.HasField("extra") and _bills_more_than_tokens(usage):
            self._end_of_all()
            return
        else:
            counts = _counts(usage)
        target, outcome = record.step.target, record.outcome
        if self._total is not None:
            self._total.answer = (
                UsedModel(target.name, target.provider, target.upstream, *counts),
            )
        writer = self._writer
        if writer is None:
            return
        owner, request = self._owner, self._request
        writer.write(
            (writer.now(), self._id, record.first_ms, record.duration_ms, *counts),
            head=(
                *(owner.user_id, owner.team_id, owner.key_id),
                self._endpoint or (_ENDPOINTS[request.dialect] if owner.key_id else _TASK),
                *(request.model, target.name, target.provider, target.upstream),
                *(record.step.step_id, _OUTCOMES.get(outcome, FAILED), 1),
                0 if outcome == "unsupported" else 1,
            ),
        )

    def _end_of_all(self) -> None:
        records, owner, request = self._records, self._owner, self._request
        outcome, step, attempts, duration_ms = FAILED, self._task, 0, 0
        first_ms: int | None = None
        used: Sequence[tuple[Any, ...]] = _NO_MODEL
        if records:
            main = records[-1]
            outcome = _OUTCOMES.get(main.outcome, FAILED)
            step = step or main.step.step_id
            first_ms, duration_ms = main.first_ms, main.duration_ms
            if len(records) == 1:
                attempts = 0 if main.outcome == "unsupported" else 1
                used = (_used(main, self._estimate_input), *_advisors_used(main))
            else:
                attempts = sum([record.outcome != "unsupported" for record in records])
                used = _all_used(records, self._estimate_input)
                before_ms = int(1000 * (main.began - records[0].began))
                duration_ms += before_ms
                first_ms = None if first_ms is None else before_ms + first_ms
        if self._is_batch:
            used = [(*model, True) if model[3] is not None else model for model in used]
        if self._total is not None:
            self._total.add(used, is_helper=self._task != "")
        writer = self._writer
        if writer is None:
            return
        writer.write(
            (
                writer.now(),
                self._id,
                owner.user_id,
                owner.team_id,
                owner.key_id,
                self._endpoint or (_ENDPOINTS[request.dialect] if owner.key_id else _TASK),
                request.model,
                step,
                outcome,
                attempts,
                first_ms,
                duration_ms,
                self._task != "",
                used,
                *((self._labels,) if self._labels else ()),
            )
        )


class Metering:
    """Makes the meters of requests.

    Args:
        writer: writes lines; None if usage is not recorded.
    """

    def __init__(self, writer: LineWriter | None = None) -> None:
        self._writer = writer

    def begin(
        self,
        request: GenerateRequest,
        estimate_input: EstimateInput,
        *,
        task: str = "",
        endpoint: str = "",
        is_batch: bool = False,
    ) -> Meter:
        """Return the meter of a new request of the current task's caller.

        Args:
            request: the request.
            estimate_input: estimates its input tokens; called once the request has ended, if a
                provider did not report them.
            task: the helper task that the request does for another request, or "".
            endpoint: the endpoint; by default that of the request's dialect.
            is_batch: whether the provider's batch service has run the request.
        """
        owner = caller.get(None)
        total = current_usage.get(None)
        if owner is None or (self._writer is None and total is None):
            return NO_METER
        if is_batch:
            endpoint = (endpoint or _ENDPOINTS[request.dialect]) + _BATCH
        return RequestMeter(
            self._writer, total, owner, request, estimate_input, task, endpoint, is_batch
        )

    def add_transcript(self, target: Target, usage: HelperUsage) -> None:
        """Record the usage of an audio transcription for a request."""
        other_units: dict[str, int] | None = None
        if 0 < usage.seconds < _MOST_SECONDS:
            other_units = {"audio_hour": round(usage.seconds * 1000)}
        input_tokens: int | None = usage.input_tokens
        if not (other_units or usage.input_tokens or usage.output_tokens):
            input_tokens = None
        elif other_units and (usage.input_tokens or usage.output_tokens):
            other_units = None
        used = (*_named(target), input_tokens, usage.output_tokens, 0, 0, 0, other_units, False)
        self._add_part(target.name, usage.task, used)

    def add_embedding(self, target: Target, usage: Usage | None) -> None:
        """Record the usage of embeddings for the gateway's own tasks."""
        reported_tokens = (None,) if usage is None else (usage.input_tokens,)
        self._add_part(target.name, "", (*_named(target), *reported_tokens))

    def _add_part(self, requested: str, task: str, used: tuple[Any, ...]) -> None:
        if (total := current_usage.get(None)) is not None:
            total.add((used,), is_helper=True)
        writer, owner = self._writer, caller.get(None)
        if writer is None or owner is None:
            return
        endpoint = "generate" if owner.key_id else _TASK
        labels = request_labels.get()
        writer.write(
            (
                *(writer.now(), logs.request_id.get()),
                *(owner.user_id, owner.team_id, owner.key_id, endpoint, requested, task),
                *(SERVED, 1, None, 0, task != "", (used,)),
                *((labels,) if labels else ()),
            )
        )


def is_estimated(record: AttemptRecord) -> bool:
    """Return whether the usage of an attempt is estimated: the provider did not report all of it.

    An attempt that failed before its first content is not billed, but one that was cancelled is.
    """
    attempt = record.attempt
    if attempt is None or record.outcome == "unsupported":
        return False
    if record.delivered_tokens is not None:
        return True
    return _lacks_tokens(attempt.usage) and record.outcome != "failed"


def _lacks_tokens(usage: Usage | TokenCounts | None) -> bool:
    """Return whether a usage reports no tokens, perhaps images or characters instead."""
    if usage is None:
        return True
    if isinstance(usage, tuple) or not usage.HasField("extra") or any(_counts(usage)):
        return False
    return not PIECES.isdisjoint(counts_of_other_units(usage))


def _all_used(
    records: Sequence[AttemptRecord], estimate_input: EstimateInput
) -> Sequence[tuple[Any, ...]]:
    """Return the usage by model in all attempts; the model of the last attempt comes first."""
    used_by_key: dict[tuple[str, str, str], tuple[Any, ...]] = {}
    for record in reversed(records):
        used = _used(record, estimate_input)
        key = used[:3]
        before = used_by_key.get(key)
        if before is None or before[3] is None:
            # Earlier attempts without usage are left out, unless they are of the first model.
            if not used_by_key or used[3] is not None or before is not None:
                used_by_key[key] = used
        elif used[3] is not None:
            used_by_key[key] = (*key, *_added(before[3:], used[3:]))
    advisors_used = [used for record in records for used in _advisors_used(record)]
    return [*used_by_key.values(), *advisors_used]


def _added(one: Sequence[Any], other: Sequence[Any]) -> Sequence[Any]:
    other_units = dict(one[5] or {})
    for unit, count in (other[5] or {}).items():
        other_units[unit] = other_units.get(unit, 0) + count
    tokens = (a + b for a, b in zip(one[:5], other[:5], strict=True))
    return [*tokens, other_units or None, one[6] or other[6]]


def _used(record: AttemptRecord, estimate_input: EstimateInput) -> tuple[Any, ...]:
    """Return the usage of an attempt's model, as the values of `UsedModel`.

    Usage that was not reported is estimated: the input from the request, the output from what was
    delivered.
    """
    attempt = record.attempt
    usage = None if attempt is None else attempt.usage
    target = record.step.target
    names = target.name, target.provider, target.upstream
    if not is_estimated(record):
        return (*names, None) if usage is None else (*names, *_reported(usage), False)
    delivered = record.delivered_tokens or 0
    if usage is None:
        return (*names, estimate_input(), delivered, 0, 0, 0, None, True)
    read, written, *others = _reported(usage)
    if _lacks_tokens(usage):
        read = estimate_input()
    return (*names, read, max(written, delivered), *others, True)


def _advisors_used(record: AttemptRecord) -> list[tuple[Any, ...]]:
    """Return the usage of models of the same provider that the model has consulted."""
    usage = None if record.attempt is None else record.attempt.usage
    if usage is None or isinstance(usage, tuple):
        return []
    provider = record.step.target.provider
    return [
        (f"{provider}/{model}", provider, model, *_reported(advice), False)
        for model, advice in of_advisors(usage)
    ]


def _bills_more_than_tokens(usage: Usage) -> bool:
    """Return whether a usage has other units, or tokens of other models."""
    return bool(counts_of_other_units(usage)) or next(of_advisors(usage), None) is not None


def _reported(usage: Usage | TokenCounts) -> tuple[Any, ...]:
    """Return the tokens and the other units of a reported usage."""
    if isinstance(usage, tuple):
        return (*usage, None)
    return (*_counts(usage), _other_units(usage) if usage.HasField("extra") else None)


def _counts(usage: Usage) -> tuple[int, int, int, int, int]:
    return (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_input_tokens,
        usage.cache_creation_input_tokens,
        usage.reasoning_tokens,
    )


def _other_units(usage: Usage) -> dict[str, int] | None:
    """Return the counts that are billed separately, by the names of units."""
    return {unit.value: count for unit, count in counts_of_other_units(usage).items()} or None


def _named(target: Target) -> tuple[str, str, str]:
    return target.name, target.provider, target.upstream
