"""The JSON of a caller's file storage, with its schema."""

from typing import Final

import orjson

from facade.credentials import ApiFormat, Format
from facade.dialects.json_schemas import INTEGER, described, open_object
from gateway.files.v1.files_pb2 import GetStorageResponse

STORAGE: Final = open_object(
    {
        "object": {"const": "storage", "description": "OpenAI format only."},
        "type": {"const": "storage", "description": "Anthropic format only."},
        "files": described(INTEGER, "Number of files, including those of other users in the team."),
        "used_bytes": INTEGER,
        "quota_bytes": described(INTEGER, "Maximum bytes that the plan allows."),
    },
    optional=["object", "type"],
)


def render(stored: GetStorageResponse, api_format: Format) -> bytes:
    """Return the JSON of the caller's file storage."""
    return orjson.dumps(
        {
            "object" if api_format is ApiFormat.OPENAI else "type": "storage",
            "files": stored.files,
            "used_bytes": stored.used_bytes,
            "quota_bytes": stored.quota_bytes,
        }
    )
