"""Parse chat completions, whole or in chunks, into canonical events. Pure.

A whole answer is parsed by the same reader as a stream: its messages are treated as complete
deltas.
"""

from functools import partial
from typing import Any

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.inference.v1.inference_pb2 import Event
from services.common.ids import IdGenerator
from services.inference.providers import failures
from services.inference.providers.base import Call
from services.inference.providers.bounds import Bounds, dump, name_of
from services.inference.providers.delta_templates import DeltaTemplates
from services.inference.providers.finish_reasons import OPENAI_REASONS, canonical_reason
from services.inference.providers.opaque_json import Json
from services.inference.providers.openai.answer_fields import (
    KNOWN_ANSWER_FIELDS,
    KNOWN_CALL_FIELDS,
    KNOWN_CHOICE_FIELDS,
    pages_of,
    read_usage,
)
from services.inference.providers.openai.blocks import Blocks
from services.inference.providers.openai.choice import Choice
from services.inference.providers.openai.fields import OpenAIFields
from services.inference.providers.protocols import ErrorFactory
from services.inference.providers.sse import read_event
from services.inference.stream.patience import has_content

DONE = b"[DONE]"

# Exceptions that values of wrong types cause in the parsing code, at any depth.
_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_NOTHING = object()


class StreamReader:
    """Parses one answer.

    Args:
        call: the call.
        errors: creates errors from the provider's error objects.
        new_id: generates ids that the provider omits.

    Attributes:
        ended: whether the provider has sent its end marker.
        has_content: whether any content has been received.
        is_complete: whether every choice has a finish reason, so that usually only usage follows.
    """

    def __init__(self, call: Call, errors: ErrorFactory, new_id: IdGenerator) -> None:
        self._call = call
        self._errors = errors
        self._broken = partial(failures.broken_answer, errors.name)
        self._new_id = new_id
        self.ended = self.has_content = self.is_complete = False
        self._started = False
        self._bounds = Bounds(errors.name, errors.limits)
        self._choices: dict[int, Choice] = {}
        self._n = max(1, call.request.n)
        self._running = self._n  # choices without a finish reason
        self._usage: Usage | None = None  # as last received
        self._late_usage: Event | None = None  # received with or after the last finish reason
        self._translates = call.request.dialect != OpenAIFields.dialect
        self._reported: Json = {}  # the answer's unknown fields, as last reported
        self._early: Json = {}  # unknown fields received before the first choice
        self._templates = DeltaTemplates(_extract_delta, "obfuscation")
        self._current_choice: Choice | None = (
            None  # the choice of the deltas that `_templates` recognises
        )

    def feed(self, text: bytes, out: list[Event]) -> None:
        """Parse server-sent events; append the resulting events to `out`.

        Raises:
            UpstreamError: an event reports an error, or cannot be parsed; earlier events are in
                `out`.
        """
        templates, at, already, data = self._templates, 0, len(out), b""
        try:
            while at < len(text) and not self.ended:
                if templates.has_learnt:
                    pieces, at = templates.repeats(text, at)
                    if pieces and self._current_choice is not None:
                        self._current_choice.blocks.continue_delta(pieces, out)
                        continue
                began, known_events = at, len(out)
                sent, at = read_event(text, at)
                if sent is None:
                    continue
                templates.has_learnt = False
                name, data = sent
                if name == "error":
                    raise self._errors.in_band(data)
                if data == DONE:
                    self.end_all(out)
                    self.ended = True
                    break
                chunk = self._bounds.parse(data)
                if not isinstance(chunk, dict):
                    raise self._broken("streamed a chunk that is not a JSON object", data)
                if chunk.get("error"):
                    raise self._errors.in_band(data)
                self.read(chunk, "delta", out)
                if len(out) > known_events:
                    event = out[-1]
                    piece = event.text or event.thinking or event.input
                    if piece and not event.logprobs:
                        self._current_choice = self._choices[event.choice]
                        templates.learn(text[began:at], piece)
        except _MALFORMED as error:
            raise self._broken("streamed a malformed chunk", data) from error
        # A complete answer has its end.
        self.has_content = self.has_content or self.is_complete or has_content(out[already:])

    def read_whole(self, answer: Json, out: list[Event]) -> None:
        """Append to `out` the events of a whole answer.

        Raises:
            UpstreamError: it has no choice, or is malformed.
        """
        try:
            if not answer.get("choices"):
                raise self._broken("returned an answer without a choice")
            self.read(answer, "message", out)
            self.end_all(out)
        except _MALFORMED as error:
            raise self._broken("returned a malformed answer") from error

    def end(self, out: list[Event]) -> None:
        """Handle the end of the stream.

        Raises:
            UpstreamError: the end is premature.
        """
        if self.ended:
            return
        if not self.is_complete:
            raise failures.cut_off(self._errors.name)
        self.end_all(out)

    def read(self, chunk: Json, key: str, out: list[Event]) -> None:
        """Parse a chunk or a whole answer; `key` is the member of a choice with its content.

        A finish reason takes effect at the end of the answer: some servers send content after it.
        """
        choices = chunk.get("choices")
        # Moonshot reports usage in a choice, and Groq in an object of its own.
        usage = chunk.get("usage") or (_usage_of_groq(chunk) if "x_groq" in chunk else None)
        fields = {} if chunk.keys() <= KNOWN_ANSWER_FIELDS else self._changed(chunk)
        if not self._started:
            if not (choices or usage):
                # Azure first sends chunks about its content filter, without id or model.
                self._early |= fields
                return
            self._start(chunk, fields, out)
        elif fields:
            self._report(fields, out)
        for choice_fields in choices or ():
            number = choice_fields.get("index") or 0
            choice = self._choices.get(number) or self._begin(number)
            fields = choice.read(choice_fields, key, out)
            usage = usage or choice_fields.get("usage")
            if reason := choice_fields.get("finish_reason"):
                if not isinstance(reason, str):
                    raise TypeError("finish_reason")
                canonical = OPENAI_REASONS.get(reason) or canonical_reason(reason)
                if canonical is None:
                    raise failures.failed_answer(self._errors.name, reason)
                self._running -= not choice.finish_reason
                self.is_complete = self._running <= 0
                choice.finish_reason, choice.canonical_reason = reason, canonical
                choice.finish_fields |= fields
        if self._translates and ("citations" in chunk or "search_results" in chunk):
            self._keep_pages(chunk)
        if usage:
            # With the finish if all choices have a reason; counts never fall.
            event = read_usage(usage, self._usage)
            self._usage = event.usage
            if self.is_complete:
                self._late_usage = event
            else:
                out.append(event)

    def _keep_pages(self, chunk: Json) -> None:
        for choice in self._choices.values():
            choice.pages = pages_of(chunk) or choice.pages

    def _changed(self, chunk: Json) -> Json:
        """Return the answer's unknown fields that are new or changed."""
        reported, changed = self._reported, dict[str, Any]()
        for name, value in chunk.items():
            if name in KNOWN_ANSWER_FIELDS or value is None:
                continue
            if reported.get(name, _NOTHING) != value:
                reported[name] = changed[name] = value
        return changed

    def _report(self, fields: Json, out: list[Event]) -> None:
        event = Event()
        opaque = event.extra_fields.answer
        opaque.dialect = conversation_pb2.DIALECT_OPENAI
        opaque.json = self._bounds.keep_fields(fields)
        out.append(event)

    def _begin(self, number: object) -> Choice:
        """Return a new choice; raise ValueError if its index was not requested."""
        if type(number) is not int or not 0 <= number < self._n:
            raise ValueError("a choice that was not asked for")
        blocks = Blocks(number, self._new_id, self._bounds, translates=self._translates)
        choice = self._choices[number] = Choice(
            number, blocks, self._bounds, self._call, translates=self._translates
        )
        return choice

    def _start(self, chunk: Json, extra: Json, out: list[Event]) -> None:
        self._started = True
        event = Event()
        start = event.start
        start.id = name_of(chunk.get("id") or self._new_id("chatcmpl-"))
        start.model = name_of(chunk.get("model") or self._call.target.upstream)
        if extra:
            start.extra.dialect = conversation_pb2.DIALECT_OPENAI
            start.extra.json = dump(extra)
        out.append(event)
        if self._early:
            # Reported once, unlike the fields of `start`, which are repeated in each chunk.
            self._report(self._early, out)

    def _finish(self, choice: Choice, out: list[Event]) -> None:
        event = Event(choice=choice.number)
        finish = event.finish
        finish.reason = choice.canonical_reason
        if fields := choice.finish_fields:
            finish.extra.dialect = conversation_pb2.DIALECT_OPENAI
            finish.extra.json = dump(fields)
            matched = fields.get("stop_reason")
            if isinstance(matched, str) and matched in self._call.request.stop_sequences:
                # vLLM reports which stop sequence matched.
                finish.reason = conversation_pb2.FINISH_REASON_STOP_SEQUENCE
                finish.stop_sequence = matched
        if not choice.end(out):
            self.is_complete = False  # failures of a complete answer would be ignored
            raise self._broken("called a tool without a name")
        kinds = choice.blocks.kinds
        # OpenAI sends `stop` after a refusal, and after a tool call that the request demanded by
        # name; callers of another dialect get the precise reason.
        is_translated_stop = (
            self._translates and finish.reason == conversation_pb2.FINISH_REASON_END_TURN
        )
        if choice.finish_reason == "function_call":
            pass  # the deprecated form of a call is an unknown field of the message
        elif finish.reason == conversation_pb2.FINISH_REASON_TOOL_USE and "tool" not in kinds:
            finish.reason = conversation_pb2.FINISH_REASON_END_TURN
        elif "tool" in kinds and (is_translated_stop or not choice.finish_reason):
            finish.reason = conversation_pb2.FINISH_REASON_TOOL_USE
        elif "refusal" in kinds and is_translated_stop:
            finish.reason = conversation_pb2.FINISH_REASON_REFUSAL
        out.append(event)

    def end_all(self, out: list[Event]) -> None:
        """Finish all choices, also those without a finish reason; report usage received since.

        Raises:
            UpstreamError: there is no choice, or an index was skipped.
        """
        # `_begin` has checked the upper bound of each index.
        if not self._choices or max(self._choices) >= len(self._choices):
            raise failures.cut_off(self._errors.name)
        for choice in self._choices.values():
            self._finish(choice, out)
        if self._late_usage is not None:
            out.append(self._late_usage)
        self.is_complete = True


