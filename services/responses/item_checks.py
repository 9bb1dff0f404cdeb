"""Checks of items and page sizes for several RPCs."""

from collections.abc import Iterable

from gateway.memory.v1.chats_pb2 import ListChatCompletionsRequest
from gateway.memory.v1.conversations_pb2 import ListConversationsRequest, ListItemsRequest
from gateway.memory.v1.responses_pb2 import ListInputItemsRequest, ResponseItem
from services.common.errors import invalid

_MAX_ITEM_ID = 128
_DEFAULT_PAGE, _LARGEST_PAGE = 20, 100


def check_items(items: Iterable[ResponseItem], path: str) -> None:
    """Check the ids of items; `path` is that of their list.

    Raises:
        GatewayError: invalid, naming the id.
    """
    for place, item in enumerate(items):
        if not is_item_id(item.id):
            name = f"{path}[{place}].id"
            raise invalid(name, f"{name}: must be 1 to {_MAX_ITEM_ID} printable characters")


def is_item_id(name: str) -> bool:
    """Return whether an id is valid for an item."""
    return 1 <= len(name) <= _MAX_ITEM_ID and name.isprintable()


def page_size(
    request: ListInputItemsRequest
    | ListItemsRequest
    | ListConversationsRequest
    | ListChatCompletionsRequest,
) -> int:
    """Return the page size of a request.

    Raises:
        GatewayError: invalid.
    """
    size = request.page_size if request.HasField("page_size") else _DEFAULT_PAGE
    if not 1 <= size <= _LARGEST_PAGE:
        raise invalid("page_size", f"page_size: must be 1 to {_LARGEST_PAGE}")
    return size
