"""The OpenAPI document, generated from the wire types.

`document` is built once per process; `/docs` shows it without external resources.
"""

import html
import re
from functools import cache
from importlib.metadata import version
from typing import Any

import orjson
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from facade.dialects import (
    admin,
    anthropic,
    articles,
    caller_usage,
    files_openapi,
    memory,
    openai,
    responses,
)
from facade.dialects.conversations import openapi as conversations
from facade.dialects.conversations.requests import ConversationBody, ItemsBody, UpdateBody
from facade.dialects.stored_responses import openapi as stored_responses

_REF = "#/components/schemas/{model}"
_COMPAT_VERSION = {
    "name": "compat-version",
    "in": "header",
    "description": "Version of the API. Required with `x-api-key` and for messages, "
    "unless the client sends `anthropic-version`.",
    "schema": {"type": "string", "enum": ["2023-06-01"]},
}
_BODIES: tuple[type[BaseModel], ...] = (
    openai.ChatRequest,
    anthropic.MessagesBody,
    anthropic.CountTokensBody,
    openai.EmbeddingsRequest,
    responses.ResponseRequest,
    ConversationBody,
    UpdateBody,
    ItemsBody,
)
_FORMAT_A = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string", "description": "Human-readable; names the field."},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"], "description": "Path of the field."},
                "code": {"type": "string", "description": "Stable error code in snake_case."},
                "attempts": {"type": "array", "items": {"type": "object"}},
            },
        }
    },
}
_FORMAT_B = {
    "type": "object",
    "required": ["type", "error", "request_id"],
    "properties": {
        "type": {"const": "error"},
        "error": {
            "type": "object",
            "required": ["type", "message"],
            "properties": {
                "type": {"type": "string"},
                "message": {"type": "string", "description": "Human-readable; names the field."},
                "code": {"type": "string", "description": "Stable error code in snake_case."},
                "param": {"type": "string", "description": "Path of the field."},
                "attempts": {"type": "array", "items": {"type": "object"}},
            },
        },
        "request_id": {"type": "string"},
    },
}
_OBJECT = {"type": "object"}
_STRING = {"type": "string"}
_SIGN_IN = {
    "summary": "Exchange the one-time code of a console link for the development key",
    "operationId": "signInToConsole",
    "security": [],
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["code"],
                    "additionalProperties": False,
                    "properties": {
                        "code": {
                            "type": "string",
                            "description": "Valid once, within 10 minutes.",
                        }
                    },
                }
            }
        },
    },
}


_MODULE = re.compile(r"facade\.dialects\.(\w+)\.\w+\.")
_NOT_IN_NAMES = re.compile(r"[^\w.-]")


class _Schemas(GenerateJsonSchema):
    """Schemas of the bodies; types with the same name are named after their dialects."""

    def normalize_name(self, name: str) -> str:
        """Return a name of a schema, without the module that its type is in."""
        return _NOT_IN_NAMES.sub("_", _MODULE.sub(r"\1.", name))


@cache
def document() -> bytes:
    """Return the OpenAPI 3.1 document as JSON."""
    return orjson.dumps(_document())


def _document() -> dict[str, Any]:
    refs, definitions = models_json_schema(
        [(body, "validation") for body in _BODIES],
        ref_template=_REF,
        schema_generator=_Schemas,
    )
    bodies = {body: refs[(body, "validation")] for body, _ in refs}
    chat, messages, count, embeddings, response, *of_conversations = (
        bodies[body] for body in _BODIES
    )
    create, update, items = of_conversations
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Gateway",
            "version": version("llm-gateway"),
            "description": "HTTP gateway to language-model providers. Every path under "
            "`/beta/v1` is also available under `/v1`.",
        },
        "paths": {
            "/beta/v1/chat/completions": {
                "post": _post(
                    "Create a chat completion",
                    "createChatCompletion",
                    chat,
                    "FormatAError",
                    streams=True,
                )
            },
            "/beta/v1/embeddings": {
                "post": _post(
                    "Create embeddings",
                    "createEmbedding",
                    embeddings,
                    "FormatAError",
                    streams=False,
                )
            },
            "/beta/v1/responses": {
                "post": _post(
                    "Create a response", "createResponse", response, "FormatAError", streams=True
                )
            },
            **stored_responses.paths(_COMPAT_VERSION, _errors("FormatAError")),
            **conversations.paths(
                _COMPAT_VERSION, _errors("FormatAError"), (create, update, items)
            ),
            **_messages_paths("/beta/v1", "", messages, count),
            **_messages_paths("/coding/v1", "Coding", messages, count),
            **_models_paths("/beta/v1", ""),
            **_models_paths("/coding/v1", "Coding"),
            **files_openapi.paths(_COMPAT_VERSION, _errors("FormatAError", "FormatBError")),
            **caller_usage.paths(_COMPAT_VERSION, _errors("FormatAError", "FormatBError")),
            **memory.paths(_COMPAT_VERSION, _errors("FormatAError", "FormatBError")),
            **articles.paths(),
            **admin.paths(_errors("FormatAError")),
            "/console/sign-in": {"post": _SIGN_IN | {"responses": _sign_in_responses()}},
            "/healthz": {"get": _public("Check whether the process is running", "healthz")},
            "/readyz": {"get": _public("Check whether requests can be served", "readyz", 503)},
            "/openapi.json": {"get": _public("Get this document", "openapi")},
        },
        "components": {
            "schemas": {
                **definitions["$defs"],
                **articles.schemas(),
                **memory.schemas(),
                **admin.schemas(),
                **stored_responses.schemas(),
                **conversations.schemas(),
                **files_openapi.schemas(),
                "FormatAError": _FORMAT_A,
                "FormatBError": _FORMAT_B,
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
                "adminKey": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An admin key. If none is configured, these paths do not exist.",
                },
            },
        },
        "security": [{"bearer": []}, {"apiKey": []}],
    }


