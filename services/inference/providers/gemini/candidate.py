"""Translate one candidate of an answer, part by part, into canonical blocks."""

import binascii
from collections.abc import Mapping
from typing import Any

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    FinishReason,
    Media,
    Opaque,
    ToolUse,
)
from gateway.inference.v1.inference_pb2 import (
    BlockStop,
    Event,
    ExtraFields,
    Finish,
    GenerateRequest,
    ThinkingConfig,
)
from services.common.ids import UNNAMED_CALL, IdGenerator
from services.inference.providers.bounds import Bounds, dump, name_of
from services.inference.providers.gemini import signatures
from services.inference.providers.gemini.grounding import CitedText
from services.inference.providers.gemini.logprobs import read_logprobs

Json = dict[str, Any]

_OPENAI = conversation_pb2.DIALECT_OPENAI
_GEMINI = conversation_pb2.DIALECT_GEMINI

# Candidate.FinishReason in Google's reference. Unknown reasons count as a normal end.
_REASONS = {
    "STOP": conversation_pb2.FINISH_REASON_END_TURN,
    "MAX_TOKENS": conversation_pb2.FINISH_REASON_MAX_TOKENS,
}
_FILTERED = frozenset(
    (
        *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
        *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
    )
)
# Failures: the model wrote a malformed call, or one of an unknown function.
_FAILURES = frozenset(
    (
        *("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"),
        *("MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE"),
    )
)
# Fields of a candidate that are read here or ignored.
_NAMED = frozenset(
    (
        *("content", "finishReason", "index", "logprobsResult", "avgLogprobs"),
        *("safetyRatings", "tokenCount"),
    )
)
# The same for callers of this dialect, and fields of parts and calls with a canonical name.
_READ = frozenset({"content", "finishReason", "index"})
_TEXT = frozenset({"text", "thought"})
_CALL = frozenset({"id", "name", "args"})
_STOP = BlockStop()


