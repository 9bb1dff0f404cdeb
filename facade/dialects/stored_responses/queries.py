"""Query parameters of the endpoints of stored responses."""

from collections.abc import Mapping
from typing import NamedTuple

from facade.dialects.queries import parse_limit
from services.common.errors import invalid
from services.common.text.texts import parse_digits

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
_FLAGS = {"true": True, "false": False}


class RetrieveQuery(NamedTuple):
    """The query of a response.

    Attributes:
        stream: whether the response is returned as a stream of events.
        starting_after: sequence number of the last event to leave out; -1 for none.
    """

    stream: bool
    starting_after: int


class ItemsQuery(NamedTuple):
    """A page of items: its size, its order, and the id of the item before it, or ""."""

    limit: int
    ascending: bool
    after: str


def parse_retrieve_query(query: Mapping[str, str]) -> RetrieveQuery:
    """Parse the query of a response; `include` is ignored, as all that is stored is returned.

    Raises:
        GatewayError: invalid, naming the parameter.
    """
    stream_value = query.get("stream", "false")
    if stream_value not in _FLAGS:
        raise invalid("stream", "stream: must be true or false")
    after = query.get("starting_after")
    if after is None:
        return RetrieveQuery(_FLAGS[stream_value], -1)
    # Nine digits are more events than an answer has, and int() of many digits is slow.
    number = parse_digits(after)
    if number is None:
        raise invalid("starting_after", "starting_after: must be the sequence number of an event")
    if not _FLAGS[stream_value]:
        raise invalid("starting_after", "starting_after: allowed only if stream is true")
    return RetrieveQuery(stream=True, starting_after=number)


def parse_items_query(query: Mapping[str, str]) -> ItemsQuery:
    """Parse the query of a list of items: `limit` (1 to 100; 20 when absent), `order`, `after`.

    Raises:
        GatewayError: invalid, naming the parameter.
    """
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise invalid("order", "order: must be asc or desc")
    limit = parse_limit(query, default=DEFAULT_LIMIT, largest=MAX_LIMIT)
    after = query.get("after", "")
    if "after" in query and not after:
        raise invalid("after", "after: must be the id of an item")
    return ItemsQuery(limit, order == "asc", after)
