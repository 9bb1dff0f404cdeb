"""Vector stores in OpenAI's format: bodies and objects.

Source: OpenAI's API reference, "Vector stores".
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, TypeAdapter

from facade.dialects.openai.vector_store_files import (
    MAX_SIZE,
    OVERLAP,
    ChunkingStrategy,
    FileId,
    attributes_of,
    counts,
    new_file,
    sizes_of,
)
from facade.dialects.paths import FieldNames
from facade.dialects.queries import parse_cursor, parse_limit
from facade.dialects.responses.types import Metadata
from facade.dialects.validation import read, to_json
from gateway.memory.v1 import vector_stores_pb2 as pb
from services.common.errors import invalid

# Callers' names of the service's fields.
STORE_NAMES: Final = FieldNames(
    {
        "files[].file_id": "file_ids[]",
        "files[].chunking.max_chunk_tokens": MAX_SIZE,
        "files[].chunking.overlap_tokens": OVERLAP,
        "files": "file_ids",
        "expires_after_days": "expires_after.days",
        "after_id": "after",
        "before_id": "before",
        "page_size": "limit",
        "ids": "vector_store_id",
        "id": "vector_store_id",
    }
)
SEARCH_NAMES: Final = FieldNames(
    {
        "queries": "query",
        "max_results": "max_num_results",
        "score_threshold": "ranking_options.score_threshold",
        "vector_store_ids": "vector_store_id",
    }
)
DEFAULT_PAGE: Final = 20
MAX_PAGE: Final = 100
MAX_FILES: Final = 500
MAX_QUERIES: Final = 8
_OPEN = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, defer_build=True)
_SECOND: Final = 1000


class VectorStoreExpiry(BaseModel):
    """When a vector store expires."""

    model_config = _OPEN

    anchor: Literal["last_active_at"]
    days: Annotated[int, Field(ge=1, le=365)]


class VectorStoreBody(BaseModel):
    """The body of `POST /v1/vector_stores`."""

    model_config = _OPEN

    name: str | None = Field(None, max_length=256, description="A name, for people.")
    description: str | None = Field(None, max_length=512, description="What it is for.")
    file_ids: list[FileId] | None = Field(
        None, max_length=MAX_FILES, description="Files to add, of any purpose."
    )
    expires_after: VectorStoreExpiry | None = Field(
        None, description="Days without a search or a change, after which it expires."
    )
    chunking_strategy: ChunkingStrategy | None = Field(
        None, description="How the text of `file_ids` is cut."
    )
    metadata: Metadata | None = Field(None, description="Up to 16 key-value pairs of strings.")


class VectorStoreChange(BaseModel):
    """The body of a change of a vector store; null clears a field, but not the name's."""

    model_config = _OPEN

    name: str | None = Field(None, max_length=256, description="A name, for people.")
    expires_after: VectorStoreExpiry | None = Field(None, description="When it expires.")
    metadata: Metadata | None = Field(None, description="Up to 16 key-value pairs of strings.")


class HybridSearch(BaseModel):
    """How vectors and words are weighted."""

    model_config = _OPEN

    embedding_weight: Annotated[float, Field(ge=0)]
    text_weight: Annotated[float, Field(ge=0)]


class RankingOptions(BaseModel):
    """How results are ranked."""

    model_config = _OPEN

    ranker: str | None = Field(
        None, description="Any; the gateway has one ranking, with which a second is not needed."
    )
    score_threshold: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="Results with a lower score are left out."
    )
    hybrid_search: HybridSearch | None = Field(
        None, description="The weights of vectors and words; 1 and 4 when absent."
    )


class VectorStoreSearch(BaseModel):
    """The body of a search."""

    model_config = _OPEN

    query: (
        Annotated[str, Field(min_length=1, max_length=10_000), Tag("#string")]
        | Annotated[
            list[Annotated[str, Field(min_length=1, max_length=10_000)]],
            Field(min_length=1, max_length=MAX_QUERIES),
            Tag("#list"),
        ]
    ) = Field(
        discriminator=Discriminator(
            lambda value: "#list" if isinstance(value, list) else "#string"
        ),
        description="What to search for; of several queries, the best results of each.",
    )
    filters: dict[str, Any] | None = Field(None, description="A filter on attributes of files.")
    max_num_results: Annotated[int, Field(ge=1, le=50)] | None = Field(
        None, description="Maximum number of results; 10 when absent."
    )
    ranking_options: RankingOptions | None = Field(None, description="How results are ranked.")
    rewrite_query: bool | None = Field(
        None, description="Accepted; queries are searched as they are."
    )


_BODY: TypeAdapter[VectorStoreBody] = TypeAdapter(VectorStoreBody)
_CHANGE: TypeAdapter[VectorStoreChange] = TypeAdapter(VectorStoreChange)
_SEARCH: TypeAdapter[VectorStoreSearch] = TypeAdapter(VectorStoreSearch)


def parse_vector_store(body: bytes) -> pb.CreateVectorStoreRequest:
    """Parse the body of a new vector store; "" is an empty object.

    Raises:
        GatewayError: invalid, naming the field.
    """
    wire = read(_BODY, body or b"{}")
    sizes = sizes_of(wire.chunking_strategy)
    request = pb.CreateVectorStoreRequest(
        name=wire.name or "",
        description=wire.description or "",
        metadata=orjson.dumps(wire.metadata) if wire.metadata else b"",
        files=[new_file(file_id, None, sizes) for file_id in dict.fromkeys(wire.file_ids or ())],
    )
    if wire.expires_after is not None:
        request.expires_after_days = wire.expires_after.days
    return request


