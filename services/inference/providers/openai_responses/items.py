"""Canonical messages as input items of OpenAI's responses. Pure."""

from collections.abc import Sequence

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message, Opaque, Thinking
from services.common.errors import invalid
from services.inference.learned.refusals import OF_BLOCKS, OF_MESSAGES
from services.inference.providers.conversation_writer import (
    ConversationWriter,
    base64_of,
    image_type_of,
)
from services.inference.providers.opaque_json import Json, read_object
from services.inference.providers.openai_responses.fields import ResponsesFields

Item = Json | orjson.Fragment

_PDF = "application/pdf"
# Paths below which dropped fields are reported.
_OF_MESSAGES = "messages[].extra"
_OF_BLOCKS = "messages[].blocks[].extra"
_ROLES = {
    conversation_pb2.ROLE_USER: "user",
    conversation_pb2.ROLE_ASSISTANT: "assistant",
    conversation_pb2.ROLE_SYSTEM: "system",
    conversation_pb2.ROLE_DEVELOPER: "developer",
}
_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/vnd.wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}
# Types of opaque blocks that are content parts; any other is an item.
_PARTS = ("input_", "output_text", "computer_screenshot")
_REFERENCE = "item_reference"
_APPROVAL_REQUEST = "mcp_approval_request"


class Input(ConversationWriter):
    """The input items and instructions of one request.

    Attributes:
        instructions: the system prompt; "" if there is none.
        items: the items to send, in order.
    """

    _fields: ResponsesFields

    def __init__(self, fields: ResponsesFields, messages: Sequence[Message]) -> None:
        """Translate all messages.

        Raises:
            GatewayError: invalid or unsupported, with the path of the part.
        """
        self.instructions = ""
        self.items: list[Item] = []
        self._fields = fields
        self._freeform: set[str] = set()  # ids of calls of custom tools
        self._approvals: set[str] = set()  # ids of requests for an approval
        for self._message, message in enumerate(messages):
            self._add(message)
        if self.instructions and not self.items:
            # System messages alone: they are the question.
            self.items.append(_said("system", self.instructions))
            self.instructions = ""

    def _add(self, message: Message) -> None:
        self._is_assistant = message.role == conversation_pb2.ROLE_ASSISTANT
        if message.role in (conversation_pb2.ROLE_SYSTEM, conversation_pb2.ROLE_DEVELOPER):
            message = self._fields.system_prompt(message)
        if self._message == 0 and (text := _instructions(message)):
            self.instructions = text
            self._drop_mark(message.blocks[0])
            return
        if message.name:
            self._fields.drop("messages[].name")
        path = f"messages[{self._message}].extra"
        native = self._fields.native_fields(
            message.extra, path, _OF_MESSAGES, is_part=bool(message.blocks)
        )
        native = self._fields.accepted_fields(native, OF_MESSAGES, _OF_MESSAGES)
        if not message.blocks:
            self._add_without_blocks(native)
            return
        parts: list[Item] = []
        for self._block, block in enumerate(message.blocks):
            if block.HasField("thinking"):
                parts, native = self._think(block, parts, native, message)
                continue
            if block.HasField("redacted_thinking"):
                continue  # encrypted for the provider that created it
            item = self._item(block)
            if item is None:
                parts += self._parts(block, message.role)
                continue
            native = self._close(parts, native, message)
            parts = []
            self.items.append(item)
        self._close(parts, native, message)

    def _add_without_blocks(self, native: Json) -> None:
        """Add an item of which all fields are unknown, such as a web search."""
        if native.get("type", _REFERENCE) not in ("message", _REFERENCE):
            self.items.append(native)

    def _close(self, parts: list[Item], native: Json, message: Message) -> Json:
        """Append the message of the content parts, if there are any.

        Returns:
            The message's unknown fields that are left for the next item.
        """
        if not parts:
            return native
        # An item with fields of its own is from an answer, whose content is a list of parts.
        content = parts if native else _shortest(parts)
        self.items.append({**native, **_said(_ROLES[message.role], content)})
        return {}

    def _think(
        self, block: Block, parts: list[Item], native: Json, message: Message
    ) -> tuple[list[Item], Json]:
        """Append a reasoning item; return the remaining content parts and unknown fields."""
        item = _reasoning(self._kept(block), block.thinking)
        says_nothing = self._fields.server.newest or not block.thinking.text
        if says_nothing and not item.get("encrypted_content"):
            # Without the encrypted content, OpenAI would look the item up among its stored ones.
            self._fields.drop("messages[].blocks[].thinking")
            return parts, native
        native = self._close(parts, native, message)
        self.items.append(item)
        return [], native

    def _item(self, block: Block) -> Item | None:
        """Return the item for a block that is an item of its own, or None for a content part."""
        match block.WhichOneof("kind"):
            case "tool_use":
                return self._call(block)
            case "tool_result":
                return self._output(block)
            case "opaque" if self._fields.is_native_opaque(block.opaque):
                return self._opaque(block.opaque)
        return None

    def _opaque(self, opaque: Opaque) -> Item | None:
        """Return an item of another type."""
        path = self._path()
        item = read_object(opaque.json, path)
        kind = item.get("type")
        if isinstance(kind, str) and kind.startswith(_PARTS):
            return None
        if kind is None:
            self._fields.check_stored(path)  # a reference needs no type
        written = self._fields.own_value(opaque, path, "items", approvals=self._approvals)
        if kind == _APPROVAL_REQUEST and isinstance(item.get("id"), str):
            self._approvals.add(item["id"])
        return written

    def _call(self, block: Block) -> Json:
        call = block.tool_use
        head: Json = {**self._kept(block), "call_id": call.id, "name": call.name}
        if call.freeform:
            self._freeform.add(call.id)
            return {**head, "type": "custom_tool_call", "input": call.input}
        return {**head, "type": "function_call", "arguments": call.input or "{}"}

    def _output(self, block: Block) -> Json:
        result = block.tool_result
        if result.is_error:
            self._fields.drop("messages[].blocks[].tool_result.is_error")
        native = self._kept(block)
        parts: list[Item] = []
        for self._inner, inner in enumerate(result.blocks):
            parts += self._parts(inner, conversation_pb2.ROLE_USER)
        self._inner = None
        is_custom = result.tool_use_id in self._freeform
        kind = "custom_tool_call_output" if is_custom else "function_call_output"
        output = _shortest(parts) if parts else ""
        return {**native, "type": kind, "call_id": result.tool_use_id, "output": output}

    def _parts(self, block: Block, role: int) -> list[Item]:
        """Return the content parts of a block; none if it is empty."""
        is_model = role == conversation_pb2.ROLE_ASSISTANT
        kind = block.WhichOneof("kind")
        if kind == "text" or kind == "refusal":
            return self._text(block, is_model=is_model)
        if kind == "media" and not is_model:
            return [{**self._kept(block), **self._media(block.media)}]
        if kind == "opaque":
            if self._fields.is_native_opaque(block.opaque):
                return [self._fields.own_value(block.opaque, self._path(), "parts of this type")]
            text = self._referenced(block.opaque) or self._foreign_text(block.opaque)
            return self._text(Block(text=text), is_model=is_model)
        raise self._fields.unsupported(self._path(), f"{kind or 'empty blocks'} here")

    def _text(self, block: Block, *, is_model: bool) -> list[Item]:
        native = self._kept(block)
        if block.refusal and is_model:
            return [{**native, "type": "refusal", "refusal": block.refusal}]
        text = block.text or block.refusal
        if not text:
            return []
        if is_model:
            return [{"annotations": [], **native, "type": "output_text", "text": text}]
        return [{**native, "type": "input_text", "text": text}]

    def _drop_mark(self, block: Block) -> None:
        if block.cache_control:
            self._fields.drop_mark("messages[].blocks[].cache_control", block.extra)

    def _kept(self, block: Block) -> Json:
        """Return the block's unknown fields that are passed through."""
        self._drop_mark(block)
        if not block.HasField("extra"):
            return {}
        path = f"{self._path()}.extra"
        native = self._fields.native_fields(block.extra, path, _OF_BLOCKS, is_part=True)
        return self._fields.accepted_fields(native, OF_BLOCKS, _OF_BLOCKS)

    def _media(self, media: Media) -> Json:
        if media.WhichOneof("source") is None or (media.HasField("data") and not media.data):
            raise invalid(self._path(), f"{self._path()}: the media content is empty")
        match media.kind:
            case conversation_pb2.MEDIA_KIND_IMAGE:
                return {**self._image(media), **({"detail": media.detail} if media.detail else {})}
            case conversation_pb2.MEDIA_KIND_DOCUMENT:
                return {**self._file(media), **({"filename": media.name} if media.name else {})}
            case conversation_pb2.MEDIA_KIND_AUDIO:
                return self._audio(media)
        raise self._fields.unsupported(self._path(), "video")

    def _image(self, media: Media) -> Json:
        if media.HasField("file_id"):
            self._fields.check_stored(self._path())
            return {"type": "input_image", "file_id": media.file_id}
        return {"type": "input_image", "image_url": self._address(media, "images")}

    def _file(self, media: Media) -> Json:
        if media.HasField("file_id"):
            self._fields.check_stored(self._path())
            return {"type": "input_file", "file_id": media.file_id}
        address = self._address(media, "documents")
        if media.HasField("url"):
            return {"type": "input_file", "file_url": address}
        is_pdf = media.mime_type.partition(";")[0].strip().lower() == _PDF
        name = "document.pdf" if is_pdf else "document"
        return {"type": "input_file", "file_data": address, "filename": name}

    def _address(self, media: Media, kind_in_words: str) -> str:
        """Return the URL of a medium: its own, or a data URL."""
        if not media.HasField("url"):
            is_image = media.kind == conversation_pb2.MEDIA_KIND_IMAGE
            mime = image_type_of(media) if is_image else media.mime_type
            return f"data:{mime};base64,{base64_of(media.data)}"
        if not self._fields.server.fetches_urls:
            raise self._fields.unsupported(
                self._path(),
                f"URLs of {kind_in_words}; send base64 data (with the setting fetches_urls, the "
                "provider fetches URLs)",
            )
        self._fields.check_address(media.url, self._path())
        return media.url

    def _audio(self, media: Media) -> Json:
        form = _AUDIO_FORMATS.get(media.mime_type.partition(";")[0].strip().lower())
        if form is None or not media.data:
            raise self._fields.unsupported(
                self._path(), f"audio of type {media.mime_type!r}; send WAV or MP3 data"
            )
        audio = {"data": base64_of(media.data), "format": form}
        return {"type": "input_audio", "input_audio": audio}


def _instructions(message: Message) -> str:
    """Return the text of a system prompt without unknown fields, "" for any other message."""
    blocks = message.blocks
    is_plain = (
        message.role == conversation_pb2.ROLE_SYSTEM
        and len(blocks) == 1
        and not message.HasField("extra")
        and not blocks[0].HasField("extra")
    )
    return blocks[0].text if is_plain else ""


def _said(role: str, content: str | list[Item]) -> Json:
    return {"type": "message", "role": role, "content": content}


def _reasoning(native: Json, thinking: Thinking) -> Json:
    """Return thinking as a reasoning item: the provider's own, or one made of its text."""
    if native:
        return {"summary": [], **native, "type": "reasoning"}
    summary = [{"type": "summary_text", "text": thinking.text}] if thinking.text else []
    encrypted = {"encrypted_content": thinking.signature} if thinking.signature else {}
    return {"type": "reasoning", "summary": summary, **encrypted}


def _shortest(parts: list[Item]) -> str | list[Item]:
    """Return content as a string if that is equivalent."""
    match parts:
        case [{"type": "input_text", "text": str(text), **rest}] if not rest:
            return text
        case [{"type": "output_text", "text": str(text), "annotations": [], **rest}] if not rest:
            return text
    return parts
