"""Query parameters and bodies of the endpoints of stored chat completions.

Source: OpenAI's API reference, "Chat Completions".
"""

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from facade.dialects.queries import parse_limit
from facade.dialects.responses.types import Metadata
from facade.dialects.validation import exact_json, validate
from services.common.errors import invalid

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
_LABEL, _END = "metadata[", "]"


class PageQuery(NamedTuple):
    """A page: its size, its order, and the id of what is before it, or ""."""

    limit: int
    descending: bool
    after: str


class UpdateChatBody(BaseModel):
    """The body of `POST /v1/chat/completions/{completion_id}`."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, defer_build=True)

    metadata: Metadata | None = Field(
        description="Up to 16 key-value pairs of strings; replaces the existing metadata."
    )


_UPDATE: TypeAdapter[UpdateChatBody] = TypeAdapter(UpdateChatBody)


def parse_page(query: Mapping[str, str]) -> PageQuery:
    """Parse the query of a list: `limit` (1 to 100; 20 when absent), `order`, `after`.

    Raises:
        GatewayError: invalid, naming the parameter.
    """
    order = query.get("order", "asc")
    if order not in ("asc", "desc"):
        raise invalid("order", "order: must be asc or desc")
    limit = parse_limit(query, default=DEFAULT_LIMIT, largest=MAX_LIMIT)
    return PageQuery(limit, order == "desc", query.get("after", ""))


def parse_labels(query: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata of a filter: parameters such as `metadata[topic]`."""
    return {
        name[len(_LABEL) : -1]: value
        for name, value in query.items()
        if name.startswith(_LABEL) and name.endswith(_END)
    }


def parse_update(body: bytes) -> dict[str, str]:
    """Parse the body of an update; return the metadata.

    Raises:
        GatewayError: invalid, naming the field.
    """
    return validate(_UPDATE, exact_json(body), body).metadata or {}
