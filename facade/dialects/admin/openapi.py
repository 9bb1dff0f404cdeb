"""Administration's part of the OpenAPI document."""

import re
from typing import Any

from facade.dialects.admin.endpoints import ENDPOINTS, PREFIX
from facade.dialects.admin.table import Endpoint

_SCHEMA_PREFIX = "Admin"
_ID = re.compile(r"{(\w+)}")


def paths(errors: dict[str, Any]) -> dict[str, Any]:
    """Return the paths, which share the error responses."""
    described: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        operations = described.setdefault(PREFIX + endpoint.path, {})
        operations[endpoint.method.lower()] = _operation(endpoint, errors)
    return described


def schemas() -> dict[str, Any]:
    """Return the schemas that the paths refer to."""
    named: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        named[_answer_name(endpoint)] = endpoint.answer
        if endpoint.body is not None:
            named[_body_name(endpoint)] = endpoint.body.model_json_schema()
    return named


def _operation(endpoint: Endpoint, errors: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": endpoint.operation,
        "tags": ["admin"],
        "security": [{"adminKey": []}],
        "parameters": [*map(_id, _ID.findall(endpoint.path)), *_query(endpoint)],
        "responses": {
            "200": {"description": "Success", "content": _json(_answer_name(endpoint))},
            **errors,
        },
    }
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": not endpoint.body_may_be_empty,
            "content": _json(_body_name(endpoint)),
        }
    return operation


def _id(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "maxLength": 64}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query(endpoint: Endpoint) -> list[dict[str, Any]]:
    properties = endpoint.query.model_json_schema().get("properties", {})
    return [
        {"name": name, "in": "query", "schema": _of_parameter(schema)}
        for name, schema in properties.items()
    ]


def _of_parameter(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a query parameter, without null: it is omitted instead."""
    schema = {key: value for key, value in schema.items() if key not in ("default", "title")}
    for choice in schema.pop("anyOf", []):
        if choice != {"type": "null"}:
            schema |= choice
    return schema


def _answer_name(endpoint: Endpoint) -> str:
    return f"{_SCHEMA_PREFIX}.{endpoint.operation}"


def _body_name(endpoint: Endpoint) -> str:
    assert endpoint.body is not None, "only asked for endpoints with a body"
    return f"{_SCHEMA_PREFIX}.{endpoint.body.__name__}"


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
