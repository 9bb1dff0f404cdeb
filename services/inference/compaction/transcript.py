"""Messages as texts for a summary. Pure."""

from collections.abc import Sequence

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Message
from services.common.messages.sealed_summary import SUMMARY
from services.inference.providers.foreign_blocks import text_of_block

_KINDS = {
    conversation_pb2.MEDIA_KIND_IMAGE: "an image",
    conversation_pb2.MEDIA_KIND_DOCUMENT: "a document",
    conversation_pb2.MEDIA_KIND_AUDIO: "a recording",
    conversation_pb2.MEDIA_KIND_VIDEO: "a film",
}


def earlier_summary(messages: Sequence[Message]) -> str:
    """Return the summaries that messages begin with; "" without any."""
    return "\n".join(
        block.text.removeprefix(SUMMARY).strip()
        for message in messages
        for block in message.blocks
        if block.text.startswith(SUMMARY)
    )


def texts_of(messages: Sequence[Message]) -> list[str]:
    """Return the text of each message, without summaries, thinking and the bytes of media."""
    texts: list[str] = []
    for message in messages:
        parts = [part for block in message.blocks if (part := _text(block))]
        if parts:
            is_user = message.role == conversation_pb2.ROLE_USER
            texts.append(("User: " if is_user else "Assistant: ") + "\n".join(parts))
    return texts


def _text(block: Block) -> str:
    match block.WhichOneof("kind"):
        case "text":
            return "" if block.text.startswith(SUMMARY) else block.text.strip()
        case "refusal":
            return block.refusal.strip()
        case "media":
            name = f" {block.media.name!r}" if block.media.name else ""
            described = block.media.description
            return f"[{_KINDS.get(block.media.kind, 'a file')}{name}] {described}".rstrip()
        case "tool_use":
            return f"[called {block.tool_use.name} with {block.tool_use.input}]"
        case "tool_result":
            failed = ", which failed" if block.tool_result.is_error else ""
            results = filter(None, map(_text, block.tool_result.blocks))
            return f"[the result{failed}] " + "\n".join(results)
        case "server_tool_use":
            return f"[used {block.server_tool_use.name} with {block.server_tool_use.input}]"
        case "opaque":
            fields = orjson.loads(block.opaque.json)
            return text_of_block(fields) if isinstance(fields, dict) else ""
        case _:
            return ""
