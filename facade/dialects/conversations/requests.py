"""Bodies of the endpoints of stored conversations.

Source: OpenAI's API reference, "Conversations".
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from facade.dialects.paths import SourceMap
from facade.dialects.queries import parse_limit
from facade.dialects.responses import (
    Reference,
    add_items,
    conversation_item,
    references_in,
)
from facade.dialects.responses.item_types import Item
from facade.dialects.responses.types import Metadata
from facade.dialects.stored_responses.queries import DEFAULT_LIMIT, MAX_LIMIT
from facade.dialects.validation import exact_json, validate, write_json
from gateway.memory.v1.responses_pb2 import ResponseItem
from services.common import ids
from services.common.errors import invalid

# Maximum items that one request may add.
MAX_ITEMS = 20
_MAX_ITEM_ID = 128

_OPEN = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, defer_build=True)
_Items = Annotated[list[Item], Field(max_length=MAX_ITEMS, fail_fast=True)]


class ConversationBody(BaseModel):
    """The body of `POST /v1/conversations`."""

    model_config = _OPEN

    items: _Items | None = Field(
        None, description="The first items, in the format of a response's `input`."
    )
    metadata: Metadata | None = Field(None, description="Up to 16 key-value pairs of strings.")


class UpdateBody(BaseModel):
    """The body of `POST /v1/conversations/{conversation_id}`."""

    model_config = _OPEN

    metadata: Metadata | None = Field(
        description="Up to 16 key-value pairs of strings; replaces the existing metadata."
    )


class ItemsBody(BaseModel):
    """The body of `POST /v1/conversations/{conversation_id}/items`."""

    model_config = _OPEN

    items: _Items = Field(description="The items to append, in the format of a response's `input`.")


_CREATE: TypeAdapter[ConversationBody] = TypeAdapter(ConversationBody)
_UPDATE: TypeAdapter[UpdateBody] = TypeAdapter(UpdateBody)
_APPEND: TypeAdapter[ItemsBody] = TypeAdapter(ItemsBody)


class Items(NamedTuple):
    """Items of a body.

    Attributes:
        json: the JSON of each item, as it is stored.
        references: the references to stored items among them.
    """

    json: Sequence[bytes]
    references: Sequence[Reference]


def parse_create(body: bytes, new_id: ids.IdGenerator = ids.new_id) -> tuple[bytes, Items]:
    """Parse the body of a new conversation; return its metadata as JSON, and its items.

    Raises:
        GatewayError: invalid, naming the field.
    """
    wire = validate(_CREATE, exact_json(body), body)
    return orjson.dumps(wire.metadata or {}), _items(wire.items or [], new_id)


def parse_update(body: bytes) -> bytes:
    """Parse the body of an update; return the metadata as JSON.

    Raises:
        GatewayError: invalid, naming the field.
    """
    return orjson.dumps(validate(_UPDATE, exact_json(body), body).metadata or {})


def parse_items(body: bytes, new_id: ids.IdGenerator = ids.new_id) -> Items:
    """Parse a body with items to append.

    Raises:
        GatewayError: invalid, naming the field.
    """
    return _items(validate(_APPEND, exact_json(body), body).items, new_id)


class PageQuery(NamedTuple):
    """A page of conversations: its size, and the id of the conversation before it, or ""."""

    limit: int
    after: str


def parse_page(query: Mapping[str, str]) -> PageQuery:
    """Parse the query of a list of conversations: `limit` (1 to 100; 20 when absent), `after`.

    Raises:
        GatewayError: invalid, naming the parameter.
    """
    after = query.get("after", "")
    if "after" in query and not after:
        raise invalid("after", "after: must be the id of a conversation")
    return PageQuery(parse_limit(query, default=DEFAULT_LIMIT, largest=MAX_LIMIT), after)


def stored_items(
    items: Sequence[bytes], new_id: ids.IdGenerator = ids.new_id
) -> list[ResponseItem]:
    """Return the items to store, from their JSON; one without a valid id gets a new one."""
    given = [orjson.loads(item).get("id") for item in items]
    return [
        ResponseItem(id=item_id if _is_id(item_id) else new_id("item_"), json=item)
        for item_id, item in zip(given, items, strict=True)
    ]


def _items(given: Sequence[Any], new_id: ids.IdGenerator) -> Items:
    """Return items in the form in which they are stored.

    Raises:
        GatewayError: invalid, an item could not be used in a response.
    """
    add_items([], given, "items", SourceMap())
    for index, item in enumerate(given):
        item_id = item.get("id")
        if item_id is not None and not _is_id(item_id):
            path = f"items[{index}].id"
            raise invalid(path, f"{path}: must be 1 to {_MAX_ITEM_ID} printable characters")
    json = [write_json(conversation_item(item, new_id), "items") for item in given]
    return Items(json, references_in(given, "items"))


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= _MAX_ITEM_ID and value.isprintable()
