"""What a span says of an answer: its id, and why its choices ended. Pure.

The reasons are those of the semantic conventions where they have one: stop, length, tool_call,
content_filter.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from gateway.conversation.v1.conversation_pb2 import FinishReason
from gateway.inference.v1.inference_pb2 import Event, Finish
from services.common.messages.passthrough_answer import PassthroughAnswer
from services.common.messages.plain_answer import PlainAnswer

# Longer answers are not parsed for a span.
_MAX_BYTES = 1 << 20
_MAX_ID = 256
_MAX_CHOICES = 128
# Reasons of providers, and the names of `FinishReason`, in the words of the conventions.
_REASONS: Mapping[str, str] = {
    "completed": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "context_window": "length",
    "max_output_tokens": "length",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "function_call": "tool_call",
    "tool_calls": "tool_call",
    "tool_use": "tool_call",
    "refusal": "content_filter",
}


class AnswerFacts:
    """The facts of one answer, collected while it arrives.

    Attributes:
        id: id of the answer, or "".
        reasons: the reasons of choices that have ended.
    """

    def __init__(self) -> None:
        self.id = ""
        self.reasons: list[str] = []

    def attributes(self) -> Mapping[str, str | Sequence[str]]:
        """Return the attributes of a span."""
        attributes: dict[str, str | Sequence[str]] = {}
        if self.id:
            attributes["gen_ai.response.id"] = self.id[:_MAX_ID]
        if self.reasons:
            attributes["gen_ai.response.finish_reasons"] = self.reasons[:_MAX_CHOICES]
        return attributes

    def add_events(self, batch: Sequence[Event]) -> None:
        """Add the facts of events of a provider."""
        for event in batch:
            kind = event.WhichOneof("kind")
            if kind == "start":
                self.id = event.start.id
            elif kind == "finish":
                self._add_reason(_name_of(event.finish))
            elif kind == "whole":
                self.id = event.whole.id
                for choice in event.whole.choices:
                    self._add_reason(_name_of(choice.finish))

    def add_whole(self, answer: PassthroughAnswer) -> None:
        """Add the facts of an answer that is passed through."""
        if isinstance(answer, PlainAnswer):
            self.id = answer.id
            for plain in answer.choices:
                self._add_reason(FinishReason.Name(plain.reason))
            return
        if len(answer.passthrough) > _MAX_BYTES:
            return
        try:
            body = orjson.loads(answer.passthrough)
        except orjson.JSONDecodeError:
            return
        if isinstance(body, dict):
            self.id = body["id"] if isinstance(body.get("id"), str) else ""
            for reason in _reasons_in(body):
                self._add_reason(reason)

    def _add_reason(self, name: object) -> None:
        if isinstance(name, str) and name:
            reason = name.removeprefix("FINISH_REASON_").lower()
            self.reasons.append(_REASONS.get(reason, reason))


def _name_of(finish: Finish) -> str:
    return FinishReason.Name(finish.reason)


def _reasons_in(body: Mapping[str, Any]) -> Iterator[object]:
    """Yield the reasons in an answer of OpenAI's or Anthropic's dialect, or in a response."""
    choices = body.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            yield choice.get("finish_reason")
    yield body.get("stop_reason")
    if body.get("object") == "response":
        details = body.get("incomplete_details")
        yield details.get("reason") if isinstance(details, dict) else body.get("status")
