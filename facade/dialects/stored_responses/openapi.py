"""The part of the OpenAPI document about stored responses."""

from typing import Any

from facade.dialects.stored_responses.queries import DEFAULT_LIMIT, MAX_LIMIT

_STRING = {"type": "string", "minLength": 1}
_RESPONSE_ID = {"name": "response_id", "in": "path", "required": True, "schema": _STRING}
INCLUDE = {
    "name": "include[]",
    "in": "query",
    "description": "Ignored: all stored data is returned.",
    "schema": {"type": "array", "items": {"type": "string"}},
}
_RETRIEVE = [
    INCLUDE,
    {
        "name": "stream",
        "in": "query",
        "description": "Whether to return the response's events; they are sent after the "
        "response has finished.",
        "schema": {"type": "boolean", "default": False},
    },
    {
        "name": "starting_after",
        "in": "query",
        "description": "Sequence number of the last event to skip; allowed only if `stream` "
        "is true.",
        "schema": {"type": "integer", "minimum": 0, "maximum": 999_999_999},
    },
]
ITEM_PAGE = [
    INCLUDE,
    {
        "name": "limit",
        "in": "query",
        "schema": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_LIMIT,
            "default": DEFAULT_LIMIT,
        },
    },
    {"name": "order", "in": "query", "schema": {"enum": ["asc", "desc"], "default": "desc"}},
    {
        "name": "after",
        "in": "query",
        "description": "Id of the last item of the previous page.",
        "schema": _STRING,
    },
]
_RESPONSE = {
    "type": "object",
    "required": ["id", "object", "status", "output"],
    "properties": {
        "id": _STRING,
        "object": {"const": "response"},
        "status": {
            "enum": ["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
        },
        "output": {"type": "array", "items": {"type": "object"}},
    },
}
_DELETED = {
    "type": "object",
    "required": ["id", "object", "deleted"],
    "properties": {
        "id": _STRING,
        "object": {"const": "response"},
        "deleted": {"const": True},
    },
}
_PAGE = {
    "type": "object",
    "required": ["object", "data", "first_id", "last_id", "has_more"],
    "properties": {
        "object": {"const": "list"},
        "data": {"type": "array", "items": {"type": "object"}},
        "first_id": {"type": ["string", "null"]},
        "last_id": {"type": ["string", "null"]},
        "has_more": {"type": "boolean"},
    },
}


def paths(compat_version: dict[str, Any], errors: dict[str, Any]) -> dict[str, Any]:
    """Return the paths, which share the version header and the error responses."""

    def operation(
        name: str, summary: str, schema: str, parameters: list[dict[str, Any]]
    ) -> dict[str, Any]:
        content: dict[str, Any] = {
            "application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}
        }
        if name == "getResponse":
            content["text/event-stream"] = {"schema": {"type": "string"}}
        return {
            "summary": summary,
            "operationId": name,
            "parameters": [compat_version, _RESPONSE_ID, *parameters],
            "responses": {"200": {"description": "Success", "content": content}, **errors},
        }

    one = "/beta/v1/responses/{response_id}"
    return {
        one: {
            "get": operation("getResponse", "Get a stored response", "StoredResponse", _RETRIEVE),
            "delete": operation(
                "deleteResponse", "Delete a stored response", "DeletedResponse", []
            ),
        },
        f"{one}/cancel": {
            "post": operation(
                "cancelResponse",
                "Cancel a background response",
                "StoredResponse",
                [],
            )
        },
        f"{one}/input_items": {
            "get": operation(
                "listInputItems", "List the input items of a response", "ResponseItems", ITEM_PAGE
            )
        },
    }


def schemas() -> dict[str, Any]:
    """Return the schemas that the paths refer to."""
    return {"StoredResponse": _RESPONSE, "DeletedResponse": _DELETED, "ResponseItems": _PAGE}
