"""Parse Gemini's responses, whole or streamed, into canonical events. Pure.

Each event of a stream is a `GenerateContentResponse` like a whole response, with the new parts.
Only the end of the stream marks the end of the answer: several events may have a finish reason.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from gateway.conversation.v1.conversation_pb2 import DIALECT_GEMINI, Opaque, Usage
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import Event, ExtraFields, Start
from services.common.errors import UpstreamError
from services.common.ids import IdGenerator
from services.inference.providers import failures
from services.inference.providers.base import Call
from services.inference.providers.bounds import Bounds, dump, name_of
from services.inference.providers.gemini.candidate import Candidate
from services.inference.providers.gemini.usage import (
    billed_count,
    billed_usage,
    highest_counts,
    usage_of,
)
from services.inference.providers.protocols import ErrorFactory
from services.inference.providers.sse import read_event
from services.inference.stream.patience import has_content

Json = dict[str, Any]

# Exceptions that values of wrong types cause in the parsing code.
MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
# Fields of an answer that are read here.
_NAMED = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId"})
# Reasons why a prompt is blocked, in Google's reference of PromptFeedback.
_BLOCK_REASONS = frozenset({"SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY"})


class AnswerReader:
    """Parses one answer.

    Args:
        call: the call.
        errors: creates errors from the provider's error objects.
        names: the caller's names of functions by Gemini's, for renamed functions.
        new_id: generates ids that the provider omits.
        is_native: whether the caller uses this dialect, and gets all fields of the answer.

    Attributes:
        has_content: whether any content has been received.
        ended: always False, as the provider sends no end event.
    """

    ended = False

    def __init__(
        self,
        call: Call,
        errors: ErrorFactory,
        names: Mapping[str, str],
        new_id: IdGenerator,
        *,
        is_native: bool = False,
    ) -> None:
        self._call = call
        self._errors = errors
        self._broken = partial(failures.broken_answer, errors.name)
        self._names = names
        self._new_id = new_id
        self._bounds = Bounds(errors.name, errors.limits)
        self._candidates: dict[int, Candidate] = {}
        self._n = max(1, call.request.n)
        self._is_native = is_native
        self._usage: Json | None = None
        self._reported: Json = {}  # usage as reported, for callers of this dialect
        self._further: Json = {}  # unknown fields of the answer, likewise
        self._started = False
        self.has_content = False

    @property
    def is_complete(self) -> bool:
        """Whether every candidate has a finish reason."""
        candidates = self._candidates.values()
        return len(candidates) >= self._n and all(one.reason for one in candidates)

    def feed(self, text: bytes, out: list[Event]) -> None:
        """Parse server-sent events; append the resulting events to `out`.

        Raises:
            UpstreamError: an event reports an error, or cannot be parsed; earlier events are in
                `out`.
        """
        already = len(out)
        at = 0
        while at < len(text):
            sent, at = read_event(text, at)
            if sent is None:
                continue
            chunk = self._bounds.parse(sent.data)
            if not isinstance(chunk, dict):
                raise self._broken("streamed an event that is not a JSON object", sent.data)
            if chunk.get("error"):
                raise self._errors.in_band(sent.data)
            try:
                self.read(chunk, out)
            except MALFORMED as error:
                raise self._broken("streamed a malformed event", sent.data) from error
        self.has_content = self.has_content or has_content(out[already:])

    def read(self, chunk: Json, out: list[Event]) -> None:
        """Parse a whole response, or a chunk of a stream."""
        usage = chunk.get("usageMetadata")
        if usage:
            self._usage = highest_counts(self._usage or {}, usage)
            self._reported |= usage
        if self._is_native:
            self._further |= {name: one for name, one in chunk.items() if name not in _NAMED}
        candidates = chunk.get("candidates") or ()
        if not self._started and (candidates or usage):
            self._start(chunk, out)
        for candidate in candidates:
            number = candidate.get("index") or 0
            open_candidate = self._candidates.get(number) or self._begin(number)
            open_candidate.read(candidate, out)
        if not self._candidates and (feedback := chunk.get("promptFeedback")):
            self._check_blocked(feedback)

    def read_whole(self, answer: Json, out: list[Event]) -> None:
        """Append to `out` the events of a whole answer.

        Raises:
            UpstreamError: it has no candidate, or is malformed.
        """
        try:
            self.read(answer, out)
        except MALFORMED as error:
            raise self._broken("returned a malformed answer") from error
        self.end(out)

    def end(self, out: list[Event]) -> None:
        """Handle the end of the answer.

        Raises:
            UpstreamError: the end is premature, or the model failed.
        """
        if not self._candidates or not all(one.reason for one in self._candidates.values()):
            raise failures.cut_off(self._errors.name)
        if max(self._candidates) >= len(self._candidates):
            raise self._broken("omitted a candidate")
        for candidate in self._candidates.values():
            if failure := candidate.failure:
                raise self._broken(f"ended its answer with {failure}")
        try:
            for candidate in self._candidates.values():
                candidate.end(out)
            if self._further:
                further = Opaque(dialect=DIALECT_GEMINI, json=dump(self._further))
                out.append(Event(extra_fields=ExtraFields(answer=further)))
            if self._usage is not None:
                out.append(Event(usage=self._usage_of(self._usage)))
        except MALFORMED as error:
            raise self._broken("returned a malformed answer") from error

    def _start(self, chunk: Json, out: list[Event]) -> None:
        self._started = True
        start = Start(
            id=name_of(chunk.get("responseId") or self._new_id("gemini-")),
            model=name_of(chunk.get("modelVersion") or self._call.target.upstream),
        )
        out.append(Event(start=start))
        if self._usage is not None:
            out.append(Event(usage=self._usage_of(self._usage)))

    def _usage_of(self, counts: Json) -> Usage:
        usage = usage_of(counts)
        candidates = self._candidates.values()
        found = sum(one.searches for one in candidates)
        searches = billed_count(found, self._call.target.upstream)
        if self._is_native:
            usage.extra.dialect = DIALECT_GEMINI
            usage.extra.json = billed_usage(self._reported, searches)
            return usage
        usage.web_fetch_requests = sum(one.fetches for one in candidates)
        if searches:
            usage.web_search_requests = searches
            usage.extra.dialect = DIALECT_GEMINI
            usage.extra.json = billed_usage({}, searches)
        return usage

    def _begin(self, number: object) -> Candidate:
        if type(number) is not int or not 0 <= number < self._n:
            raise ValueError("a candidate that was not asked for")
        candidate = Candidate(
            number,
            self._call.request,
            self._names,
            self._new_id,
            self._bounds,
            is_native=self._is_native,
        )
        self._candidates[number] = candidate
        return candidate

    def _check_blocked(self, feedback: Json) -> None:
        reason = feedback.get("blockReason")
        if not reason:
            return
        reason_in_words = f" ({reason})" if reason in _BLOCK_REASONS else ""
        raise UpstreamError(
            errors_pb2.REASON_CONTENT_FILTER,
            f"the provider {self._errors.name} blocked the prompt{reason_in_words}",
            status=400,
        )