class Candidate:
    """One candidate of an answer, parsed incrementally.

    Args:
        number: the candidate's index.
        request: the request.
        names: the caller's names of functions by Gemini's, for renamed functions.
        new_id: generates ids for calls without one.
        bounds: the bounds of the answer.
        is_native: whether the caller uses this dialect, and gets all fields of the candidate.

    Attributes:
        reason: Gemini's finish reason; "" until the candidate ends.
    """

    def __init__(
        self,
        number: int,
        request: GenerateRequest,
        names: Mapping[str, str],
        new_id: IdGenerator,
        bounds: Bounds,
        *,
        is_native: bool = False,
    ) -> None:
        self.reason = ""
        self._number = number
        self._is_native = is_native
        # Answers of a single text have signatures and unknown parts in fields of the message, as in
        # Google's OpenAI-compatible API.
        self._is_single_text = request.requires_single_text
        self._shows_signatures = _asks_to_think(request.thinking) and not request.ends_with_text
        self._names = names
        self._new_id = new_id
        self._bounds = bounds
        self._block = 0  # number of the open or next block
        self._open = ""  # "text", "thinking", or "" for none
        self._text_signature = ""  # of the last text, for answers of a single text
        self._after_text = ""  # signature of the open text, for other answers
        self._cited = CitedText()
        self._signature = ""  # of the open thinking block
        self._called = False
        self._program = ""  # id of the last program that Google has run
        self._extra_fields: Json = {}

    @property
    def failure(self) -> str:
        """The finish reason if it is a failure of the model, else ""."""
        return self.reason if self.reason in _FAILURES else ""

    @property
    def searches(self) -> int:
        """The number of Google's searches for the answer."""
        return _count(self._extra_fields, "groundingMetadata", "webSearchQueries")

    @property
    def fetches(self) -> int:
        """The number of pages that Google has fetched for the answer."""
        return _count(self._extra_fields, "urlContextMetadata", "urlMetadata")

    def read(self, chunk: Json, out: list[Event]) -> None:
        """Read a chunk of the candidate."""
        result = chunk.get("logprobsResult")
        logprobs = read_logprobs(result) if result else b""
        content = chunk.get("content") or {}
        for part in content.get("parts") or ():
            self._part(part, logprobs, out)
            if "text" in part and not part.get("thought"):
                logprobs = b""
        if reason := chunk.get("finishReason"):
            self.reason = name_of(reason)
        fields_elsewhere = _READ if self._is_native else _NAMED
        for name, value in chunk.items():
            if name not in fields_elsewhere and value:
                self._extra_fields[name] = value

    def end(self, out: list[Event]) -> None:
        """Add the end of the answer."""
        if self._is_native:
            self._close(out)
            own = dump({**self._extra_fields, "finishReason": self.reason})
            finish = Finish(reason=self._finish_reason())
            finish.extra.CopyFrom(Opaque(dialect=_GEMINI, json=own))
            out.append(Event(choice=self._number, finish=finish))
            return
        extra_fields = self._cite(out)
        self._close(out)
        if self._text_signature:
            signed = ExtraFields(message=signatures.for_chat(self._text_signature))
            out.append(Event(choice=self._number, extra_fields=signed))
        finish = Finish(reason=self._finish_reason())
        if self.reason not in _REASONS:
            extra_fields["finishReason"] = self.reason
        if extra_fields and self._is_single_text:
            finish.extra.dialect = _OPENAI
            finish.extra.json = dump({"extra_content": {"google": extra_fields}})
        elif extra_fields:
            left = Opaque(dialect=_GEMINI, json=dump(extra_fields))
            out.append(Event(choice=self._number, extra_fields=ExtraFields(message=left)))
        out.append(Event(choice=self._number, finish=finish))

    def _cite(self, out: list[Event]) -> Json:
        """Add the citations of the open text; return the unknown fields without them.

        Callers whose answer is a single text get the fields too, as of Google's OpenAI-compatible
        API.
        """
        fields = dict(self._extra_fields)
        for citation in self._cited.take_citations(fields) if self._open == "text" else ():
            out.append(Event(choice=self._number, block=self._block, citation=citation))
        return dict(self._extra_fields) if self._is_single_text else fields

    def _finish_reason(self) -> FinishReason.ValueType:
        if self.reason in _FILTERED:
            return conversation_pb2.FINISH_REASON_REFUSAL
        reason = _REASONS.get(self.reason, conversation_pb2.FINISH_REASON_END_TURN)
        # Google has no finish reason for tool calls; compatible servers have several.
        if self._called and reason == conversation_pb2.FINISH_REASON_END_TURN:
            return conversation_pb2.FINISH_REASON_TOOL_USE
        return reason

    def _native_part(self, part: Json, logprobs: bytes, out: list[Event]) -> None:
        """Add a part for a caller of this dialect: with all of its fields."""
        text, call = part.get("text"), part.get("functionCall")
        if isinstance(call, dict):
            self._close(out)
            self._add_native_call(call, part, out)
        elif text and part.keys() <= _TEXT:
            if not isinstance(text, str):
                raise TypeError("no text")
            self._text(text, bool(part.get("thought")), "", logprobs, out)
        elif part and (text != "" or len(part) > 1):
            self._close(out)
            self._add(Block(opaque=Opaque(dialect=_GEMINI, json=dump(part))), out)

    def _add_native_call(self, call: Json, part: Json, out: list[Event]) -> None:
        name = name_of(call.get("name"))
        if not name:
            raise ValueError("a call without a name")
        args = dump(call.get("args") or {})
        if not args.startswith(b"{"):
            raise TypeError("arguments")
        use = ToolUse(id=name_of(call.get("id") or self._new_id(UNNAMED_CALL)), name=name)
        block = Block(tool_use=use)
        others = {field: one for field, one in part.items() if field != "functionCall"}
        if inner := {field: one for field, one in call.items() if field not in _CALL}:
            others["functionCall"] = inner
        if others:
            block.extra.CopyFrom(Opaque(dialect=_GEMINI, json=dump(others)))
        self._add_call(block, args, out)

    def _part(self, part: Json, logprobs: bytes, out: list[Event]) -> None:
        if self._is_native:
            self._native_part(part, logprobs, out)
            return
        signature = signatures.of_part(part) if "thoughtSignature" in part else ""
        text = part.get("text")
        if text is not None:
            if not isinstance(text, str):
                raise TypeError("no text")
            self._text(text, bool(part.get("thought")), signature, logprobs, out)
        elif call := part.get("functionCall"):
            self._call(call, signature, out)
        elif data := part.get("inlineData"):
            self._close(out)
            self._medium(data, out)
            self._sign_text(signature, out)
        else:
            self._unknown(part, out)

    def _text(
        self, text: str, is_thought: bool, signature: str, logprobs: bytes, out: list[Event]
    ) -> None:
        kind = "thinking" if is_thought else "text"
        if text:
            if self._open != kind or self._after_text:
                self._close(out)
                self._begin(kind, out)
            event = Event(choice=self._number, block=self._block)
            if is_thought:
                event.thinking = text
            else:
                event.text = text
                event.logprobs = logprobs
                self._cited.add(text)
            out.append(event)
        if not signature:
            return
        if is_thought and self._open == kind:
            self._signature = signatures.packed(signatures.THOUGHT, signature)
        else:
            self._sign_text(signature, out)

    def _sign_text(self, signature: str, out: list[Event]) -> None:
        """Add the signature of a text part, in a block of its own.

        It slightly improves later answers and is never required. It is therefore only sent to
        callers who enabled thinking and whose answer need not end with text.
        """
        if not signature:
            return
        if self._is_single_text:
            self._text_signature = signature  # sent at the end: one per message
        elif self._shows_signatures:
            self._after_text = signatures.packed(signatures.TEXT, signature)
            if self._open != "text":
                self._close(out)

    def _call(self, call: Json, signature: str, out: list[Event]) -> None:
        name = name_of(call.get("name"))
        if not name:
            raise ValueError("a call without a name")
        use = ToolUse(
            id=name_of(call.get("id") or self._new_id("call_")), name=self._names.get(name, name)
        )
        args = dump(call.get("args") or {})
        if not args.startswith(b"{"):
            raise TypeError("arguments")
        block = Block(tool_use=use)
        if signature:
            # For answers of a single text, and for memories, which store no thinking.
            block.extra.CopyFrom(signatures.for_chat(signature))
        if signature and not self._is_single_text:
            carried = signatures.packed(signatures.CALL, signature)
            if self._open == "thinking" and not self._signature:
                self._signature = carried
            else:
                self._close(out)
                self._add(Block(redacted_thinking=carried), out)
        self._close(out)
        self._add_call(block, args, out)

    def _add_call(self, block: Block, args: bytes, out: list[Event]) -> None:
        self._called = True
        self._bounds.part()
        number, at = self._number, self._block
        out.append(Event(choice=number, block=at, block_start=block))
        out.append(Event(choice=number, block=at, input=args.decode()))
        out.append(Event(choice=number, block=at, block_stop=_STOP))
        self._block += 1

    def _medium(self, inline: Json, out: list[Event]) -> None:
        """Add an image or another medium."""
        mime, data = name_of(inline.get("mimeType") or ""), inline.get("data")
        if not isinstance(data, str):
            raise TypeError("no data")
        if self._is_single_text and mime.startswith("image/"):
            # The format of OpenRouter and others.
            url = {"url": f"data:{mime};base64,{data}"}
            self._add_unknown_fields({"images": [{"type": "image_url", "image_url": url}]}, out)
        elif self._is_single_text:
            self._add_unknown_fields(_google_parts({"inlineData": inline}), out)
        else:
            content = binascii.a2b_base64(data)
            medium = Media(kind=_media_kind(mime), mime_type=mime, data=content)
            self._add(Block(media=medium), out)

    def _unknown(self, part: Json, out: list[Event]) -> None:
        """Keep a part of an unknown type, so that no content is lost."""
        if not self._is_single_text and (carried := signatures.packed_part(part)):
            self._close(out)
            self._add(Block(redacted_thinking=carried), out)
            return
        kept = {name: value for name, value in part.items() if name != "thoughtSignature"}
        if not any(kept.values()):
            return
        self._name_program(kept)
        self._close(out)
        if self._is_single_text:
            self._add_unknown_fields(_google_parts(kept), out)
        else:
            self._add(Block(opaque=Opaque(dialect=_GEMINI, json=dump(kept))), out)

    def _name_program(self, part: Json) -> None:
        """Add an id to a program without one, and to its output, for writers of other dialects."""
        match part:
            case {"executableCode": {**program}}:
                self._program = name_of(program.get("id") or self._new_id("code_"))
                part["executableCode"] = {**program, "id": self._program}
            case {"codeExecutionResult": {**output}} if self._program:
                part["codeExecutionResult"] = {"id": self._program, **output}

    def _add_unknown_fields(self, fields: Json, out: list[Event]) -> None:
        """Add unknown fields of the message."""
        opaque = Opaque(dialect=_OPENAI, json=self._bounds.keep_fields(fields))
        out.append(Event(choice=self._number, extra_fields=ExtraFields(message=opaque)))

    def _begin(self, kind: str, out: list[Event]) -> None:
        self._bounds.part()
        event = Event(choice=self._number, block=self._block)
        if kind == "text":
            event.block_start.text = ""
            self._cited.begin()
        else:
            event.block_start.thinking.SetInParent()
            if self._is_native:
                # A mark: the gateway's signature adds nothing for a caller of this dialect.
                event.block_start.extra.CopyFrom(Opaque(dialect=_GEMINI, json=b"{}"))
        self._open = kind
        out.append(event)

    def _add(self, block: Block, out: list[Event]) -> None:
        """Add a complete block."""
        self._bounds.part()
        out.append(Event(choice=self._number, block=self._block, block_start=block))
        out.append(Event(choice=self._number, block=self._block, block_stop=_STOP))
        self._block += 1

    def _close(self, out: list[Event]) -> None:
        """Close the open block, and add the signature of a text after it."""
        if self._open:
            number, at = self._number, self._block
            if self._signature:
                out.append(Event(choice=number, block=at, signature=self._signature))
                self._signature = ""
            out.append(Event(choice=number, block=at, block_stop=_STOP))
            self._open = ""
            self._block += 1
        if carried := self._after_text:
            self._after_text = ""
            self._add(Block(redacted_thinking=carried), out)


def _count(fields: Json, holder: str, name: str) -> int:
    metadata = fields.get(holder)
    values = metadata.get(name) if isinstance(metadata, dict) else None
    return len(values) if isinstance(values, list) else 0


def _asks_to_think(thinking: ThinkingConfig) -> bool:
    if thinking.mode == ThinkingConfig.MODE_UNSPECIFIED:
        return thinking.effort not in ("", "none")
    return thinking.mode != ThinkingConfig.MODE_DISABLED


def _google_parts(part: Json) -> Json:
    return {"extra_content": {"google": {"parts": [part]}}}


def _media_kind(mime: str) -> conversation_pb2.MediaKind.ValueType:
    match mime.partition("/")[0]:
        case "image":
            return conversation_pb2.MEDIA_KIND_IMAGE
        case "audio":
            return conversation_pb2.MEDIA_KIND_AUDIO
        case "video":
            return conversation_pb2.MEDIA_KIND_VIDEO
    return conversation_pb2.MEDIA_KIND_DOCUMENT