def _messages_paths(
    prefix: str, name: str, messages: dict[str, Any], count: dict[str, Any]
) -> dict[str, Any]:
    return {
        f"{prefix}/messages": {
            "post": _post(
                "Create a message", f"create{name}Message", messages, "FormatBError", streams=True
            )
        },
        f"{prefix}/messages/count_tokens": {
            "post": _post(
                "Count the input tokens of a conversation",
                f"count{name}Tokens",
                count,
                "FormatBError",
                streams=False,
            )
        },
    }


def _models_paths(prefix: str, name: str) -> dict[str, Any]:
    path = {
        "name": "model",
        "in": "path",
        "required": True,
        "description": "Any model name that requests accept; may contain slashes.",
        "schema": {"type": "string", "minLength": 1},
    }
    errors = ("FormatAError", "FormatBError")
    paging = [
        {"name": key, "in": "query", "schema": schema, "description": description}
        for key, schema, description in (
            ("limit", {"type": "integer", "minimum": 1, "maximum": 1000}, "Anthropic format only."),
            (
                "after_id",
                {"type": "string"},
                "Anthropic format only; not together with `before_id`.",
            ),
            (
                "before_id",
                {"type": "string"},
                "Anthropic format only; not together with `after_id`.",
            ),
        )
    ]
    return {
        f"{prefix}/models": {
            "get": {
                "summary": "List the models available to the caller",
                "operationId": f"list{name}Models",
                "parameters": [_COMPAT_VERSION, *paging],
                "responses": {"200": _json("The models", _OBJECT), **_errors(*errors)},
            }
        },
        f"{prefix}/models/{{model}}": {
            "get": {
                "summary": "Get a model",
                "operationId": f"get{name}Model",
                "parameters": [_COMPAT_VERSION, path],
                "responses": {"200": _json("The model", _OBJECT), **_errors(*errors)},
            }
        },
    }


def _post(
    summary: str, operation: str, body: dict[str, Any], error: str, *, streams: bool
) -> dict[str, Any]:
    answer = _json("The answer", _OBJECT)
    if streams:
        answer["content"]["text/event-stream"] = {"schema": {"type": "string"}}
    return {
        "summary": summary,
        "operationId": operation,
        "parameters": [_COMPAT_VERSION],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"200": answer, **_errors(error)},
    }


def _sign_in_responses() -> dict[str, Any]:
    key = {"type": "object", "required": ["key"], "properties": {"key": _STRING}}
    return {"200": _json("The key", key), **_errors("FormatAError")}


def _public(summary: str, operation: str, *others: int) -> dict[str, Any]:
    return {
        "summary": summary,
        "operationId": operation,
        "security": [],
        "responses": {str(status): _json("The state", _OBJECT) for status in (200, *others)},
    }


def _json(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _errors(*names: str) -> dict[str, Any]:
    schemas = [{"$ref": _REF.format(model=name)} for name in names]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return {"4XX": _json("Client error", schema), "5XX": _json("Server error", schema)}


@cache
def page() -> str:
    """Return a page that lists the endpoints and shows the document."""
    described = _document()
    rows = "".join(
        f"<tr><td>{method.upper()}</td><td><code>{html.escape(path)}</code></td>"
        f"<td>{html.escape(operation['summary'])}</td></tr>"
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    )
    text = html.escape(orjson.dumps(described, option=orjson.OPT_INDENT_2).decode())
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Gateway</title>"
        "<style>body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
        "td{padding:.2em 1em .2em 0}pre{overflow:auto;background:#8881;padding:1em}</style>"
        f"<h1>Gateway</h1><table>{rows}</table>"
        f'<h2>OpenAPI</h2><p><a href="/openapi.json">openapi.json</a></p><pre>{text}</pre></html>'
    )
