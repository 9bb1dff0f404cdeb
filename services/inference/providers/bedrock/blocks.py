"""Translate the blocks of an answer of Converse into canonical ones. Pure."""

import binascii
from collections.abc import Mapping
from typing import Any

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Citation,
    Media,
    Opaque,
    ToolUse,
)
from gateway.inference.v1.inference_pb2 import BlockStop, Event, ExtraFields, GenerateRequest
from services.inference.providers.bounds import Bounds, dump, name_of
from services.inference.providers.conversation_writer import base64_of
from services.inference.providers.failures import over_limit
from services.inference.providers.protocols import ErrorFactory

Json = dict[str, Any]

_STOP = BlockStop()
_OPENAI = conversation_pb2.DIALECT_OPENAI
# Values that `toolUse.type` has for tools that the provider runs itself.
_SERVER_TOOL = "server_tool_use"
# As of `Thinking.field`, for thinking of models that sign it.
_SIGNED_FIELD = "reasoning_details"
_HTTP = ("http://", "https://")


class BlockWriter:
    """Writes the blocks of one answer; only one is open at a time.

    Args:
        request: the request.
        names: the caller's names of tools by Bedrock's, for renamed tools.
        bounds: the bounds of the answer.
        errors: has the provider's name and the limits.
    """

    def __init__(
        self,
        request: GenerateRequest,
        names: Mapping[str, str],
        bounds: Bounds,
        errors: ErrorFactory,
    ) -> None:
        self._is_single_text = request.requires_single_text
        self._names = names
        self._bounds = bounds
        self._errors = errors
        self._number = 0  # of the open or next canonical block
        self._index: object = None  # the provider's, of the open block
        self._kind = ""  # text, thinking, redacted, tool_use, image, server; "" for none
        self._has_input = False
        self._length = 0  # characters of the open text
        self._cited: list[Json] = []
        self._pieces: list[bytes] = []  # of an image, or of redacted thinking
        self._size = 0  # of the pieces as base64 text
        self._image_format = ""

    def start(self, index: object, start: Json, out: list[Event]) -> None:
        """Begin a block that has a start event: a tool call, or another that is not text."""
        match start:
            case {"toolUse": dict(use)} if use.get("type") != _SERVER_TOOL:
                self._open(index, "tool_use", out)
                name = name_of(use["name"])
                call = ToolUse(id=name_of(use["toolUseId"]), name=self._names.get(name, name))
                self._has_input = False
                out.append(Event(block=self._number, block_start=Block(tool_use=call)))
            case {"image": dict(image)}:
                self._open(index, "image", out)
                self._image_format = name_of(image["format"])
            case {"toolUse": _} | {"toolResult": _}:
                self._open(index, "server", out)
                self._add_opaque(start, out)
            case _:
                self._close_other(index, out)

    def delta(self, index: object, delta: Json, out: list[Event]) -> None:
        """Add a delta; one of text or thinking begins its block."""
        match delta:
            case {"text": str(text)}:
                self._say(index, "text", text, out)
            case {"reasoningContent": dict(reasoning)}:
                self._think(index, reasoning, out)
            case {"toolUse": dict(use)}:
                self._check(index, "tool_use", "server")
                if self._kind == "tool_use" and (text := _text(use["input"])):
                    self._has_input = True
                    out.append(Event(block=self._number, input=text))
            case {"citation": dict(citation)}:
                self._cite(citation)
            case {"image": dict(image)}:
                self._check(index, "image")
                self._add_image(image)
            case {"toolResult": _}:
                self._check(index, "server")

    def stop(self, index: object, out: list[Event]) -> None:
        """End a block; the end of one that is not open has no effect."""
        if self._kind and index == self._index:
            self.close(out)

    def whole(self, index: int, block: Json, out: list[Event]) -> None:
        """Write a block of a whole answer."""
        match block:
            case {"toolUse": dict(use)} if use.get("type") != _SERVER_TOOL:
                self.start(index, {"toolUse": use}, out)
                arguments = dump(use.get("input") or {})
                if not arguments.startswith(b"{"):
                    raise TypeError("arguments")
                self.delta(index, {"toolUse": {"input": arguments.decode()}}, out)
            case {"reasoningContent": {"reasoningText": dict(reasoning)}}:
                self._think(index, {"text": reasoning["text"]}, out)
                if signature := reasoning.get("signature"):
                    self._think(index, {"signature": signature}, out)
            case {"image": dict(image)}:
                self.start(index, {"image": image}, out)
                self._add_image(image)
            case {"citationsContent": dict(content)}:
                for part in content.get("content") or ():
                    self._say(index, "text", _text(part["text"]), out)
                for citation in content.get("citations") or ():
                    self._cite(citation)
            case {"text": _} | {"reasoningContent": _}:
                self.delta(index, block, out)
            case _:
                self._open(index, "server", out)
                self._add_opaque(block, out)
        self.close(out)

    def close(self, out: list[Event]) -> None:
        """End the open block, if any."""
        kind, number = self._kind, self._number
        if not kind:
            return
        self._kind = ""
        if kind == "redacted":
            data = base64_of(b"".join(self._pieces))
            out.append(Event(block=number, block_start=Block(redacted_thinking=data)))
        elif kind == "tool_use" and not self._has_input:
            # A call without arguments has no deltas, but needs valid JSON.
            out.append(Event(block=number, input="{}"))
        elif kind == "image":
            if not self._write_image(out):
                return
        elif kind == "server":
            return
        out += [Event(block=number, citation=page) for page in self._pages()]
        out.append(Event(block=number, block_stop=_STOP))
        self._number += 1

    def _open(self, index: object, kind: str, out: list[Event]) -> None:
        if type(index) is not int or index < 0:
            raise ValueError("an invalid index")
        self.close(out)
        self._bounds.part()
        self._index, self._kind = index, kind
        self._length = self._size = 0
        self._cited.clear()
        self._pieces.clear()

    def _close_other(self, index: object, out: list[Event]) -> None:
        if index != self._index:
            self.close(out)

    def _check(self, index: object, *kinds: str) -> None:
        if index != self._index or self._kind not in kinds:
            raise ValueError("a delta of another block")

    def _say(self, index: object, kind: str, text: str, out: list[Event]) -> None:
        if self._kind != kind or index != self._index:
            self._open(index, kind, out)
            event = Event(block=self._number)
            if kind == "text":
                event.block_start.text = ""
            else:
                # It must come back with its signature; chats have it in that field.
                event.block_start.thinking.field = _SIGNED_FIELD
            out.append(event)
        self._length += len(text)
        if text and kind == "text":
            out.append(Event(block=self._number, text=text))
        elif text:
            out.append(Event(block=self._number, thinking=text))

    def _think(self, index: object, reasoning: Json, out: list[Event]) -> None:
        match reasoning:
            case {"text": str(text)}:
                self._say(index, "thinking", text, out)
            case {"signature": str(signature)}:
                self._say(index, "thinking", "", out)
                out.append(Event(block=self._number, signature=signature))
            case {"redactedContent": str(data)}:
                if self._kind != "redacted" or index != self._index:
                    self._open(index, "redacted", out)
                self._add_piece(data)

    def _cite(self, citation: Json) -> None:
        match citation:
            case {"location": {"web": {"url": str(url)}}} if url.startswith(_HTTP):
                self._bounds.part()
                self._cited.append({"url": url, "title": citation.get("title")})

    def _pages(self) -> list[Citation]:
        """Return the pages that the open text cites, with all of it as their range."""
        if not self._length:
            return []
        return [
            Citation(
                url=page["url"],
                title=page["title"] if isinstance(page["title"], str) else "",
                start_index=0,
                end_index=self._length,
            )
            for page in self._cited
        ]

    def _add_image(self, image: Json) -> None:
        match image:
            case {"source": {"bytes": str(data)}}:
                self._add_piece(data)

    def _add_piece(self, data: str) -> None:
        self._size += len(data)
        if self._size > self._errors.limits.max_sse_line_bytes:
            raise over_limit(
                self._errors.name,
                "returned a block that is too large",
                "limits.max_sse_line_bytes",
            )
        self._pieces.append(binascii.a2b_base64(data))

    def _write_image(self, out: list[Event]) -> bool:
        """Write the image that has been received; return whether it is a block."""
        mime = f"image/{self._image_format}"
        data = b"".join(self._pieces)
        if not self._is_single_text:
            kind = conversation_pb2.MEDIA_KIND_IMAGE
            medium = Media(kind=kind, mime_type=mime, data=data)
            out.append(Event(block=self._number, block_start=Block(media=medium)))
            return True
        # The format of OpenRouter and others.
        url = {"url": f"data:{mime};base64,{base64_of(data)}"}
        fields = {"images": [{"type": "image_url", "image_url": url}]}
        extra = Opaque(dialect=_OPENAI, json=self._bounds.keep_fields(fields))
        out.append(Event(extra_fields=ExtraFields(message=extra)))
        return False

    def _add_opaque(self, fields: Json, out: list[Event]) -> None:
        """Add a block of an unknown type, so that it is named to the caller."""
        opaque = Opaque(json=self._bounds.keep_fields(fields))
        out.append(Event(block=self._number, block_start=Block(opaque=opaque)))
        out.append(Event(block=self._number, block_stop=_STOP))
        self._number += 1


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value
