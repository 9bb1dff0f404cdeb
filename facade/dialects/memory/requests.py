"""Parsing and validation of requests to the memory endpoints."""

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from facade.dialects.extensions import check_memory_id
from facade.dialects.queries import parse_limit
from facade.dialects.validation import read
from gateway.memory.v1.memory_pb2 import SearchMemoryRequest, UpdateFactRequest
from services.common.errors import invalid

DEFAULT_LIMIT = 20
MAX_LIMIT = 1000
DEFAULT_FOUND = 8
MAX_FOUND = 100
MAX_QUERY = 10_000
# Maximum length of a fact, in characters; a test checks that the service has the same.
MAX_VALUE = 200
_MAX_ID = 256


class Page(NamedTuple):
    """A page of a list: its size, and the token of its start."""

    limit: int
    token: str


class SearchBody(BaseModel):
    """A search of a memory."""

    model_config = ConfigDict(strict=True, extra="forbid", defer_build=True)

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY)] = Field(
        description="Text to search for in archived turns."
    )
    limit: Annotated[int, Field(ge=1, le=MAX_FOUND)] = Field(
        DEFAULT_FOUND, description="Maximum number of turns to return."
    )


class FactBody(BaseModel):
    """A correction of a fact."""

    model_config = ConfigDict(strict=True, extra="forbid", defer_build=True)

    value: Annotated[str, Field(min_length=1, max_length=MAX_VALUE)] = Field(
        description="What is true instead."
    )


_SEARCH: TypeAdapter[SearchBody] = TypeAdapter(SearchBody)
_FACT: TypeAdapter[FactBody] = TypeAdapter(FactBody)


def parse_memory_id(name: str) -> str:
    """Validate the percent-decoded name of a memory in a path, and return it.

    Raises:
        GatewayError: invalid.
    """
    if len(name) > _MAX_ID:
        raise invalid("memory_id", f"memory_id: must have at most {_MAX_ID} characters")
    check_memory_id(name)
    return name


def parse_page(query: Mapping[str, str]) -> Page:
    """Parse the query of a list: `limit` (1 to 1000; 20 when absent) and `page`.

    Raises:
        GatewayError: invalid, naming the parameter.
    """
    limit = parse_limit(query, default=DEFAULT_LIMIT, largest=MAX_LIMIT)
    token = query.get("page", "")
    if "page" in query and not (token and token.isascii()):
        raise invalid("page", "page: must be the next_page of a previous page")
    return Page(limit, token)


def parse_search(body: bytes, memory_id: str) -> SearchMemoryRequest:
    """Parse the body of a search.

    Raises:
        GatewayError: invalid, naming the field.
    """
    search = read(_SEARCH, body)
    return SearchMemoryRequest(memory_id=memory_id, query=search.query, top_k=search.limit)


def parse_correction(body: bytes, fact_id: str) -> UpdateFactRequest:
    """Parse the body of a correction of a fact.

    Raises:
        GatewayError: invalid, naming the field.
    """
    return UpdateFactRequest(id=fact_id, value=read(_FACT, body).value)
