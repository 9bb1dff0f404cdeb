"""The part of the OpenAPI document about files, in both formats, and the storage that they use."""

from typing import Any

from facade.dialects.purposes import PURPOSES
from services.common.settings import MAX_FILE_LIFETIME_S

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
        "object": {"const": "storage", "description": "OpenAI format only."},
        "type": {"const": "storage", "description": "Anthropic format only."},
        "files": {
            "type": "integer",
            "description": "Number of files, including those of other users in the team.",
        },
        "used_bytes": {"type": "integer"},
        "quota_bytes": {"type": "integer", "description": "Maximum bytes that the plan allows."},
    },
}
_FILE_FORM = {
    "type": "object",
    "required": ["file", "purpose"],
    "properties": {
        "file": {"type": "string", "format": "binary", "description": "Must have a filename."},
        "purpose": {
            "enum": list(PURPOSES),
            "description": "Optional for clients that send `anthropic-version`.",
        },
        "expires_after": {
            "type": "string",
            "description": 'JSON, such as {"anchor": "created_at", "seconds": 3600}; or send '
            "the fields `expires_after[anchor]` and `expires_after[seconds]`. 30 "
            "days if omitted.",
        },
        "expires_in_seconds": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_FILE_LIFETIME_S,
            "description": "Seconds until expiration, for clients that send `anthropic-version`.",
        },
    },
}


def paths(compat_version: dict[str, Any], errors: dict[str, Any]) -> dict[str, Any]:
    """Return the paths, which share the version header and the error responses."""
    file = {"anyOf": [{"$ref": _ref(f"Format{name}File")} for name in "AB"]}
    described = {"200": _json("The file", file), **errors}
    file_id = {"name": "file_id", "in": "path", "required": True, "schema": _STRING}
    one = {"parameters": [compat_version, file_id]}
    form = {"$ref": _ref("FileForm")}
    query = (
        (
            "limit",
            {"type": "integer", "minimum": 1, "maximum": 10_000},
            "At most 1000 in the Anthropic format.",
        ),
        ("after", _STRING, "OpenAI format only: id of the last file of the previous page."),
        ("order", {"enum": ["asc", "desc"]}, "OpenAI format only; newest first if omitted."),
        ("purpose", {"enum": list(PURPOSES)}, "OpenAI format only."),
        ("after_id", _STRING, "Anthropic format only; not together with `before_id`."),
        ("before_id", _STRING, "Anthropic format only; not together with `after_id`."),
        (
            "page",
            _STRING,
            "For clients that send `anthropic-version`: the `next_page` of the previous page.",
        ),
    )
    paging = [
        {"name": name, "in": "query", "schema": schema, "description": description}
        for name, schema, description in query
    ]
    content = {
        status: {"description": description, "content": {"*/*": {"schema": {}}}}
        for status, description in (("200", "The content"), ("206", "The requested range"))
    }
    return {
        "/beta/v1/files": {
            "post": {
                "summary": "Upload a file",
                "operationId": "createFile",
                "parameters": [compat_version],
                "requestBody": {
                    "required": True,
                    "content": {"multipart/form-data": {"schema": form}},
                },
                "responses": described,
            },
            "get": {
                "summary": "List the caller's files",
                "operationId": "listFiles",
                "parameters": [compat_version, *paging],
                "responses": {"200": _json("A page of files", _OBJECT), **errors},
            },
        },
        "/beta/v1/files/{file_id}": {
            "get": {
                "summary": "Get a file",
                "operationId": "getFile",
                **one,
                "responses": described,
            },
            "delete": {
                "summary": "Delete a file",
                "operationId": "deleteFile",
                **one,
                "responses": {"200": _json("The file was deleted", _OBJECT), **errors},
            },
        },
        "/beta/v1/files/{file_id}/content": {
            "get": {
                "summary": "Download a file; supports Range, If-Range and If-None-Match",
                "operationId": "getFileContent",
                **one,
                "responses": {
                    **content,
                    "304": {"description": "Not modified"},
                    **errors,
                },
            }
        },
        "/beta/v1/storage": {
            "get": {
                "summary": "Get the storage used by the caller's files, and its quota",
                "operationId": "getStorage",
                "parameters": [compat_version],
                "responses": {"200": _json("The storage", _STORAGE), **errors},
            }
        },
    }


def schemas() -> dict[str, Any]:
    """Return the schemas that the paths refer to."""
    return {"FormatAFile": _FILE_A, "FormatBFile": _FILE_B, "FileForm": _FILE_FORM}


def _ref(name: str) -> str:
    return f"#/components/schemas/{name}"


def _json(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}
