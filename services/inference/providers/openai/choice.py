"""One choice of an answer, parsed delta by delta. Pure."""

from collections.abc import Iterator, Sequence
from typing import Literal

from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_OPENAI,
    FINISH_REASON_END_TURN,
    Citation,
    Opaque,
)
from gateway.inference.v1.inference_pb2 import Event, ExtraFields
from services.common.messages.notes import note_on_unknown_parts
from services.inference.providers.base import Call
from services.inference.providers.bounds import Bounds, dump, name_of
from services.inference.providers.opaque_json import Json
from services.inference.providers.openai import reasoning_details
from services.inference.providers.openai.answer_fields import (
    KNOWN_CHOICE_FIELDS,
    KNOWN_MESSAGE_FIELDS,
    annotations_of,
    fields_as_texts,
    image_as_text,
    take_call,
    take_citations,
    thinking_in_details,
    unknown_call_fields,
    unknown_choice_fields,
    unknown_message_fields,
)
from services.inference.providers.openai.blocks import EMPTY, Blocks, TextKind, ToolCall
from services.inference.providers.openai.reasoning_details import ReceivedDetails
from services.inference.providers.openai.tool_calls import Piece, ReceivedCalls, may_be_tool

_Content = tuple[TextKind, str] | tuple[Literal["part"], Json]

# Known fields of a message that have content other than its text.
_NO_TEXT = ("refusal", "tool_calls", "reasoning_content")


