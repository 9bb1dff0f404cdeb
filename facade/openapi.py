"""The OpenAPI document, generated from the wire types.

`document` is built once per process; `/docs` shows it without external resources.
"""

import html
from functools import cache
from importlib.metadata import version
from typing import Any

import orjson
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from facade.dialects import admin, anthropic, articles, memory, openai, responses
from facade.dialects.conversations import openapi as conversations
from facade.dialects.conversations.requests import ConversationBody, ItemsBody, UpdateBody
from facade.dialects.purposes import PURPOSES
from facade.dialects.stored_responses import openapi as stored_responses
from services.common.settings import MAX_FILE_LIFETIME_S

_REF = "#/components/schemas/{model}"
_COMPAT_VERSION = {
    "name": "compat-version",
    "in": "header",
    "description": "Version of the API: needed with `x-api-key`, and on messages; "
    "clients that send `anthropic-version` need none.",
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
                "message": {"type": "string", "description": "For people; names the field."},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"], "description": "Path of the field."},
                "code": {"type": "string", "description": "Stable reason in snake_case."},
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
                "message": {"type": "string", "description": "For people; names the field."},
                "code": {"type": "string", "description": "Stable reason in snake_case."},
                "param": {"type": "string", "description": "Path of the field."},
                "attempts": {"type": "array", "items": {"type": "object"}},
            },
        },
        "request_id": {"type": "string"},
    },
}
_OBJECT = {"type": "object"}
_STRING = {"type": "string"}
_FILE_A = {
    "type": "object",
    "required": ["object", "id", "bytes", "created_at", "expires_at", "filename", "purpose"],
    "properties": {
        "object": {"const": "file"},
        "id": _STRING,
        "bytes": {"type": "integer"},
        "created_at": {"type": "integer", "description": "Unix seconds."},
        "expires_at": {"type": "integer", "description": "Unix seconds."},
        "filename": _STRING,
        "purpose": {"enum": list(PURPOSES)},
        "status": {"const": "processed"},
    },
}
_FILE_B = {
    "type": "object",
    "required": [
        *("id", "type", "filename", "created_at", "mime_type", "size_bytes", "downloadable")
    ],
    "properties": {
        "id": _STRING,
        "type": {"const": "file"},
        "filename": _STRING,
        "created_at": {"type": "string", "format": "date-time"},
        "expires_at": {"type": "string", "format": "date-time"},
        "mime_type": _STRING,
        "size_bytes": {"type": "integer"},
        "downloadable": {"type": "boolean"},
    },
}
_STORAGE = {
    "type": "object",
    "required": ["files", "used_bytes", "quota_bytes"],
    "properties": {
        "object": {"const": "storage", "description": "Format A alone."},
        "type": {"const": "storage", "description": "Format B alone."},
        "files": {"type": "integer", "description": "Number of files, also of a team's others."},
        "used_bytes": {"type": "integer"},
        "quota_bytes": {"type": "integer", "description": "What the plan allows."},
    },
}
_FILE_FORM = {
    "type": "object",
    "required": ["file", "purpose"],
    "properties": {
        "file": {"type": "string", "format": "binary", "description": "Takes a filename."},
        "purpose": {
            "enum": list(PURPOSES),
            "description": "Clients that send `anthropic-version` may leave it out.",
        },
        "expires_after": {
            "type": "string",
            "description": 'As JSON, {"anchor": "created_at", "seconds": 3600}; or the two as '
            "fields `expires_after[anchor]` and `expires_after[seconds]`. 30 days when absent.",
        },
        "expires_in_seconds": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_FILE_LIFETIME_S,
            "description": "The same, for clients that send `anthropic-version`.",
        },
    },
}
_SIGN_IN = {
    "summary": "The development key, for the one-time code of a link to the console",
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
                            "description": "Can be used once, within 10 minutes.",
                        }
                    },
                }
            }
        },
    },
}


@cache
def document() -> bytes:
    """Return the OpenAPI 3.1 document as JSON."""
    return orjson.dumps(_document())


