"""JSON schemas of batches in OpenAI's format."""

from typing import Final

from facade.dialects.json_schemas import (
    BOOLEAN,
    COUNT,
    NAME,
    OPTIONAL_STRING,
    STRING,
    UNIX_SECONDS,
    JsonObject,
    NamedSchema,
    array,
    open_object,
)

_OPTIONAL_SECONDS: Final[JsonObject] = {**UNIX_SECONDS, "type": ["integer", "null"]}
BATCH: Final = NamedSchema(
    "Batch",
    open_object(
        {
            "id": NAME,
            "object": {"const": "batch"},
            "endpoint": NAME,
            "errors": {"type": ["object", "null"]},
            "input_file_id": NAME,
            "completion_window": {"const": "24h"},
            "status": {
                "enum": [
                    *("validating", "failed", "in_progress", "finalizing"),
                    *("completed", "expired", "cancelling", "cancelled"),
                ]
            },
            "output_file_id": OPTIONAL_STRING,
            "error_file_id": OPTIONAL_STRING,
            "created_at": UNIX_SECONDS,
            "expires_at": UNIX_SECONDS,
            "completed_at": _OPTIONAL_SECONDS,
            "request_counts": open_object({"total": COUNT, "completed": COUNT, "failed": COUNT}),
            "metadata": {"type": ["object", "null"], "additionalProperties": STRING},
        }
    ),
)
BATCHES: Final = NamedSchema(
    "Batches",
    open_object(
        {
            "object": {"const": "list"},
            "data": array(BATCH.ref),
            "first_id": OPTIONAL_STRING,
            "last_id": OPTIONAL_STRING,
            "has_more": BOOLEAN,
        }
    ),
)
LIMIT: Final[JsonObject] = {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}
