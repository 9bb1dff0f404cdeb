"""Query parameters of `GET /v1beta/interactions/{id}`."""

from collections.abc import Mapping
from typing import NamedTuple

from services.common.errors import invalid
from services.common.text.texts import parse_digits

_FLAGS = {"true": True, "false": False, "True": True, "False": False}


class InteractionQuery(NamedTuple):
    """The query of an interaction.

    Attributes:
        stream: whether it is returned as a stream of events.
        last_event: number of the last event to leave out; -1 for none.
        with_input: whether its input is returned.
    """

    stream: bool
    last_event: int
    with_input: bool


def parse_interaction_query(query: Mapping[str, str]) -> InteractionQuery:
    """Parse the query of an interaction.

    Raises:
        GatewayError: invalid, naming the parameter.
    """
    stream, with_input = (_flag(query, name) for name in ("stream", "include_input"))
    last = query.get("last_event_id")
    if last is None:
        return InteractionQuery(stream, -1, with_input)
    number = parse_digits(last)
    if number is None:
        raise invalid("last_event_id", "last_event_id: must be the event_id of an event")
    if not stream:
        raise invalid("last_event_id", "last_event_id: allowed only if stream is true")
    return InteractionQuery(stream, number, with_input)


def _flag(query: Mapping[str, str], name: str) -> bool:
    value = query.get(name, "false")
    if value not in _FLAGS:
        raise invalid(name, f"{name}: must be true or false")
    return _FLAGS[value]
