"""JSON schemas of batches of messages in Anthropic's format."""

from typing import Final

from facade.dialects.json_schemas import (
    BOOLEAN,
    COUNT,
    DATE_TIME,
    NAME,
    OPTIONAL_STRING,
    JsonObject,
    NamedSchema,
    array,
    open_object,
)

_OPTIONAL_TIME: Final[JsonObject] = {**DATE_TIME, "type": ["string", "null"]}
BATCH: Final = NamedSchema(
    "MessageBatch",
    open_object(
        {
            "id": NAME,
            "type": {"const": "message_batch"},
            "processing_status": {"enum": ["in_progress", "canceling", "ended"]},
            "request_counts": open_object(
                dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), COUNT)
            ),
            "created_at": DATE_TIME,
            "expires_at": DATE_TIME,
            "ended_at": _OPTIONAL_TIME,
            "results_url": OPTIONAL_STRING,
        }
    ),
)
BATCHES: Final = NamedSchema(
    "MessageBatches",
    open_object(
        {
            "data": array(BATCH.ref),
            "has_more": BOOLEAN,
            "first_id": OPTIONAL_STRING,
            "last_id": OPTIONAL_STRING,
        }
    ),
)
DELETED: Final = NamedSchema(
    "DeletedMessageBatch",
    open_object({"id": NAME, "type": {"const": "message_batch_deleted"}}),
)
RESULT: Final = NamedSchema(
    "MessageBatchResult",
    open_object({"custom_id": NAME, "result": open_object({"type": NAME})}),
)
LIMIT: Final[JsonObject] = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 20}
