"""Translate canonical messages into the `messages` and `system` of Converse. Pure.

The shapes are those of the service model of `bedrock-runtime`; its rules about conversations are in
the user guide, "Using the Converse API".
"""

import binascii
from collections.abc import Sequence

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message, ToolUse
from services.common.errors import invalid
from services.inference.providers.anthropic.content import tool_input
from services.inference.providers.bedrock import sanitizing
from services.inference.providers.bedrock.fields import BedrockFields
from services.inference.providers.conversation_writer import (
    ConversationWriter,
    base64_of,
    image_type_of,
)
from services.inference.providers.foreign_blocks import text_of_block
from services.inference.providers.opaque_json import Json

_SYSTEM_ROLES = (conversation_pb2.ROLE_SYSTEM, conversation_pb2.ROLE_DEVELOPER)
_ROLES = {conversation_pb2.ROLE_USER: "user", conversation_pb2.ROLE_ASSISTANT: "assistant"}
_IMAGES = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
_DOCUMENTS = {
    "application/pdf": "pdf",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}
_VIDEOS = {
    "video/x-matroska": "mkv",
    "video/quicktime": "mov",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/x-flv": "flv",
    "video/mpeg": "mpeg",
    "video/x-ms-wmv": "wmv",
    "video/3gpp": "three_gp",
}
_SOUNDS = {
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/ogg": "ogg",
    "audio/opus": "opus",
    "audio/flac": "flac",
    "audio/aac": "aac",
    "audio/mp4": "mp4",
    "audio/webm": "webm",
}
# Fields of blocks, and formats by MIME type, of each kind of medium.
_MEDIA = {
    conversation_pb2.MEDIA_KIND_IMAGE: ("image", _IMAGES),
    conversation_pb2.MEDIA_KIND_DOCUMENT: ("document", _DOCUMENTS),
    conversation_pb2.MEDIA_KIND_VIDEO: ("video", _VIDEOS),
    conversation_pb2.MEDIA_KIND_AUDIO: ("audio", _SOUNDS),
}
# Paths below which dropped fields are reported.
_OF_MESSAGES = "messages[].extra"
_OF_BLOCKS = "messages[].blocks[].extra"
_MARKS_IN_RESULTS = "messages[].blocks[].tool_result.blocks[].cache_control"
# Texts that Converse requires: a user's message first, one beside a document, one in a result.
BEGINNING = "(The conversation begins with an answer.)"
_BESIDE_DOCUMENTS = "(See the attached document.)"
_NOTHING = "(nothing)"
MARK = "cache_control"


