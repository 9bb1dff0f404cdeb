"""The schemas of errors in each format."""

from collections.abc import Mapping
from typing import Final

from facade.credentials import ApiFormat
from facade.dialects.json_schemas import (
    INTEGER,
    OBJECT,
    OPTIONAL_STRING,
    STRING,
    NamedSchema,
    array,
    closed_object,
    described,
    open_object,
)

_MESSAGE = described(STRING, "Human-readable; names the field.")
_CODE = described(STRING, "Stable error code in snake_case.")
_PATH = "Path of the field."
_OPENAI = open_object(
    {
        "message": _MESSAGE,
        "type": STRING,
        "param": described(OPTIONAL_STRING, _PATH),
        "code": _CODE,
        "attempts": array(OBJECT),
    },
    optional=["attempts"],
)
_ANTHROPIC = open_object(
    {
        "type": STRING,
        "message": _MESSAGE,
        "code": _CODE,
        "param": described(STRING, _PATH),
        "attempts": array(OBJECT),
    },
    optional=["code", "param", "attempts"],
)
_GOOGLE = open_object(
    {
        "code": described(INTEGER, "HTTP status."),
        "message": _MESSAGE,
        "status": described(STRING, "Name of the status, such as `INVALID_ARGUMENT`."),
        "details": array(OBJECT),
    }
)
_ENVELOPE = closed_object(
    {
        "code": {
            "type": "integer",
            "minimum": 40000,
            "description": "HTTP status times 100, plus an error number.",
        },
        "message": described(STRING, "Human-readable; names the location of the error."),
        "data": {"type": "object", "maxProperties": 0},
    }
)

ERRORS: Final[Mapping[ApiFormat, NamedSchema]] = {
    ApiFormat.OPENAI: NamedSchema("FormatAError", open_object({"error": _OPENAI})),
    ApiFormat.ANTHROPIC: NamedSchema(
        "FormatBError",
        open_object({"type": {"const": "error"}, "error": _ANTHROPIC, "request_id": STRING}),
    ),
    ApiFormat.GOOGLE: NamedSchema("GoogleError", open_object({"error": _GOOGLE})),
    ApiFormat.ENVELOPE: NamedSchema("articles.Error", _ENVELOPE),
}
