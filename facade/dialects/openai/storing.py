"""Chats that are stored: `store: true`, with `metadata`. Pure."""

from typing import Final

from pydantic import TypeAdapter

from facade.dialects.openai.types import ChatRequest
from facade.dialects.parsed_request import StoredChat
from facade.dialects.responses.types import Metadata
from facade.dialects.validation import check, write_json

_STORE: Final = "store"
_METADATA: Final = "metadata"
_NOTES: TypeAdapter[dict[str, str]] = TypeAdapter(Metadata)


def is_stored(wire: ChatRequest) -> bool:
    """Return whether a chat is to be stored."""
    return bool(wire.model_extra) and wire.model_extra.get(_STORE) is True


def take_stored(wire: ChatRequest) -> StoredChat | None:
    """Return what is stored of a chat; its fields are removed, as no provider stores it.

    None for a chat that is not stored, which keeps its fields.

    Raises:
        GatewayError: invalid, for metadata other than a few short texts.
    """
    further = wire.model_extra
    if not further or further.get(_STORE) is not True:
        return None
    del further[_STORE]
    notes = further.pop(_METADATA, None)
    metadata = {} if notes is None else check(_NOTES, notes, _METADATA)
    return StoredChat(write_json(wire.messages, "messages").decode(), metadata)
