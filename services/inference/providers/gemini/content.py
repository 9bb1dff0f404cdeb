"""Translate canonical messages into Gemini's `contents` and `systemInstruction`."""

import re
from collections.abc import Sequence
from typing import Any

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Media,
    Message,
    Opaque,
    ToolUse,
)
from gateway.inference.v1.inference_pb2 import GenerateRequest, ThinkingBlockStrategy
from services.common.errors import invalid
from services.inference.providers.conversation_writer import (
    ConversationWriter,
    base64_of,
    image_type_of,
)
from services.inference.providers.gemini import native, sanitizing, signatures
from services.inference.providers.opaque_json import Json
from services.inference.providers.request_fields import RequestFields

_SYSTEM_ROLES = (conversation_pb2.ROLE_SYSTEM, conversation_pb2.ROLE_DEVELOPER)
_ROLES = {conversation_pb2.ROLE_USER: "user", conversation_pb2.ROLE_ASSISTANT: "model"}
_DATA_URL = re.compile(r"data:(image/[a-z0-9.+-]+);base64,([A-Za-z0-9+/]+=*)")
_PDF = "application/pdf"
# MIME types that are named differently in Google's list.
_MIME_TYPES = {"image/jpg": "image/jpeg", "audio/mpeg": "audio/mp3", "audio/x-wav": "audio/wav"}
# Paths below which dropped fields are reported.
_OF_MESSAGES = "messages[].extra"
_OF_BLOCKS = "messages[].blocks[].extra"
# Function name of a tool result whose call is not in the conversation.
_UNKNOWN_FUNCTION = "unknown"
_SIGNATURE = "thoughtSignature"