def events_from_whole(
    answer: Json,
    call: Call,
    errors: ErrorFactory,
    new_id: IdGenerator,
) -> list[Event]:
    """Return the events of a whole answer.

    Args:
        answer: the provider's JSON.
        call: the call.
        errors: creates errors from the provider's error objects.
        new_id: generates ids that the provider omits.

    Raises:
        UpstreamError: as `StreamReader.read_whole`.
    """
    out: list[Event] = []
    StreamReader(call, errors, new_id).read_whole(answer, out)
    return out


def _usage_of_groq(chunk: Json) -> Json | None:
    """Return the usage in Groq's object of a chunk, None if it has none."""
    match chunk["x_groq"]:
        case {"usage": dict(usage)}:
            return usage
    return None


def _extract_delta(chunk: Any) -> str | None:
    """Return the string that a chunk adds, if it adds nothing else; see `ExtractDelta`.

    Other effects of a chunk yield an event after the string's, or repeat the chunk before. The
    exceptions are unknown lists and unknown fields of a message, which are excluded here.
    """
    match chunk:
        case {"choices": [{"delta": dict(delta)} as choice]}:
            pass
        case _:
            return None
    for name, value in choice.items():
        if isinstance(value, list) and name not in KNOWN_CHOICE_FIELDS:
            return None
    deltas: Json = {}
    for name, value in delta.items():
        if value and name != "role":
            deltas[name] = value
    if len(deltas) != 1:
        return None
    match deltas:
        case {"tool_calls": [{"function": {"arguments": str(piece), **function}, **call}]}:
            # Arguments at other places are rare, and such chunks are parsed one by one.
            is_plain = call.get("type") != "custom" and call.get("custom") is None
            is_known = call.keys() <= KNOWN_CALL_FIELDS and function.keys() <= {"name"}
            return piece if is_plain and is_known else None
        case {"content": str(text)} | {"reasoning_content": str(text)} | {"reasoning": str(text)}:
            return text
    return None