def parse_change(store_id: str, body: bytes) -> pb.UpdateVectorStoreRequest:
    """Parse the body of a change.

    Raises:
        GatewayError: invalid, naming the field.
    """
    wire = read(_CHANGE, body or b"{}")
    request = pb.UpdateVectorStoreRequest(id=store_id)
    if wire.name is not None:
        request.name = wire.name
    if "metadata" in wire.model_fields_set:
        request.metadata = orjson.dumps(wire.metadata) if wire.metadata else b""
    if "expires_after" in wire.model_fields_set:
        request.expires_after_days = wire.expires_after.days if wire.expires_after else 0
    return request


def parse_page(query: Mapping[str, str]) -> pb.PageRequest:
    """Parse the query of a list: `limit` (1 to 100; 20 when absent), `order`, `after`, `before`.

    Raises:
        GatewayError: invalid, naming the parameter.
    """
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise invalid("order", "order: must be asc or desc")
    return pb.PageRequest(
        page_size=parse_limit(query, default=DEFAULT_PAGE, largest=MAX_PAGE),
        after_id=parse_cursor(query, "after") or "",
        before_id=parse_cursor(query, "before") or "",
        is_ascending=order == "asc",
    )


def parse_search(store_id: str, body: bytes) -> pb.SearchVectorStoresRequest:
    """Parse the body of a search.

    Raises:
        GatewayError: invalid, naming the field.
    """
    wire = read(_SEARCH, body)
    queries = wire.query if isinstance(wire.query, list) else [wire.query]
    request = pb.SearchVectorStoresRequest(
        vector_store_ids=[store_id],
        queries=queries,
        filters=to_json(wire.filters, "filters") if wire.filters else b"",
    )
    if wire.max_num_results is not None:
        request.max_results = wire.max_num_results
    set_ranking(request, wire.ranking_options)
    return request


def set_ranking(
    target: pb.SearchVectorStoresRequest, options: RankingOptions | None, path: str = ""
) -> None:
    """Set the ranking of a search; `path` is that of the options' parent, with a dot.

    Raises:
        GatewayError: invalid, both weights are 0.
    """
    if options is None:
        return
    target.score_threshold = options.score_threshold or 0.0
    if options.hybrid_search is not None:
        target.vector_share = vector_share(options.hybrid_search, path)


def vector_share(weights: HybridSearch, path: str = "") -> float:
    """Return the share of vectors of two weights.

    Raises:
        GatewayError: invalid, both are 0.
    """
    total = weights.embedding_weight + weights.text_weight
    if not total:
        name = f"{path}ranking_options.hybrid_search"
        raise invalid(name, f"{name}: one of the weights must be above 0")
    return weights.embedding_weight / total


def render_vector_store(store: pb.VectorStore) -> bytes:
    """Return the JSON of a vector store."""
    return orjson.dumps(_store(store))


def render_vector_stores(page: pb.ListVectorStoresResponse) -> bytes:
    """Return the JSON of a page of vector stores."""
    return render_page([_store(store) for store in page.vector_stores], has_more=page.has_more)


def render_page(objects: list[dict[str, Any]], *, has_more: bool) -> bytes:
    """Return the JSON of a page of objects with ids."""
    return orjson.dumps(
        {
            "object": "list",
            "data": objects,
            "first_id": objects[0]["id"] if objects else None,
            "last_id": objects[-1]["id"] if objects else None,
            "has_more": has_more,
        }
    )


def render_deleted(kind: str, name: str) -> bytes:
    """Return the JSON that confirms a deletion."""
    return orjson.dumps({"id": name, "object": f"{kind}.deleted", "deleted": True})


def render_results(queries: list[str], answer: pb.SearchVectorStoresResponse) -> bytes:
    """Return the JSON of the results of a search."""
    data = [
        {
            "file_id": chunk.file_id,
            "filename": chunk.filename,
            "score": chunk.score,
            "attributes": attributes_of(chunk.attributes),
            "content": [{"type": "text", "text": chunk.text}],
        }
        for chunk in answer.results
    ]
    return orjson.dumps(
        {
            "object": "vector_store.search_results.page",
            "search_query": queries,
            "data": data,
            "has_more": False,
            "next_page": None,
        }
    )


def _store(store: pb.VectorStore) -> dict[str, Any]:
    has_days = store.HasField("expires_after_days")
    expires_after = {"anchor": "last_active_at", "days": store.expires_after_days}
    status = "in_progress" if store.file_counts.in_progress else "completed"
    return {
        "id": store.id,
        "object": "vector_store",
        "created_at": store.created_at_ms // _SECOND,
        "name": store.name,
        "description": store.description or None,
        "usage_bytes": store.usage_bytes,
        "file_counts": counts(store.file_counts),
        "status": "expired" if store.has_expired else status,
        "expires_after": expires_after if has_days else None,
        "expires_at": store.expires_at_ms // _SECOND if store.expires_at_ms else None,
        "last_active_at": store.last_active_at_ms // _SECOND,
        "metadata": orjson.Fragment(store.metadata) if store.metadata else {},
    }