class Conversation(ConversationWriter):
    """Translates the messages of one request, in order.

    Consecutive messages of one role are merged, and tool results come first in theirs. All system
    messages become `system`. A block with a mark of the prompt cache has it in the key MARK, for
    `cache_points`.

    Args:
        fields: decides which parts of the request may be sent.
        messages: the messages.
        has_tools: whether tools are sent. Without them Converse takes no calls and results, which
            become texts.

    Attributes:
        system: blocks of `system`; may be empty.
        messages: the other messages.
    """

    _fields: BedrockFields

    def __init__(
        self, fields: BedrockFields, messages: Sequence[Message], *, has_tools: bool
    ) -> None:
        """Translate all messages.

        Raises:
            GatewayError: invalid or unsupported, with the path of the part.
        """
        super().__init__()
        self.system: list[Json] = []
        self.messages: list[Json] = []
        self._fields = fields
        self._has_tools = has_tools
        self._documents = 0
        self._attached: list[Json] = []  # media of results that become texts
        for self._message, message in enumerate(messages):
            self._add(message)
        if not self.messages:
            if not self.system:
                raise invalid("messages", "messages: must contain at least one non-empty message")
            # A chat of system messages alone: they are the question.
            self.messages.append({"role": "user", "content": self.system})
            self.system = []
        if self.messages[0]["role"] == "assistant":
            self.messages.insert(0, {"role": "user", "content": [{"text": BEGINNING}]})
        for written in self.messages:
            _shape(written["content"])

    def _add(self, message: Message) -> None:
        is_system = message.role in _SYSTEM_ROLES
        role = _ROLES.get(message.role, "")
        self._is_assistant = role == "assistant"
        if not (role or is_system):
            path = f"messages[{self._message}].role"
            raise invalid(path, f"{path}: must be user, assistant, system or developer")
        if is_system:
            message = self._fields.system_prompt(message)
        blocks: list[Json] = []
        for self._block, block in enumerate(message.blocks):
            written = self._translate(block, in_system=is_system)
            self._report(block, message)
            if written is not None:
                blocks.append(written)
            if block.cache_control and blocks:
                self._mark(block, blocks[-1])
        blocks += self._attached
        self._attached = []
        if message.name:
            self._fields.drop("messages[].name")
        if message.HasField("extra"):
            path = f"messages[{self._message}].extra"
            self._fields.leave_out(message.extra, path, _OF_MESSAGES)
        if is_system:
            self.system += blocks
        elif blocks:
            if not self.messages or self.messages[-1]["role"] != role:
                self.messages.append({"role": role, "content": []})
            self.messages[-1]["content"] += blocks

    def _report(self, block: Block, message: Message) -> None:
        """Report the unknown fields of a block, and its mark if the model caches nothing."""
        if block.cache_control and not self._fields.takes_marks:
            # The mark of a message is on its last block.
            self._fields.drop_mark("messages[].blocks[].cache_control", block.extra, message.extra)
        if block.HasField("extra"):
            self._fields.leave_out(block.extra, f"{self._path()}.extra", _OF_BLOCKS)

    def _mark(self, block: Block, written: Json) -> None:
        if self._fields.takes_marks:
            path = f"{self._path()}.cache_control"
            written[MARK] = self._fields.checked_object(block.cache_control, path)

    def _translate(self, block: Block, *, in_system: bool) -> Json | None:
        """Return a block of Converse, or None if it has no content."""
        kind = block.WhichOneof("kind")
        if kind == "text" or kind == "refusal":
            return _text(block.text or block.refusal)
        if kind == "opaque":
            return _text(self._foreign_text(block.opaque))
        if in_system:
            raise self._refuse("content other than text in a system prompt")
        if kind == "tool_use":
            return self._call(block.tool_use)
        if kind == "tool_result":
            return self._result(block)
        if kind == "media":
            return self._media(block.media)
        if kind == "thinking":
            return self._thinking(block.thinking.text, block.thinking.signature)
        if kind == "redacted_thinking":
            return self._redacted(block.redacted_thinking)
        raise invalid(self._path(), f"{self._path()}: a block must have content")

    def _thinking(self, text: str, signature: str) -> Json | None:
        if not signature:
            return None  # no model takes back thinking that it has not signed
        reasoning = {"text": text, "signature": signature}
        return {"reasoningContent": {"reasoningText": reasoning}}

    def _redacted(self, data: str) -> Json | None:
        try:
            binascii.a2b_base64(data, strict_mode=True)
        except ValueError:
            self._fields.drop("messages[].blocks[].thinking")  # of another provider
            return None
        return {"reasoningContent": {"redactedContent": data}}

    def _call(self, call: ToolUse) -> Json | None:
        if call.freeform:
            raise self._refuse("calls of a tool with free-text input")
        arguments = tool_input(self._fields.tool_input(call.name, call.input))
        if not self._has_tools:
            self._fields.adapt(self._path())
            value = orjson.loads(orjson.dumps(arguments))
            return {"text": text_of_block({"type": "_tool_use", "name": call.name, "input": value})}
        call_id, name = sanitizing.call_id(call.id), sanitizing.tool_name(call.name)
        return {"toolUse": {"toolUseId": call_id, "name": name, "input": arguments}}

    def _result(self, block: Block) -> Json | None:
        result = block.tool_result
        content: list[Json] = []
        for self._inner, inner in enumerate(result.blocks):
            if inner.cache_control:
                self._fields.drop(_MARKS_IN_RESULTS)
            if inner.HasField("extra"):
                self._fields.leave_out(inner.extra, f"{self._path()}.extra", _OF_BLOCKS)
            if part := self._part_of_result(inner):
                content.append(part)
        self._inner = None
        if not self._has_tools:
            self._fields.adapt(self._path())
            texts = [{"type": "text", "text": part["text"]} for part in content if "text" in part]
            self._attached += [part for part in content if "text" not in part]
            fields = {"type": "function_tool_result", "content": texts}
            return {"text": text_of_block({**fields, "is_error": result.is_error})}
        written: Json = {
            "toolUseId": sanitizing.call_id(result.tool_use_id),
            "content": content or [{"text": _NOTHING}],
        }
        if result.is_error and self._fields.takes_result_status:
            written["status"] = "error"
        elif result.is_error:
            written["content"] = [{"text": "Error:"}, *written["content"]]
        return {"toolResult": written}

    def _part_of_result(self, inner: Block) -> Json | None:
        kind = inner.WhichOneof("kind")
        if kind == "text":
            return _text(inner.text)
        if kind == "media":
            if inner.media.kind == conversation_pb2.MEDIA_KIND_AUDIO:
                raise self._refuse("sounds in tool results")
            return self._media(inner.media)
        if text := self._referenced(inner.opaque, sanitizing.tool_name):
            return {"text": text}
        if kind == "opaque":
            return _text(self._foreign_text(inner.opaque))
        raise self._refuse("parts of this type")

    def _media(self, media: Media) -> Json:
        if media.detail not in ("", "auto"):
            self._fields.drop("messages[].blocks[].media.detail")
        if media.WhichOneof("source") == "url":
            raise self._refuse("URLs of media; send base64 data")
        if media.WhichOneof("source") == "file_id":
            self._fields.check_stored(self._path())
            raise self._refuse("files that are stored at the provider")
        if not media.data:
            raise invalid(self._path(), f"{self._path()}: the media content is empty")
        mime = media.mime_type.partition(";")[0].strip().lower()
        if mime.startswith("text/"):
            return self._text_document(media)
        if media.kind not in _MEDIA or not self._fields.takes_medium(media.kind):
            raise self._refuse("media of this kind")
        field, formats = _MEDIA[media.kind]
        if media.kind == conversation_pb2.MEDIA_KIND_IMAGE:
            mime = image_type_of(media)
        if mime not in formats:
            raise self._refuse(f"{field}s of type {mime!r}; use {', '.join(sorted(formats))}")
        written: Json = {"format": formats[mime], "source": {"bytes": base64_of(media.data)}}
        if field == "document":
            written["name"] = sanitizing.document_name(media.name, self._documents)
            self._documents += 1
            if media.name not in ("", written["name"]):
                self._fields.drop("messages[].blocks[].media.name")
        elif media.name:
            self._fields.drop("messages[].blocks[].media.name")
        return {field: written}

    def _text_document(self, media: Media) -> Json:
        try:
            text = media.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise self._refuse("text that is not UTF-8") from None
        return {"text": f"[{media.name}]\n{text}" if media.name else text}


def cache_points(blocks: list[Json]) -> list[Json]:
    """Return blocks with a cache point after each block that has a mark.

    Bedrock takes none after thinking; a mark there is ignored.
    """
    if not any(MARK in block for block in blocks):
        return blocks
    written: list[Json] = []
    for block in blocks:
        mark = block.pop(MARK, None)
        written.append(block)
        if mark is not None and "reasoningContent" not in block:
            lifetime = {"ttl": mark["ttl"]} if mark.get("ttl") in ("5m", "1h") else {}
            written.append({"cachePoint": {"type": "default", **lifetime}})
    return written


def _text(text: str) -> Json | None:
    # Converse rejects blank texts.
    return {"text": text} if text.strip() else None


def _shape(content: list[Json]) -> None:
    """Sort the tool results of a message first, and add the text that documents require."""
    if any("toolResult" in block for block in content):
        content.sort(key=lambda block: "toolResult" not in block)
    has_document = any("document" in block for block in content)
    if has_document and not any("text" in block for block in content):
        content.append({"text": _BESIDE_DOCUMENTS})
