"""Conversations as Anthropic's `messages` and `system`. Pure."""

import base64
from collections.abc import Sequence

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Media,
    Message,
    Thinking,
    ToolResult,
    ToolUse,
)
from services.common.errors import invalid
from services.common.messages.plain_message import PlainCall, PlainMessage
from services.inference.learned.refusals import (
    CALLS_WITHOUT_THOUGHTS,
    NO_THOUGHTS,
    OF_BLOCKS,
    OF_MESSAGES,
)
from services.inference.providers.anthropic import sanitizing
from services.inference.providers.anthropic.fields import AnthropicFields
from services.inference.providers.conversation_writer import ConversationWriter, image_type_of
from services.inference.providers.opaque_json import Json
from services.inference.request.thinking import KINDS, is_gateway_signature

_ROLES = {
    conversation_pb2.ROLE_USER: "user",
    conversation_pb2.ROLE_ASSISTANT: "assistant",
    conversation_pb2.ROLE_SYSTEM: "system",
    conversation_pb2.ROLE_DEVELOPER: "system",
}
_IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_PDF = "application/pdf"
_MEDIA_NAMES = {
    conversation_pb2.MEDIA_KIND_AUDIO: "audio",
    conversation_pb2.MEDIA_KIND_VIDEO: "video",
}
_NO_THOUGHTS: Json = {"type": "thinking", "thinking": NO_THOUGHTS, "signature": ""}
# Paths below which dropped fields are reported.
_OF_MESSAGES = "messages[].extra"
_OF_BLOCKS = "messages[].blocks[].extra"


