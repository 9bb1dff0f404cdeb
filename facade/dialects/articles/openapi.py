"""The document editing part of the OpenAPI document, generated from the endpoints and their wire
types.
"""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from facade.dialects.articles.endpoints import ENDPOINTS, PREFIX, Endpoint
from facade.dialects.articles.examples import EXAMPLES, Example

# Prefix of schema names, as other dialects have types of the same name.
_NAMES = "articles."
_REF = f"#/components/schemas/{_NAMES}{{model}}"
_ERROR = {
    "type": "object",
    "required": ["code", "message", "data"],
    "additionalProperties": False,
    "properties": {
        "code": {
            "type": "integer",
            "minimum": 40000,
            "description": "HTTP status times 100, plus an error number.",
        },
        "message": {
            "type": "string",
            "description": "Human-readable; names the location of the error.",
        },
        "data": {"type": "object", "maxProperties": 0},
    },
}


def paths() -> dict[str, Any]:
    """Return the paths."""
    return {
        PREFIX + endpoint.path: {"post": _operation(endpoint, EXAMPLES[endpoint.path])}
        for endpoint in ENDPOINTS
    }


def schemas() -> dict[str, Any]:
    """Return the schemas referenced by the paths."""
    models: list[tuple[type[BaseModel], Any]] = [
        (model, "validation")
        for endpoint in ENDPOINTS
        for model in (endpoint.body, endpoint.answer)
    ]
    _, definitions = models_json_schema(list(dict.fromkeys(models)), ref_template=_REF)
    named = {f"{_NAMES}{name}": _tidy(schema) for name, schema in definitions["$defs"].items()}
    return {**named, f"{_NAMES}Error": _ERROR}


def _operation(endpoint: Endpoint, example: Example) -> dict[str, Any]:
    return {
        "summary": endpoint.summary,
        "operationId": endpoint.operation_id,
        "security": [{"apiKey": []}],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": _ref(endpoint.body), "example": example.body}
            },
        },
        "responses": {
            "200": _answer(
                "Success",
                {
                    "type": "object",
                    "required": ["code", "data"],
                    "additionalProperties": False,
                    "properties": {"code": {"const": 1}, "data": _ref(endpoint.answer)},
                },
                {"code": 1, "data": example.data},
            ),
            "4XX": _answer("Client error", {"$ref": _REF.format(model="Error")}),
            "5XX": _answer("Server error", {"$ref": _REF.format(model="Error")}),
        },
    }


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REF.format(model=model.__name__)}


def _answer(description: str, schema: dict[str, Any], example: Any = None) -> dict[str, Any]:
    content = {"schema": schema} if example is None else {"schema": schema, "example": example}
    return {"description": description, "content": {"application/json": content}}


def _tidy(schema: Any) -> Any:
    """Remove defaults of null, which mean absent fields."""
    if isinstance(schema, dict):
        return {
            name: _tidy(value)
            for name, value in schema.items()
            if not (name == "default" and value is None)
        }
    if isinstance(schema, list):
        return [_tidy(value) for value in schema]
    return schema
