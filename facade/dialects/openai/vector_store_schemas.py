"""JSON schemas of vector stores, of their files, and of searches."""

from typing import Final

from facade.dialects.json_schemas import (
    BOOLEAN,
    COUNT,
    NAME,
    OBJECT,
    OPTIONAL_STRING,
    STRING,
    UNIX_SECONDS,
    JsonObject,
    NamedSchema,
    array,
    open_object,
)

_STATES: Final = ["in_progress", "completed", "failed", "cancelled"]
_OPTIONAL_SECONDS: Final[JsonObject] = {**UNIX_SECONDS, "type": ["integer", "null"]}
_ATTRIBUTES: Final[JsonObject] = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean"]},
}
_COUNTS: Final = open_object({name: COUNT for name in (*_STATES, "total")})
LIMIT: Final[JsonObject] = {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}
ORDER: Final[JsonObject] = {"enum": ["asc", "desc"], "default": "desc"}
STATE: Final[JsonObject] = {"enum": _STATES}

VECTOR_STORE: Final = NamedSchema(
    "VectorStore",
    open_object(
        {
            "id": NAME,
            "object": {"const": "vector_store"},
            "created_at": UNIX_SECONDS,
            "name": STRING,
            "description": OPTIONAL_STRING,
            "usage_bytes": COUNT,
            "file_counts": _COUNTS,
            "status": {"enum": ["expired", "in_progress", "completed"]},
            "expires_after": {"type": ["object", "null"]},
            "expires_at": _OPTIONAL_SECONDS,
            "last_active_at": UNIX_SECONDS,
            "metadata": OBJECT,
        }
    ),
)
VECTOR_STORE_FILE: Final = NamedSchema(
    "VectorStoreFile",
    open_object(
        {
            "id": NAME,
            "object": {"const": "vector_store.file"},
            "created_at": UNIX_SECONDS,
            "usage_bytes": COUNT,
            "vector_store_id": NAME,
            "status": STATE,
            "last_error": {
                "anyOf": [
                    {"type": "null"},
                    open_object(
                        {
                            "code": {"enum": ["server_error", "unsupported_file", "invalid_file"]},
                            "message": STRING,
                        }
                    ),
                ]
            },
            "chunking_strategy": OBJECT,
            "attributes": _ATTRIBUTES,
        }
    ),
)
FILE_BATCH: Final = NamedSchema(
    "VectorStoreFileBatch",
    open_object(
        {
            "id": NAME,
            "object": {"const": "vector_store.files_batch"},
            "created_at": UNIX_SECONDS,
            "vector_store_id": NAME,
            "status": STATE,
            "file_counts": _COUNTS,
        }
    ),
)


def _page(name: str, element: NamedSchema) -> NamedSchema:
    return NamedSchema(
        name,
        open_object(
            {
                "object": {"const": "list"},
                "data": array(element.ref),
                "first_id": OPTIONAL_STRING,
                "last_id": OPTIONAL_STRING,
                "has_more": BOOLEAN,
            }
        ),
    )


VECTOR_STORES: Final = _page("VectorStores", VECTOR_STORE)
VECTOR_STORE_FILES: Final = _page("VectorStoreFiles", VECTOR_STORE_FILE)
DELETED: Final = NamedSchema(
    "VectorStoreDeletion", open_object({"id": NAME, "object": STRING, "deleted": {"const": True}})
)
_TEXT_PART: Final = open_object({"type": {"const": "text"}, "text": STRING})
FILE_CONTENT: Final = NamedSchema(
    "VectorStoreFileContent",
    open_object(
        {
            "object": {"const": "vector_store.file_content.page"},
            "file_id": NAME,
            "data": array(_TEXT_PART),
            "has_more": BOOLEAN,
            "next_page": OPTIONAL_STRING,
        }
    ),
)
SEARCH_RESULTS: Final = NamedSchema(
    "VectorStoreSearchResults",
    open_object(
        {
            "object": {"const": "vector_store.search_results.page"},
            "search_query": array(STRING),
            "data": array(
                open_object(
                    {
                        "file_id": NAME,
                        "filename": STRING,
                        "score": {"type": "number", "minimum": 0, "maximum": 1},
                        "attributes": _ATTRIBUTES,
                        "content": array(_TEXT_PART),
                    }
                )
            ),
            "has_more": BOOLEAN,
            "next_page": OPTIONAL_STRING,
        }
    ),
)