class Conversation(ConversationWriter):
    """Translates the messages of one request, in order.

    Adjacent messages of the same role become one message, which begins with its tool results, as
    Anthropic requires. Leading system messages become the top-level `system`. Later ones stay in
    place in requests of Anthropic's own dialect, and are appended to `system` in others.

    Attributes:
        system: blocks of the top-level `system`; may be empty.
        messages: the other messages.
    """

    _fields: AnthropicFields

    def __init__(self, fields: AnthropicFields, messages: Sequence[Message | PlainMessage]) -> None:
        """Translate all messages.

        Plain messages are of another dialect.

        Raises:
            GatewayError: invalid or unsupported, with the path of the part.
        """
        self.system: list[Json] = []
        self.messages: list[Json] = []
        self._fields = fields
        # The message under construction: the last of the messages, if its role is not "".
        self._role = ""
        self._blocks: list[Json] = []
        self._extra: Json = {}
        self._has_results = False

        self._add_all(messages)
        self._finish()
        if CALLS_WITHOUT_THOUGHTS in fields.refused_fields:
            self._add_missing_thoughts()
        for written in self.messages:
            if content := written["content"]:
                written["content"] = shortest(content)
            else:
                del written["content"]  # of a system message with settings alone
        self._check_last(messages)
        if not fields.is_native:
            self._shape_ends()

    def _add_all(self, messages: Sequence[Message | PlainMessage]) -> None:
        for self._message, message in enumerate(messages):
            if not isinstance(message, PlainMessage):
                self._add(message)
                continue
            # The fast path of nearly all messages; there may be 100,000 of them.
            role, content = message.role, message.content
            if isinstance(content, str) and content and not content.isspace():
                blocks = [_text(content)]
            else:
                blocks = [_text(text) for text in message.texts if not text.isspace()]
            if role == "system" or role == "developer":
                self.system += blocks
                continue
            side = "assistant" if role == "assistant" else "user"
            if side != self._role:
                self._begin(side)
            if role == "tool":
                self._has_results = True
                self._blocks.append(_plain_result(message, blocks))
                continue
            self._blocks += blocks
            if message.calls:
                self._blocks += map(self._plain_call, message.calls)

    def _add_missing_thoughts(self) -> None:
        """Add thinking to messages of the model without any, for servers that require it."""
        for message in self.messages:
            blocks = message["content"]
            if message["role"] == "assistant" and all(one["type"] not in KINDS for one in blocks):
                message["content"] = [_NO_THOUGHTS, *blocks]

    def _check_last(self, messages: Sequence[Message | PlainMessage]) -> None:
        """Check that the model is not to continue its last message where the user said nothing.

        Raises:
            GatewayError: invalid.
        """
        role = messages[-1].role if messages else ""
        is_user = role in (conversation_pb2.ROLE_USER, "user")
        if is_user and self.messages and self.messages[-1]["role"] == "assistant":
            path = f"messages[{len(messages) - 1}]"
            raise invalid(path, f"{path}: must contain more than white space")

    def _shape_ends(self) -> None:
        """Adapt the beginning and the end of the conversation to Anthropic's rules."""
        if not self.messages:
            if not self.system:
                raise invalid(
                    "messages",
                    "messages: must contain at least one message with more than white space",
                )
            # A chat of system messages alone: they are the question.
            self.messages.append({"role": "user", "content": shortest(self.system)})
            self.system = []
        last = self.messages[-1]
        if last["role"] == "assistant":
            last["content"] = _without_trailing_space(last["content"])

    def _add(self, message: Message) -> None:
        role = _ROLES.get(message.role)
        if role is None:
            path = f"messages[{self._message}].role"
            raise invalid(path, f"{path}: must be user, assistant, system or developer")
        self._is_assistant = role == "assistant"
        begins = not self._blocks and len(self.messages) == bool(self._role)
        top = role == "system" and (
            not self._fields.is_native or (begins and not _belongs_in_place(message))
        )
        if not top and role != self._role:
            self._begin(role)
        into = self.system if top else self._blocks
        if role == "system" and not self._fields.official:
            message = self._fields.system_prompt(message)
        for self._block, block in enumerate(message.blocks):
            text = block.text
            if text and not (text.isspace() or block.cache_control or block.HasField("extra")):
                into.append(_text(text))
                continue
            translated = self._translate(block, in_system=role == "system")
            if translated is not None:
                into.append(translated)
            elif block.cache_control and into:
                # Of a text that is left out.
                self._decorate(into[-1], Block(cache_control=block.cache_control))
        if message.name:
            self._fields.drop("messages[].name")
        if message.HasField("extra"):
            path = f"messages[{self._message}].extra"
            extra = self._fields.native_fields(message.extra, path, _OF_MESSAGES, is_part=True)
            if not top:
                self._extra.update(self._fields.accepted_fields(extra, OF_MESSAGES, _OF_MESSAGES))

    def _begin(self, role: str) -> None:
        """Finish the message under construction, and begin one of another role."""
        if not self._blocks or self._has_results or self._extra:
            self._finish()
        self._role, self._blocks = role, []
        self.messages.append({"role": role, "content": self._blocks})

    def _finish(self) -> None:
        """Finish the message under construction; remove it if it is empty."""
        if not self._blocks and not (self._extra and self._role == "system"):
            if self._role:
                self.messages.pop()
            self._extra = {}
            return
        if self._has_results:
            self._has_results = False
            self._blocks.sort(key=lambda block: block.get("type") != "tool_result")
        if self._extra:
            message = self.messages[-1]
            for name, value in self._extra.items():
                message.setdefault(name, value)
            self._extra = {}

    def _translate(self, block: Block, *, in_system: bool = False) -> Json | None:
        """Return a block in Anthropic's format, or None if it has no content."""
        kind = block.WhichOneof("kind")
        translated: Json | None
        if kind == "text":
            translated = self._text_block(block.text)
        elif kind == "opaque":
            return self._opaque(block)
        elif in_system:
            raise self._refuse("content other than text in a system prompt")
        elif kind == "media":
            translated = self._media(block.media)
        elif kind == "tool_use":
            translated = self._tool_use(block.tool_use)
        elif kind == "tool_result":
            translated = self._tool_result(block.tool_result)
        elif kind == "thinking":
            translated = self._thinking(block.thinking)
        elif kind == "redacted_thinking":
            translated = {"type": "redacted_thinking", "data": block.redacted_thinking}
        elif kind == "refusal":
            translated = self._text_block(block.refusal)
        else:
            raise invalid(self._path(), f"{self._path()}: a block must have content")
        if translated is not None:
            self._decorate(translated, block)
        return translated

    def _thinking(self, thinking: Thinking) -> Json | None:
        signature = thinking.signature
        if not signature or is_gateway_signature(signature):
            # Anthropic rejects foreign signatures. Servers without signatures require their own
            # thinking back unchanged; the gateway has signed it, even if it is empty.
            if not (self._fields.takes_unsigned and (thinking.text or signature)):
                return None
            signature = ""
        return {"type": "thinking", "thinking": thinking.text, "signature": signature}

    def _text_block(self, text: str) -> Json | None:
        # Anthropic rejects blocks of white space.
        return _text(text) if text.strip() else None

    def _decorate(self, translated: Json, block: Block) -> None:
        if block.cache_control:
            self._fields.has_marks = True
            path = f"{self._path()}.cache_control"
            translated["cache_control"] = self._fields.checked_object(block.cache_control, path)
        if block.HasField("extra"):
            native = self._fields.native_fields(
                block.extra, f"{self._path()}.extra", _OF_BLOCKS, is_part=True
            )
            for name, value in self._fields.accepted_fields(native, OF_BLOCKS, _OF_BLOCKS).items():
                translated.setdefault(name, value)

    def _opaque(self, block: Block) -> Json | None:
        path = self._path()
        if not self._fields.is_native_opaque(block.opaque):
            return self._text_block(self._foreign_text(block.opaque))
        return self._fields.checked_object(block.opaque.json, path)

    def _tool_use(self, call: ToolUse) -> Json:
        if call.freeform:
            raise self._refuse("calls of a tool with free-text input")
        arguments = tool_input(self._fields.tool_input(call.name, call.input))
        if isinstance(arguments, dict) and self._fields.is_native:
            path = f"{self._path()}.tool_use.input"
            raise invalid(path, f"{path}: the tool's arguments must be a JSON object")
        return {
            "type": "tool_use",
            "id": self._id(call.id),
            "name": call.name,
            "input": arguments,
        }

    def _plain_call(self, call: PlainCall) -> Json:
        name = call.function.name
        return {
            "type": "tool_use",
            "id": sanitizing.tool_use_id(call.id),
            "name": name,
            "input": tool_input(self._fields.tool_input(name, call.function.arguments)),
        }

    def _id(self, call_id: str) -> str:
        return call_id if self._fields.is_native else sanitizing.tool_use_id(call_id)

    def _tool_result(self, result: ToolResult) -> Json:
        translated: Json = {
            "type": "tool_result",
            "tool_use_id": self._id(result.tool_use_id),
        }
        content: list[Json] = []
        for self._inner, block in enumerate(result.blocks):
            part = self._translate(block)
            if part is not None:
                content.append(part)
        self._inner = None
        if content:
            translated["content"] = shortest(content)
        if result.is_error:
            translated["is_error"] = True
        self._has_results = True
        return translated

    def _media(self, media: Media) -> Json:
        if media.kind == conversation_pb2.MEDIA_KIND_IMAGE:
            if media.detail not in ("", "auto"):
                self._fields.drop("messages[].blocks[].media.detail")
            return {"type": "image", "source": self._image_source(media)}
        if media.kind == conversation_pb2.MEDIA_KIND_DOCUMENT:
            return self._document(media)
        raise self._refuse(_MEDIA_NAMES.get(media.kind, "media of this kind"))

    def _image_source(self, media: Media) -> Json:
        if not media.data:
            return self._reference(media, "image")
        mime = image_type_of(media)
        if mime not in _IMAGE_TYPES:
            raise self._refuse(f"images of type {mime!r}; use {', '.join(_IMAGE_TYPES)}")
        return _base64_source(mime, media.data)

    def _document(self, media: Media) -> Json:
        if not media.data:
            return self._titled(self._reference(media, "document"), media)
        mime = media.mime_type.partition(";")[0].strip().lower()
        if mime == _PDF:
            return self._titled(_base64_source(_PDF, media.data), media)
        if not mime.startswith("text/"):
            raise self._refuse(f"documents of type {mime!r}; use {_PDF} or text")
        try:
            text = media.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise self._refuse("text that is not UTF-8") from error
        if not self._fields.is_native:
            return {"type": "text", "text": f"[{media.name}]\n{text}" if media.name else text}
        return self._titled({"type": "text", "media_type": "text/plain", "data": text}, media)

    def _titled(self, source: Json, media: Media) -> Json:
        document: Json = {"type": "document", "source": source}
        if media.name:
            document["title"] = media.name
        return document

    def _reference(self, media: Media, kind_in_words: str) -> Json:
        path = self._path()
        source = media.WhichOneof("source")
        if source == "url":
            if not self._fields.server.fetches_urls:
                raise self._refuse(f"URLs of {kind_in_words}s; send base64 data")
            self._fields.check_address(media.url, path)
            return {"type": "url", "url": media.url}
        if source == "file_id":
            self._fields.check_stored(path)
            return {"type": "file", "file_id": media.file_id}
        raise invalid(path, f"{path}: the content of the {kind_in_words} is empty")


