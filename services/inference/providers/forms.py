"""What OpenAI's `response_format` says that the canonical request has no name for. Pure.

The facade keeps such a form as a whole, for providers of its own dialect.
"""

from typing import Any

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import unsupported

NAME = "response_format"

_FIELDS = frozenset({"type", "json_schema"})
_SCHEMA_FIELDS = frozenset({"name", "description", "schema", "strict"})


def unnamed_fields(form: Any, request: GenerateRequest) -> list[str]:
    """Return the paths of a form's fields that a provider of another dialect cannot be sent.

    Raises:
        GatewayError: unsupported, when the form itself is one that only its dialect knows.
    """
    if not (isinstance(form, dict) and request.HasField("output_format")):
        raise unsupported(NAME, f"{NAME}: this model's provider has no answers of this form")
    given = form.get("json_schema")
    described = given if isinstance(given, dict) else {}
    return [
        *(f"{NAME}.{name}" for name in form if name not in _FIELDS),
        *(f"{NAME}.json_schema.{name}" for name in described if name not in _SCHEMA_FIELDS),
    ]
