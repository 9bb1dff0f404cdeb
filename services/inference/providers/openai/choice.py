"""One choice of an answer, parsed delta by delta. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI, Citation, Opaque
from gateway.inference.v1.inference_pb2 import Event, ExtraFields
from services.common.ids import IdGenerator
from services.inference.providers.bounds import Bounds, dump, name_of
from services.inference.providers.openai.blocks import Blocks, TextKind, ToolCall
from services.inference.providers.openai.unknown_fields import (
    KNOWN_CHOICE_FIELDS,
    citations_in,
    fields_as_texts,
    image_as_text,
    note_on_unknown_fields,
    thinking_in_details,
    unknown_call_fields,
    unknown_message_fields,
)
from services.inference.providers.request_fields import Json

_Content = tuple[TextKind, str] | tuple[Literal["part"], Json]

_PLAIN = frozenset({"role", "content"})


class Choice:
    """One choice of an answer, parsed delta by delta.

    Args:
        number: the choice's index.
        new_id: generates the id of a tool call for which the provider sent none.
        bounds: the bounds of the answer.
        names: the caller's tool names by the server's, for renamed tools.
        translates: whether the caller's dialect is another one.

    Attributes:
        number: the choice's index.
        ended: whether the choice is complete.
        blocks: the writer of its events.
    """

    __slots__ = (
        *("_bounds", "_calls", "_citations", "_fields", "_last", "_names", "_next"),
        *("_translates", "_unknown", "blocks", "ended", "number"),
    )

    def __init__(
        self,
        number: int,
        new_id: IdGenerator,
        bounds: Bounds,
        names: Mapping[str, str],
        *,
        translates: bool,
    ) -> None:
        self.number = number
        self.ended = False
        self.blocks = Blocks(number, new_id, bounds)
        self.blocks.tells_signatures = translates
        self._bounds = bounds
        self._names = names
        self._translates = translates
        self._calls: dict[int, ToolCall] = {}
        self._citations: list[Citation] = []  # for callers of another dialect
        self._last = -1  # index of the last received call
        self._next = 0  # lowest unused index of calls
        self._fields: Json = {}  # unknown fields of the choice, as last reported
        self._unknown: set[str] = set()  # names of the message's unknown fields

    def read(self, given: Json, key: str, out: list[Event]) -> Json:
        """Parse a delta or message; `key` is its name in the choice.

        Returns:
            The choice's unknown fields; an event reports them here unless the choice ends.
        """
        delta: Json = given.get(key) or {}
        if delta.keys() <= _PLAIN and given.keys() <= KNOWN_CHOICE_FIELDS:
            content = delta.get("content")
            if isinstance(content, str | None) and not given.get("logprobs"):
                # The fast path of nearly all deltas.
                if content:
                    self.blocks.text("text", content, b"", out)
                return {}
        logprobs = _logprobs_of(given)
        message = unknown_message_fields(delta)
        if self._translates and (cited := message.pop("annotations", None)):
            self._bounds.keep_fields({"annotations": cited})
            self._citations += citations_in(cited)
        fields: Json = {}
        if not given.keys() <= KNOWN_CHOICE_FIELDS:
            fields = {
                name: value
                for name, value in given.items()
                if name not in KNOWN_CHOICE_FIELDS and value is not None
            }
        if message or fields:
            self._add_unknown_fields(fields if not given.get("finish_reason") else {}, message, out)
        contents = list(self._contents(delta, message))
        calls = delta.get("tool_calls")
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
        for call in calls or ():
            self._read_call(call, logprobs, out)
            logprobs = b""
        return fields

    def end(self, out: list[Event]) -> bool:
        """Close all blocks; return whether every call had a name."""
        self.ended = True
        self.blocks.cite(self._citations, out)
        if self._translates and not self.blocks.kinds - {"thinking"}:
            # An answer with only unknown parts would be empty.
            if note := note_on_unknown_fields(self._unknown):
                self.blocks.text("text", note, b"", out)
        return self.blocks.end(out)

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
        if thoughts or (thoughts := thinking_in_details(message.get("reasoning_details"))):
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
            elif not self._translates:
                yield "part", part
            elif text := image_as_text(part):
                yield "text", text
            else:
                self._unknown.add(name_of(kind))

    def _read_call(self, given: Json, logprobs: bytes, out: list[Event]) -> None:
        function: Json = given.get("function") or given.get("custom") or {}
        call = self._call_of(given, function)
        call.id = call.id or _text(given.get("id"))
        if not call.name:
            name = _text(function.get("name"))
            call.name = self._names.get(name, name)
        if extra := unknown_call_fields(given, function):
            self.blocks.keep(call, extra, out)
        piece = function.get("arguments")
        if given.get("type") == "custom" or given.get("custom") is not None:
            call.freeform = True
            piece = function.get("input")
        if piece is not None and not isinstance(piece, str):
            piece = dump(piece).decode()  # some servers parse the arguments
        self.blocks.tool(call, piece or "", logprobs, out)

    def _call_of(self, given: Json, function: Json) -> ToolCall:
        """Return the call that a piece belongs to.

        Pieces refer to it by index. Servers that omit the index, or send the same one for each
        call, begin each call with an id and a name.
        """
        index = given.get("index")
        begins = bool(given.get("id") and function.get("name"))
        if not isinstance(index, int) or index < 0:
            index = self._last + 1 if begins or self._last < 0 else self._last
        elif begins and index in self._calls and self._calls[index].id not in ("", given["id"]):
            index = self._next
        self._last = index
        call = self._calls.get(index)
        if call is None:
            self._bounds.part()
            self._next = max(self._next, index + 1)
            call = self._calls[index] = self.blocks.new_call()
        return call


def _text(value: object) -> str:
    """Return a string value; "" if it is missing."""
    if not value:
        return ""
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _logprobs_of(given: Json) -> bytes:
    told = given.get("logprobs")
    if not told:
        return b""
    if not isinstance(told, dict):
        raise TypeError("logprobs")
    return dump(told)
