"""Chats that are stored: `store: true`, with `metadata`. Pure."""

from typing import Any, Final

from pydantic import TypeAdapter

from facade.dialects.openai.types import ChatRequest
from facade.dialects.parsed_request import StoredChat
from facade.dialects.responses.types import Metadata
from facade.dialects.validation import check, write_json

STORE: Final = "store"
_METADATA: Final = "metadata"
_NOTES: TypeAdapter[dict[str, str]] = TypeAdapter(Metadata)


def take_stored(wire: ChatRequest, further: dict[str, Any]) -> StoredChat:
    """Return what is stored of a chat; its fields are removed, as no provider stores it.

    Args:
        wire: the chat.
        further: its fields without a name; modified.

    Raises:
        GatewayError: invalid, for metadata other than a few short texts.
    """
    del further[STORE]
    notes = further.pop(_METADATA, None)
    metadata = {} if notes is None else check(_NOTES, notes, _METADATA)
    return StoredChat(write_json(wire.messages, "messages").decode(), metadata)
