"""Estimate the input tokens of a request without a tokenizer, with a tendency to overestimate.

Text is estimated by `services.common.text.tokens`. The result can be too low for images at some
providers and for documents, whose pages are estimated. The constants are rules of thumb, not
measured.
"""

from collections.abc import Iterable

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message
from gateway.inference.v1.inference_pb2 import EmbedRequest, ForwardRequest, GenerateRequest
from services.common.messages.lazy_request import LazyRequest
from services.common.text.tokens import estimate_bytes, estimate_tokens

# Overhead of the dialects per part of a request.
_REQUEST = 10
MESSAGE = 6
_CALL = 20
_TOOL = 20
# Overhead of a provider's tool instructions.
_TOOLS = 500

# The maximum of Claude models up to 4.6 per image, above most of OpenAI's.
_IMAGE = 1_600
# A page of a document counts as its text and an image.
PAGE = 1_500 + _IMAGE
_BYTES_A_PAGE = 20_000
_PAGES_UNSEEN = 10
# Recordings and films have tens to hundreds of tokens per second.
_BYTES_A_TOKEN = 500
_RECORDING_UNSEEN = 10_000


def estimate_messages(messages: Iterable[Message]) -> int:
    """Estimate the input tokens of messages."""
    return sum(MESSAGE + _blocks(message.blocks) for message in messages)


def estimate_input_tokens(request: GenerateRequest) -> int:
    """Estimate the input tokens of a request."""
    total = _REQUEST + estimate_messages(request.messages)
    if request.tools:
        total += _TOOLS
    for tool in request.tools:
        total += _TOOL + estimate_tokens(tool.name) + estimate_tokens(tool.description)
        total += estimate_bytes(tool.input_schema) + estimate_bytes(tool.extra.json)
    return total + estimate_bytes(request.output_format.schema)


def estimate_lazy(lazy: LazyRequest) -> int:
    """Estimate the input tokens of a lazy request from its JSON; its conversation is only text."""
    total = _REQUEST + (_TOOLS if "tools" in lazy.fields else 0)
    return total + sum(estimate_bytes(lazy.json_of(name)) for name in lazy.fields)


def estimate_inputs(request: EmbedRequest) -> int:
    """Return the tokens of an embedding request; those of texts are estimated."""
    token_count = sum(len(one.tokens) for one in request.token_lists)
    return token_count + sum(estimate_tokens(text) for text in request.texts)


def estimate_forwarded(request: ForwardRequest) -> int:
    """Return the tokens of a forwarded request, estimated from its texts and its files' sizes."""
    total = _REQUEST + estimate_bytes(request.json)
    for part in request.parts:
        if not part.HasField("filename"):
            total += estimate_bytes(part.content)
        elif part.content_type.startswith("image/"):
            total += _IMAGE
        else:
            total += len(part.content) // _BYTES_A_TOKEN + 1
    return total


def _blocks(blocks: Iterable[Block]) -> int:
    total = 0
    for block in blocks:
        kind = block.WhichOneof("kind")
        total += estimate_tokens(block.text) if kind == "text" else _other(kind, block)
        if block.HasField("extra"):
            total += estimate_bytes(block.extra.json)
    return total


def _other(kind: str | None, block: Block) -> int:
    match kind:
        case "media":
            return estimate_media(block.media)
        case "thinking":
            return estimate_tokens(block.thinking.text)
        case "redacted_thinking":
            # Encrypted and base64-encoded, so longer than the original text.
            return len(block.redacted_thinking) // 3
        case "tool_use":
            call = block.tool_use
            return _CALL + estimate_tokens(call.name) + estimate_tokens(call.input)
        case "server_tool_use":
            call = block.server_tool_use
            return _CALL + estimate_tokens(call.name) + estimate_tokens(call.input)
        case "server_tool_result":
            return _CALL + estimate_bytes(block.server_tool_result.SerializeToString())
        case "tool_result":
            return _CALL + _blocks(block.tool_result.blocks)
        case "refusal":
            return estimate_tokens(block.refusal)
        case _:
            return estimate_bytes(block.opaque.json)


def estimate_media(media: Media) -> int:
    """Estimate the tokens of a medium."""
    if media.kind == conversation_pb2.MEDIA_KIND_IMAGE:
        return _IMAGE
    seen = media.WhichOneof("source") == "data"
    if media.kind != conversation_pb2.MEDIA_KIND_DOCUMENT:
        return len(media.data) // _BYTES_A_TOKEN + 1 if seen else _RECORDING_UNSEEN
    if not seen:
        return PAGE * _PAGES_UNSEEN
    if media.mime_type.startswith("text/"):
        return estimate_bytes(media.data)
    # Most PDF files have uncompressed page objects; otherwise the size is used.
    named = media.data.count(b"/Type /Page") + media.data.count(b"/Type/Page")
    return PAGE * (named or len(media.data) // _BYTES_A_PAGE + 1)