class Choice:
    """One choice of an answer, parsed delta by delta.

    Args:
        number: the choice's index.
        blocks: the writer of its events.
        bounds: the bounds of the answer.
        call: the call that is answered.
        translates: whether the caller's dialect is another one.

    Attributes:
        number: the choice's index.
        finish_reason: the last finish reason of the server; "" before one.
        canonical_reason: the canonical reason of that; the end of a turn before one.
        finish_fields: the unknown fields beside it.
        blocks: the writer of its events.
        pages: pages that the server names beside its answer, as last reported.
    """

    __slots__ = (
        *("_bounds", "_call", "_calls", "_fields", "_sends_messages", "_translates"),
        *("_unknown", "blocks", "canonical_reason", "finish_fields", "finish_reason"),
        *("number", "pages"),
    )

    def __init__(
        self,
        number: int,
        blocks: Blocks,
        bounds: Bounds,
        call: Call,
        *,
        translates: bool,
    ) -> None:
        self.number = number
        self.finish_reason = ""
        self.canonical_reason = FINISH_REASON_END_TURN
        self.finish_fields: Json = {}
        self.blocks = blocks
        self.pages: Sequence[Citation] = ()
        self._bounds = bounds
        self._call = call
        self._translates = translates
        self._calls: ReceivedCalls | None = None
        self._sends_messages = False  # whether the content comes in messages, not in deltas
        self._fields: Json = {}  # unknown fields of the choice, as last reported
        self._unknown: set[str] = set()  # names of the message's unknown fields

    def read(self, choice: Json, key: str, out: list[Event]) -> Json:
        """Parse a delta or message; `key` is its name in the choice.

        Returns:
            The choice's unknown fields; an event reports them here unless the choice ends.
        """
        delta: Json = choice.get(key) or {}
        if not delta and ("message" in choice or "text" in choice):
            delta, key = self._without_delta(choice)
        if (
            delta.keys() <= KNOWN_MESSAGE_FIELDS
            and choice.keys() <= KNOWN_CHOICE_FIELDS
            and isinstance(content := delta.get("content"), str | None)
            and not any(map(delta.get, _NO_TEXT))
            and not choice.get("logprobs")
        ):
            # The fast path of nearly all deltas.
            if content:
                self.blocks.text("text", content, b"", out)
            return {}
        logprobs = _logprobs_of(choice)
        message = unknown_message_fields(delta)
        carried = self._carried(message) if message and self._translates else ()
        calls = delta.get("tool_calls") or carried
        fields = unknown_choice_fields(choice)
        if message or fields:
            self._add_unknown_fields(
                fields if not choice.get("finish_reason") else {}, message, out
            )
        contents = list(self._contents(delta, message))
        if logprobs and not contents and not calls:
            contents.append(("text", ""))  # a token without text, such as half a character
        for one in contents:
            if one[0] == "part":
                self.blocks.part(self._bounds.keep_delta(one[1]), out)
                continue
            # Log probabilities belong to the answer's tokens, which follow the thinking.
            is_last = one[0] != "thinking"
            self.blocks.text(one[0], one[1], logprobs if is_last else b"", out)
            if is_last:
                logprobs = b""
        if calls:
            self._read_calls(calls, key == "message", logprobs, out)
        return fields

    def _without_delta(self, choice: Json) -> tuple[Json, str]:
        """Return what a choice adds that has no delta, and the name of that.

        Some servers stream an answer that they have generated at once as a whole message, others
        all of it as pieces of a message, and servers of the older completions write `text`. A
        message after deltas repeats them.
        """
        message = choice.get("message")
        if message and (self._sends_messages or not self.blocks.kinds):
            is_first = not self._sends_messages
            has_content = any(value for name, value in message.items() if name != "role")
            self._sends_messages = self._sends_messages or has_content
            return message, "message" if is_first else "delta"
        text = choice.get("text")
        return ({"content": text} if isinstance(text, str) and text else {}), "delta"

    def end(self, out: list[Event]) -> bool:
        """Close all blocks; return whether every call had a name."""
        if self._translates and not self.blocks.kinds - {"thinking", "part"}:
            # An answer with only unknown parts would be empty.
            if note := note_on_unknown_parts(self._unknown):
                self.blocks.text("text", note, b"", out)
        self.blocks.citations = self.blocks.citations or [*self.pages]
        details, kinds = self.blocks.details, self.blocks.kinds
        if details and self._call.request.ends_with_text and kinds & {"text", "tool"} == {"text"}:
            details.take()  # no block may follow the text
        is_named = self.blocks.end(out)
        if self.blocks.citations:
            # Those of no text, or of several.
            uncited = annotations_of(self.blocks.citations)
            self._add_unknown_fields({}, {"annotations": uncited}, out)
        return is_named

    def _carried(self, message: Json) -> Sequence[Json]:
        """Take what callers of another dialect receive from the message's unknown fields.

        These are citations, and the deprecated form of a call, which is returned.
        """
        if cited := message.get("annotations"):
            self._bounds.keep_fields({"annotations": cited})
            self.blocks.citations += take_citations(message)
        return take_call(message)

    def _add_unknown_fields(self, fields: Json, message: Json, out: list[Event]) -> None:
        """Add an event for unknown fields.

        The choice's fields are repeated if they have changed. Lists are always repeated: a list per
        token differs each time.
        """
        extra_fields = ExtraFields()
        changed = {
            name: value
            for name, value in fields.items()
            if isinstance(value, list) or self._fields.get(name) != value
        }
        if changed:
            self._fields |= changed
            extra_fields.choice.CopyFrom(self._opaque(changed))
        if message:
            if self._translates:
                self._unknown |= message.keys()
            extra_fields.message.CopyFrom(self._opaque(message))
        if changed or message:
            out.append(Event(choice=self.number, extra_fields=extra_fields))

    def _opaque(self, fields: Json) -> Opaque:
        return Opaque(dialect=DIALECT_OPENAI, json=self._bounds.keep_fields(fields))

    def _contents(self, delta: Json, message: Json) -> Iterator[_Content]:
        """Yield the content of a delta, in order."""
        thoughts = delta.get("reasoning_content")
        reasoning = delta.get("reasoning")
        if isinstance(reasoning, str) and reasoning:
            self.blocks.thoughts_field = "reasoning"
            thoughts = thoughts or reasoning
        details = message.get(reasoning_details.FIELD)
        if not thoughts and details:
            thoughts = thinking_in_details(details)
        if details and self._translates:
            if self.blocks.details is None:
                self.blocks.details = ReceivedDetails()
            self.blocks.details.add(details, thoughts or "")
        if thoughts:
            yield "thinking", thoughts
        content = delta.get("content")
        if isinstance(content, list):
            yield from self._from_parts(content)
        elif content:
            yield "text", content
        if message and self._translates:
            for text in fields_as_texts(message):
                yield "text", text
        if refusal := delta.get("refusal"):
            yield "refusal", refusal

    def _from_parts(self, parts: Sequence[Json]) -> Iterator[_Content]:
        """Yield the content of a list of parts, the format of Mistral's reasoning models."""
        for part in parts:
            kind = part.get("type")
            if kind == "text":
                yield "text", part["text"]
            elif kind == "thinking":
                for inner in part["thinking"]:
                    if "text" in inner:
                        yield "thinking", inner["text"]
            elif self._translates and (text := image_as_text(part)):
                yield "text", text
            else:
                self._unknown.add(name_of(kind))
                yield "part", part

    def _read_calls(
        self, calls: Sequence[Json], is_whole: bool, logprobs: bytes, out: list[Event]
    ) -> None:
        """Parse pieces of tool calls, or whole calls."""
        is_several = len(calls) > 1
        for position, call in enumerate(calls):
            self._read_call(call, position if is_several else None, is_whole, logprobs, out)
            logprobs = b""

    def _read_call(
        self, fields: Json, position: int | None, is_whole: bool, logprobs: bytes, out: list[Event]
    ) -> None:
        """Parse a piece of a tool call; `position` and `is_whole` are those of the piece."""
        function: Json = fields.get("function") or {}
        is_freeform = fields.get("type") == "custom" or (
            bool(fields.get("custom")) and not function
        )
        kind, field = ("custom", "input") if is_freeform else ("function", "arguments")
        if is_freeform:
            function = fields.get("custom") or function
        arguments = function.get(field)
        if arguments is not None and not isinstance(arguments, str):
            arguments = dump(arguments).decode()  # some servers parse the arguments
        index = fields.get("index")
        name = _text(function.get("name"))
        piece = Piece(
            index if isinstance(index, int) and index >= 0 else None,
            position,
            _text(fields.get("id")),
            self._call.tool_names.get(name, name),
            arguments or "",
        )
        calls = self._calls = self._calls or ReceivedCalls()
        call = None if is_whole else calls.call_of(piece)
        if call is None:
            self._bounds.part()
            call = self.blocks.new_call()
            calls.add(piece, call)
        call.id = call.id or piece.id
        call.freeform = call.freeform or is_freeform
        if piece.name:
            self._add_name(call, piece.name)
        if extra := unknown_call_fields(fields, kind, function):
            self.blocks.keep(call, extra, out)
        written = piece.arguments
        if written.strip() == EMPTY and not (call.freeform or call.has_arguments()):
            call.holds_empty, written = True, ""
        self.blocks.tool(call, written, logprobs, out)

    def _add_name(self, call: ToolCall, name: str) -> None:
        """Add a piece of a call's name; most servers send it whole, some repeat it."""
        if call.is_named or name == call.name:
            return
        joined = call.name + name
        call.name = self._call.tool_names.get(joined, joined)
        call.is_named = may_be_tool(self._call, call.name)


def _text(value: object) -> str:
    """Return a string value; "" if it is missing."""
    if not value:
        return ""
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _logprobs_of(choice: Json) -> bytes:
    logprobs = choice.get("logprobs")
    if not logprobs:
        return b""
    if not isinstance(logprobs, dict):
        raise TypeError("logprobs")
    return dump(logprobs)
