"""`ConversationWriter`, the base class for translating conversations for providers. Pure."""

import binascii
import hashlib
from collections.abc import Callable

from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC, Media, Opaque
from services.common.errors import GatewayError
from services.common.text.mime import image_type
from services.inference.providers.foreign_blocks import text_of_block
from services.inference.providers.opaque_json import read_object
from services.inference.providers.request_fields import RequestFields
from services.inference.request.paths import block_path

# Paths by which dropped blocks and fields are reported.
_OPAQUE = "messages[].blocks[].opaque"
_MARKS_IN_RESULTS = "messages[].blocks[].tool_result.blocks[].cache_control"


class ConversationWriter:
    """Base of the classes that write a conversation for a provider, block by block.

    It keeps the index of the current message, of its block, and of the block in a tool result, so
    that an error contains the path.
    """

    _fields: RequestFields
    _message = _block = 0
    _inner: int | None = None
    _is_assistant = False  # whether the current message is the assistant's

    def _path(self) -> str:
        """Return the path of the current block."""
        inner = () if self._inner is None else (self._inner,)
        return block_path(self._message, self._block, *inner)

    def _foreign_text(self, opaque: Opaque) -> str:
        """Return the text for a block of another dialect; see `text_of_block`.

        A block without a text is left out of an answer (""), and refused elsewhere: it may be an
        instruction.

        Raises:
            GatewayError: unsupported.
        """
        path = self._path()
        if text := text_of_block(read_object(opaque.json, path)):
            self._fields.adapt(path)
        elif self._is_assistant:
            self._fields.drop(_OPAQUE)
        else:
            raise self._refuse("parts of this type")
        return text

    def _referenced(self, opaque: Opaque, renamed: Callable[[str], str] = str) -> str:
        """Return the text in place of a tool reference, "" for any other block.

        Args:
            opaque: the block.
            renamed: returns the provider's name of a tool.
        """
        name = referenced_tool(opaque)
        if not name:
            return ""
        if read_object(opaque.json, self._path()).get("cache_control"):
            self._fields.drop(_MARKS_IN_RESULTS)
        return f"[The tool {renamed(name)} can be called.]"

    def _refuse(self, content: str) -> GatewayError:
        """Return the error for unsupported content of the current block."""
        return self._fields.unsupported(self._path(), content)


def referenced_tool(opaque: Opaque) -> str:
    """Return the name in Anthropic's `tool_reference`, a result of tool search, or ""."""
    if opaque.dialect != DIALECT_ANTHROPIC or b"tool_reference" not in opaque.json:
        return ""
    match read_object(opaque.json, "content"):
        case {"type": "tool_reference", "tool_name": str(name)}:
            return name
    return ""


def image_type_of(media: Media) -> str:
    """Return the MIME type of an image: that of its data, which providers compare with it."""
    mime = image_type(media.data[:12], media.mime_type.partition(";")[0].strip().lower())
    return "image/jpeg" if mime == "image/jpg" else mime


def digest_of(text: str, length: int) -> str:
    """Return `length` hexadecimal digits in place of a text that a provider would reject."""
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def base64_of(data: bytes) -> str:
    """Encode bytes in base64, on one line."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")