def _document() -> dict[str, Any]:
    refs, definitions = models_json_schema(
        [(body, "validation") for body in _BODIES], ref_template=_REF
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
            "description": "One HTTP service in front of language-model providers. Every path "
            "under `/beta/v1` answers under `/v1` too.",
        },
        "paths": {
            "/beta/v1/chat/completions": {
                "post": _post(
                    "Chat completions", "createChatCompletion", chat, "FormatAError", streams=True
                )
            },
            "/beta/v1/embeddings": {
                "post": _post(
                    "Embeddings", "createEmbedding", embeddings, "FormatAError", streams=False
                )
            },
            "/beta/v1/responses": {
                "post": _post("Responses", "createResponse", response, "FormatAError", streams=True)
            },
            **stored_responses.paths(_COMPAT_VERSION, _errors("FormatAError")),
            **conversations.paths(
                _COMPAT_VERSION, _errors("FormatAError"), (create, update, items)
            ),
            **_messages_paths("/beta/v1", "", messages, count),
            **_messages_paths("/coding/v1", "Coding", messages, count),
            **_models_paths("/beta/v1", ""),
            **_models_paths("/coding/v1", "Coding"),
            **_files_paths(),
            **memory.paths(_COMPAT_VERSION, _errors("FormatAError", "FormatBError")),
            **articles.paths(),
            **admin.paths(_errors("FormatAError")),
            "/console/sign-in": {"post": _SIGN_IN | {"responses": _sign_in_responses()}},
            "/healthz": {"get": _public("Whether the process runs", "healthz")},
            "/readyz": {"get": _public("Whether requests can be served", "readyz", 503)},
            "/openapi.json": {"get": _public("This document", "openapi")},
        },
        "components": {
            "schemas": {
                **definitions["$defs"],
                **articles.schemas(),
                **memory.schemas(),
                **admin.schemas(),
                **stored_responses.schemas(),
                **conversations.schemas(),
                "FormatAFile": _FILE_A,
                "FormatBFile": _FILE_B,
                "FileForm": _FILE_FORM,
                "FormatAError": _FORMAT_A,
                "FormatBError": _FORMAT_B,
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
                "adminKey": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An admin key; without one configured there are no such paths.",
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
                "Messages", f"create{name}Message", messages, "FormatBError", streams=True
            )
        },
        f"{prefix}/messages/count_tokens": {
            "post": _post(
                "Input tokens of a conversation",
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
        "description": "Any name a request could give; it may hold slashes.",
        "schema": {"type": "string", "minLength": 1},
    }
    errors = ("FormatAError", "FormatBError")
    paging = [
        {"name": key, "in": "query", "schema": schema, "description": description}
        for key, schema, description in (
            ("limit", {"type": "integer", "minimum": 1, "maximum": 1000}, "Format B alone."),
            ("after_id", {"type": "string"}, "Format B alone; not with `before_id`."),
            ("before_id", {"type": "string"}, "Format B alone; not with `after_id`."),
        )
    ]
    return {
        f"{prefix}/models": {
            "get": {
                "summary": "The models a caller can name",
                "operationId": f"list{name}Models",
                "parameters": [_COMPAT_VERSION, *paging],
                "responses": {"200": _json("The models", _OBJECT), **_errors(*errors)},
            }
        },
        f"{prefix}/models/{{model}}": {
            "get": {
                "summary": "One model",
                "operationId": f"get{name}Model",
                "parameters": [_COMPAT_VERSION, path],
                "responses": {"200": _json("The model", _OBJECT), **_errors(*errors)},
            }
        },
    }


def _files_paths() -> dict[str, Any]:
    file = {"anyOf": [{"$ref": _REF.format(model=f"Format{name}File")} for name in "AB"]}
    errors = _errors("FormatAError", "FormatBError")
    described = {"200": _json("The file", file), **errors}
    file_id = {"name": "file_id", "in": "path", "required": True, "schema": _STRING}
    one = {"parameters": [_COMPAT_VERSION, file_id]}
    form = {"$ref": _REF.format(model="FileForm")}
    query = (
        ("limit", {"type": "integer", "minimum": 1, "maximum": 10_000}, "In Format B to 1000."),
        ("after", _STRING, "Format A alone: id of the file before the page."),
        ("order", {"enum": ["asc", "desc"]}, "Format A alone; newest first when absent."),
        ("purpose", {"enum": list(PURPOSES)}, "Format A alone."),
        ("after_id", _STRING, "Format B alone; not with `before_id`."),
        ("before_id", _STRING, "Format B alone; not with `after_id`."),
        ("page", _STRING, "For clients that send `anthropic-version`: an earlier `next_page`."),
    )
    paging = [
        {"name": name, "in": "query", "schema": schema, "description": description}
        for name, schema, description in query
    ]
    content = {
        status: {"description": description, "content": {"*/*": {"schema": {}}}}
        for status, description in (("200", "The bytes"), ("206", "The range of them"))
    }
    return {
        "/beta/v1/files": {
            "post": {
                "summary": "Keep a file",
                "operationId": "createFile",
                "parameters": [_COMPAT_VERSION],
                "requestBody": {
                    "required": True,
                    "content": {"multipart/form-data": {"schema": form}},
                },
                "responses": described,
            },
            "get": {
                "summary": "The caller's files",
                "operationId": "listFiles",
                "parameters": [_COMPAT_VERSION, *paging],
                "responses": {"200": _json("A page of files", _OBJECT), **errors},
            },
        },
        "/beta/v1/files/{file_id}": {
            "get": {
                "summary": "One file",
                "operationId": "getFile",
                **one,
                "responses": described,
            },
            "delete": {
                "summary": "Delete a file",
                "operationId": "deleteFile",
                **one,
                "responses": {"200": _json("It is gone", _OBJECT), **errors},
            },
        },
        "/beta/v1/files/{file_id}/content": {
            "get": {
                "summary": "The bytes of a file; takes Range, If-Range and If-None-Match",
                "operationId": "getFileContent",
                **one,
                "responses": {
                    **content,
                    "304": {"description": "The caller has it already"},
                    **errors,
                },
            }
        },
        "/beta/v1/storage": {
            "get": {
                "summary": "What the caller's files take up, and may",
                "operationId": "getStorage",
                "parameters": [_COMPAT_VERSION],
                "responses": {"200": _json("The storage", _STORAGE), **errors},
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
    return {"4XX": _json("Refused", schema), "5XX": _json("Failed", schema)}


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