class Conversation(ConversationWriter):
    """Translates the messages of one request, in order.

    Consecutive messages of one role are merged, unless the request is of Google's dialect. All
    system messages become the `systemInstruction`.

    Args:
        fields: decides which parts of the request may be sent.
        request: the request.
        signs: whether the model rejects function calls without a thought signature.
        runs_natively: whether Google's own tools are among those of the request.

    Attributes:
        system: parts of the `systemInstruction`; may be empty.
        contents: the other messages.
    """

    def __init__(
        self,
        fields: RequestFields,
        request: GenerateRequest,
        *,
        signs: bool,
        runs_natively: bool = False,
    ) -> None:
        """Translate all messages.

        Raises:
            GatewayError: invalid or unsupported, with the path of the part.
        """
        self.system: list[Json] = []
        self.contents: list[Json] = []
        self._fields = fields
        # If the model has rejected signatures, none are sent.
        discard = ThinkingBlockStrategy.THINKING_BLOCK_STRATEGY_DISCARD
        self._keeps_signatures = request.thinking_block_strategy != discard
        self._runs_natively = runs_natively
        self._functions: dict[str, str] = {}  # function names, by the id of the call
        self._parts: list[Json] = []  # of the current content
        self._attached: list[Json] = []  # media of tool results
        self._signature = ""  # of the next function call
        for self._message, message in enumerate(request.messages):
            self._add(message)
        for content in () if fields.is_native else self.contents:
            if any("functionResponse" in part for part in content["parts"]):
                # Google wants the responses directly after their calls.
                content["parts"].sort(key=lambda part: "functionResponse" not in part)
        if not self.contents:
            if not self.system:
                raise invalid("messages", "messages: must contain at least one non-empty message")
            # A chat of system messages alone: they are the question.
            self.contents.append({"role": "user", "parts": self.system})
            self.system = []
        if signs:
            _sign_calls(self.contents)

    def _add(self, message: Message) -> None:
        is_system = message.role in _SYSTEM_ROLES
        role = _ROLES.get(message.role, "")
        self._is_assistant = role == "model"
        if not (role or is_system):
            path = f"messages[{self._message}].role"
            raise invalid(path, f"{path}: must be user, assistant, system or developer")
        if is_system:
            message = self._fields.system_prompt(message)
        self._parts = self.system if is_system else self._parts_of(role)
        self._signature = ""
        for self._block, block in enumerate(message.blocks):
            self._translate(block, message.extra)
        if self._attached:
            self._parts += self._attached
            self._attached = []
        if message.name:
            self._fields.drop("messages[].name")
        if message.HasField("extra"):
            if self._fields.is_native:
                self._add_native_fields(message)
            else:
                self._own_fields(message)
        if self.contents and not self.contents[-1]["parts"]:
            del self.contents[-1]

    def _add_native_fields(self, message: Message) -> None:
        path = f"messages[{self._message}].extra"
        self.contents[-1] |= self._fields.native_fields(message.extra, path, _OF_MESSAGES)

    def _parts_of(self, role: str) -> list[Json]:
        is_native = self._fields.is_native
        if is_native or not self.contents or self.contents[-1]["role"] != role:
            self.contents.append({"role": role, "parts": []})
        parts: list[Json] = self.contents[-1]["parts"]
        return parts

    def _own_fields(self, message: Message) -> None:
        path = f"messages[{self._message}].extra"
        fields = self._fields.leave_out(
            message.extra, path, _OF_MESSAGES, read=("extra_content", "images")
        )
        self._parts += _pictures(fields.get("images"))
        if signature := self._from_chat(fields):
            self._sign_text(signature)

    def _own_fields_of(self, block: Block, *holders: Opaque) -> Json:
        """Report the mark and the unknown fields of a block; return those that are read.

        Args:
            block: the block.
            holders: further fields that the mark may have been read from.
        """
        if block.cache_control:
            self._fields.drop_mark("messages[].blocks[].cache_control", block.extra, *holders)
        if not block.HasField("extra"):
            return {}
        if self._fields.is_native:
            return native.block_fields(block, self._path(), self._fields)
        path = f"{self._path()}.extra"
        return self._fields.leave_out(block.extra, path, _OF_BLOCKS, read=("extra_content",))

    def _translate(self, block: Block, of_message: Opaque) -> None:
        # The mark of a message is on its last block.
        extra = self._own_fields_of(block, of_message)
        kind = block.WhichOneof("kind")
        count = len(self._parts)
        if kind == "opaque" and self._fields.is_native_opaque(block.opaque):
            path = self._path()
            self._parts.append(self._fields.checked_object(block.opaque.json, path, is_part=True))
        elif kind == "text" or kind == "refusal" or kind == "opaque":
            is_foreign = kind == "opaque"
            text = self._foreign_text(block.opaque) if is_foreign else block.text or block.refusal
            if text:
                self._parts.append({"text": text})
        elif self._parts is self.system:
            raise self._refuse("content other than text in a system prompt")
        elif kind == "tool_use":
            self._call(block.tool_use, self._from_chat(extra) or self._signature)
        elif kind == "tool_result":
            self._result(block)
        elif kind == "media":
            self._parts.append(self._media(block.media))
        elif kind == "thinking":
            self._thinking(block.thinking.text, block.thinking.signature)
        elif kind == "redacted_thinking":
            self._thinking("", block.redacted_thinking)
        else:
            raise invalid(self._path(), f"{self._path()}: a block must have content")
        if self._fields.is_native and extra and len(self._parts) > count:
            if not self._keeps_signatures:
                extra.pop(_SIGNATURE, None)
            self._parts[-1] = native.merged(self._parts[-1], extra)

    def _from_chat(self, fields: Json) -> str:
        return signatures.from_chat(fields) if self._keeps_signatures else ""

    def _thinking(self, text: str, carried: str) -> None:
        kind, signature = signatures.unpacked(carried)
        if text:
            part: Json = {"text": text, "thought": True}
            if kind == signatures.THOUGHT:
                part["thoughtSignature"] = signature
            self._parts.append(part)
        if kind == signatures.CALL:
            self._signature = signature
        elif kind == signatures.PART and self._runs_natively:
            self._parts.append(signatures.unpacked_part(signature))
        elif kind == signatures.TEXT:
            self._sign_text(signature)

    def _sign_text(self, signature: str) -> None:
        """Add a signature to the preceding text, or to an empty text part."""
        last = self._parts[-1] if self._parts else {}
        if "text" not in last or "thought" in last:
            last = {"text": ""}
            self._parts.append(last)
        last["thoughtSignature"] = signature

    def _call(self, call: ToolUse, signature: str) -> None:
        if call.freeform:
            raise self._refuse("calls of a tool with free-text input")
        arguments = call.input.strip() or "{}"
        try:
            is_object = isinstance(orjson.loads(arguments), dict)
        except orjson.JSONDecodeError:
            is_object = False
        is_native = self._fields.is_native
        name = call.name if is_native else sanitizing.function_name(call.name)
        self._functions[call.id] = name
        # The JSON is passed through, so that numbers and keys stay as the model wrote them.
        # Arguments that are not an object were a mistake of the model, which its tool has already
        # reported to it.
        args = orjson.Fragment(arguments) if is_object else {"malformed": call.input}
        part: Json = {"functionCall": {"id": call.id, "name": name, "args": args}}
        if is_native:
            part = native.call_part(call, args)
        if signature:
            part["thoughtSignature"] = signature
        self._signature = ""
        self._parts.append(part)

    def _result(self, block: Block) -> None:
        result = block.tool_result
        texts: list[str] = []
        media: list[Json] = []
        for self._inner, inner in enumerate(result.blocks):
            self._own_fields_of(inner)
            kind = inner.WhichOneof("kind")
            if kind == "text":
                texts.append(inner.text)
            elif kind == "media":
                media.append(self._media(inner.media))
            elif text := self._referenced(inner.opaque, sanitizing.function_name):
                texts.append(text)
            elif kind == "opaque":
                texts.append(self._foreign_text(inner.opaque))
            else:
                raise self._refuse("parts of this type")
        self._inner = None
        if self._fields.is_native:
            name = self._functions.get(result.tool_use_id, _UNKNOWN_FUNCTION)
            self._parts.append(native.result_part(result, name, texts, media))
            return
        if media:
            self._attached.append({"text": f"[Attached to the result {result.tool_use_id}]"})
            self._attached += media
        self._parts.append(
            {
                "functionResponse": {
                    "id": result.tool_use_id,
                    "name": self._functions.get(result.tool_use_id, _UNKNOWN_FUNCTION),
                    # The fields of Google's FunctionResponse.
                    "response": {"error" if result.is_error else "output": "\n".join(texts)},
                }
            }
        )

    def _media(self, media: Media) -> Json:
        if self._fields.is_native and media.WhichOneof("source") == "data":
            return native.medium(media, media.name)
        if media.detail not in ("", "auto"):
            self._fields.drop("messages[].blocks[].media.detail")
        source = media.WhichOneof("source")
        mime = media.mime_type.partition(";")[0].strip().lower()
        if media.name and not (media.data and mime.startswith("text/")):
            self._fields.drop("messages[].blocks[].media.name")
        if source == "url":
            if not self._fields.server.fetches_urls:
                raise self._refuse("URLs of media; send base64 data")
            self._fields.check_address(media.url, self._path())
            return _by_reference(media.url, mime)
        if source == "file_id":
            self._fields.check_stored(self._path())
            return _by_reference(media.file_id, mime)
        if not media.data:
            raise invalid(self._path(), f"{self._path()}: the media content is empty")
        if mime.startswith("text/"):
            return self._text_document(media)
        if media.kind == conversation_pb2.MEDIA_KIND_DOCUMENT and mime != _PDF:
            content = f"documents of type {media.mime_type!r}; use {_PDF} or text"
            raise self._refuse(content)
        data = base64_of(media.data)
        if media.kind == conversation_pb2.MEDIA_KIND_IMAGE:
            mime = image_type_of(media)
        return {"inlineData": {"mimeType": _MIME_TYPES.get(mime, mime), "data": data}}

    def _text_document(self, media: Media) -> Json:
        try:
            text = media.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise self._refuse("text that is not UTF-8") from None
        return {"text": f"[{media.name}]\n{text}" if media.name else text}


def _pictures(images: Any) -> list[Json]:
    """Return generated images from the field `images` of a chat message."""
    parts: list[Json] = []
    for image in images if isinstance(images, list) else ():
        match image:
            case {"image_url": {"url": str(url)}} if match := _DATA_URL.fullmatch(url):
                parts.append({"inlineData": {"mimeType": match[1], "data": match[2]}})
    return parts


def _by_reference(address: str, mime: str) -> Json:
    file: Json = {"fileUri": address}
    if mime:
        file["mimeType"] = mime
    return {"fileData": file}


def _sign_calls(contents: Sequence[Json]) -> None:
    """Add a placeholder signature to function calls of other models.

    Of parallel calls, only the first one is signed.
    """
    for content in contents:
        if content["role"] == "model":
            first = next((part for part in content["parts"] if "functionCall" in part), None)
            if first is not None:
                first.setdefault("thoughtSignature", signatures.NOT_SIGNED)