def _belongs_in_place(message: Message) -> bool:
    """Return whether a system message has more than texts: settings, or changes of the tools."""
    return message.HasField("extra") or any(block.HasField("opaque") for block in message.blocks)


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _plain_result(message: PlainMessage, blocks: list[Json]) -> Json:
    call_id = sanitizing.tool_use_id(message.call_id)
    written: Json = {"type": "tool_result", "tool_use_id": call_id}
    if blocks:
        written["content"] = shortest(blocks)
    if message.is_error:
        written["is_error"] = True
    return written


def tool_input(text: str) -> orjson.Fragment | Json:
    """Return a call's arguments as the field `input`.

    The JSON is passed through: numbers and keys stay as the model wrote them. Arguments that are
    not an object were a mistake of the model, which its tool has already reported to it.
    """
    arguments = text.strip() or "{}"
    try:
        is_object = isinstance(orjson.loads(arguments), dict)
    except orjson.JSONDecodeError:
        is_object = False
    return orjson.Fragment(arguments) if is_object else {"malformed": text}


def _without_trailing_space(content: str | list[Json]) -> str | list[Json]:
    """Strip white space at the end of the last assistant message, as Anthropic requires."""
    if isinstance(content, str):
        return content.rstrip()
    if content[-1].get("type") == "text":
        content[-1]["text"] = content[-1]["text"].rstrip()
    return content


def _base64_source(media_type: str, data: bytes) -> Json:
    return {
        "type": "base64",
        "media_type": media_type,
        "data": base64.b64encode(data).decode("ascii"),
    }


def shortest(blocks: list[Json]) -> str | list[Json]:
    """Return a single plain text block as a string, any other content unchanged."""
    only = blocks[0]
    is_text = len(blocks) == 1 and len(only) == 2 and only.get("type") == "text"
    return only["text"] if is_text else blocks
