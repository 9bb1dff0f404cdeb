"""Parse answers of Converse and ConverseStream into canonical events. Pure.

A whole answer is read by the same code as a stream: its blocks are written as the events that a
stream of it would have. The shapes are those of the service model of `bedrock-runtime`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.inference.v1.inference_pb2 import Event, Finish, Start
from services.common.ids import IdGenerator
from services.inference.providers import failures
from services.inference.providers.base import Call
from services.inference.providers.bedrock.blocks import BlockWriter
from services.inference.providers.bounds import Bounds, dump, name_of, tokens
from services.inference.providers.protocols import ErrorFactory
from services.inference.providers.sse import read_event
from services.inference.stream.patience import has_content

Json = dict[str, Any]

# Exceptions that values of wrong types cause in the parsing code.
_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_REFUSAL = conversation_pb2.FINISH_REASON_REFUSAL
# Unknown reasons count as a normal end.
_REASONS = {
    "end_turn": conversation_pb2.FINISH_REASON_END_TURN,
    "tool_use": conversation_pb2.FINISH_REASON_TOOL_USE,
    "max_tokens": conversation_pb2.FINISH_REASON_MAX_TOKENS,
    "stop_sequence": conversation_pb2.FINISH_REASON_STOP_SEQUENCE,
    "model_context_window_exceeded": conversation_pb2.FINISH_REASON_CONTEXT_WINDOW,
    "guardrail_intervened": _REFUSAL,
    "content_filtered": _REFUSAL,
    "refusal": _REFUSAL,
}
# The model wrote what the service cannot read.
_FAILURES = frozenset({"malformed_model_output", "malformed_tool_use"})


class AnswerReader:
    """Parses one answer.

    Args:
        call: the call.
        errors: creates errors from the provider's error objects.
        names: the caller's names of tools by Bedrock's, for renamed tools.
        new_id: generates the id of the answer.

    Attributes:
        has_content: whether any content has been received.
        is_complete: whether the answer has its stop reason; usage follows.
        ended: whether the last event has been received.
    """

    def __init__(
        self,
        call: Call,
        errors: ErrorFactory,
        names: Mapping[str, str],
        new_id: IdGenerator,
    ) -> None:
        self._call = call
        self._errors = errors
        self._broken = partial(failures.broken_answer, errors.name)
        self._new_id = new_id
        self._bounds = Bounds(errors.name, errors.limits)
        self._blocks = BlockWriter(call.request, names, self._bounds, errors)
        self._started = False
        self.has_content = self.is_complete = self.ended = False

    def feed(self, text: bytes, out: list[Event]) -> None:
        """Parse server-sent events; append the resulting events to `out`, none after the end.

        Raises:
            UpstreamError: an event reports an error, or cannot be parsed; earlier events are in
                `out`.
        """
        already = len(out)
        at = 0
        while at < len(text) and not self.ended:
            sent, at = read_event(text, at)
            if sent is None:
                continue
            fields = self._bounds.parse(sent.data)
            if not isinstance(fields, dict):
                raise self._broken("streamed an event that is not a JSON object", sent.data)
            if fields.get("error"):
                raise self._errors.in_band(sent.data)
            read = _READERS.get(sent.event)
            if read is None:
                continue  # events without content, or of a newer version of the API
            try:
                read(self, fields, out)
            except _MALFORMED as error:
                raise self._broken("streamed a malformed event", sent.data) from error
        self.has_content = self.has_content or has_content(out[already:])

    def read_whole(self, answer: Json, out: list[Event]) -> None:
        """Append to `out` the events of a whole answer.

        Raises:
            UpstreamError: it is malformed.
        """
        try:
            message = answer["output"]["message"]
            self._start(message, out)
            for index, block in enumerate(message["content"]):
                self._blocks.whole(index, block, out)
            self._stop(answer, out)
            self._metadata(answer, out)
        except _MALFORMED as error:
            raise self._broken("returned a malformed answer", orjson.dumps(answer)) from error
        self.end(out)

    def end(self, out: list[Event]) -> None:
        """Handle the end of the answer.

        Raises:
            UpstreamError: the end is premature.
        """
        if not self.is_complete:
            raise failures.cut_off(self._errors.name)

    def _start(self, fields: Json, out: list[Event]) -> None:
        if self._started:
            raise ValueError("a second start")
        self._started = True
        start = Start(id=self._new_id("bedrock-"), model=name_of(self._call.target.upstream[:256]))
        out.append(Event(start=start))

    def _block_start(self, fields: Json, out: list[Event]) -> None:
        self._check_open()
        self._blocks.start(fields["contentBlockIndex"], fields["start"], out)

    def _block_delta(self, fields: Json, out: list[Event]) -> None:
        self._check_open()
        self._blocks.delta(fields["contentBlockIndex"], fields["delta"], out)

    def _block_stop(self, fields: Json, out: list[Event]) -> None:
        self._check_open()
        self._blocks.stop(fields["contentBlockIndex"], out)

    def _check_open(self) -> None:
        if not self._started or self.is_complete:
            raise ValueError("content before the start or after the end")

    def _stop(self, fields: Json, out: list[Event]) -> None:
        self._check_open()
        reason = name_of(fields["stopReason"])
        if reason in _FAILURES:
            raise failures.failed_answer(self._errors.name, reason)
        self._blocks.close(out)
        self.is_complete = True
        canonical = _REASONS.get(reason, conversation_pb2.FINISH_REASON_END_TURN)
        out.append(Event(finish=Finish(reason=canonical)))

    def _metadata(self, fields: Json, out: list[Event]) -> None:
        out.append(Event(usage=_usage(fields.get("usage") or {})))
        self.ended = self.is_complete


# Unbound functions: bound methods in each reader would form a reference cycle.
_READERS: Mapping[str, Callable[[AnswerReader, Json, list[Event]], None]] = {
    "messageStart": AnswerReader._start,
    "contentBlockStart": AnswerReader._block_start,
    "contentBlockDelta": AnswerReader._block_delta,
    "contentBlockStop": AnswerReader._block_stop,
    "messageStop": AnswerReader._stop,
    "metadata": AnswerReader._metadata,
}


def _usage(usage: Json) -> Usage:
    """Return the usage. Bedrock counts tokens of the cache apart, and thinking in the output."""
    counts = Usage(
        input_tokens=tokens(usage.get("inputTokens") or 0),
        output_tokens=tokens(usage.get("outputTokens") or 0),
        cache_read_input_tokens=tokens(usage.get("cacheReadInputTokens") or 0),
        cache_creation_input_tokens=tokens(usage.get("cacheWriteInputTokens") or 0),
    )
    by_lifetime = {
        f"ephemeral_{detail['ttl']}_input_tokens": tokens(detail["inputTokens"])
        for detail in usage.get("cacheDetails") or ()
        if detail["ttl"] in ("5m", "1h")
    }
    if by_lifetime:
        # As Anthropic names them: writes that last an hour cost more.
        counts.extra.dialect = conversation_pb2.DIALECT_ANTHROPIC
        counts.extra.json = dump({"cache_creation": by_lifetime})
    return counts
