"""Fields of a request that a fallback step overrides, in any dialect.

A step is merged into the outer request and checked as a whole. It consists of the fields in which
the two differ.
"""

from collections.abc import Collection, Mapping
from typing import Any

from google.protobuf.message import Message
from pydantic import BaseModel

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import invalid


def check_step(
    parameters: Mapping[str, object],
    path: str,
    of_the_whole: Collection[str],
    lists: Collection[str],
) -> None:
    """Check the fields that a step overrides.

    Args:
        parameters: the fields.
        path: path of the parameters.
        of_the_whole: fields that no step can override.
        lists: fields that must not be empty, as a step can replace the request's list but not
            remove it.

    Raises:
        GatewayError: invalid, naming the field.
    """
    for field, value in parameters.items():
        place = f"{path}.{field}"
        if field in of_the_whole:
            raise invalid(place, f"{place}: cannot be overridden in a fallback step")
        if field in lists and value == []:
            raise invalid(place, f"{place}: must not be empty in a fallback step")


def given_fields(wire: BaseModel, of: type[BaseModel]) -> dict[str, Any]:
    """Return the fields of the type `of` that are not null in a body, and the unknown ones."""
    named = {field: getattr(wire, field) for field in of.model_fields}
    fields = named | (wire.model_extra or {})
    return {field: value for field, value in fields.items() if value is not None}


def keep_difference(step: GenerateRequest, whole: GenerateRequest) -> None:
    """Reduce a step to the fields in which it differs from the outer request."""
    if whole.HasField("extra") and not step.HasField("extra"):
        # The step has none of the request's unknown fields.
        step.extra.dialect, step.extra.json = whole.extra.dialect, b"{}"
    _clear_equal(step, whole)


def _clear_equal(changed: Message, whole: Message) -> None:
    for descriptor, value in whole.ListFields():
        if value == getattr(changed, descriptor.name):
            changed.ClearField(descriptor.name)
