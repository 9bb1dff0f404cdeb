"""When a model ends, for lists of models in either format."""

from datetime import UTC, datetime

from gateway.inference.v1.inference_pb2 import Model


def stage(model: Model) -> str:
    """Return the stage of a model's life, as Anthropic's API names it."""
    if model.retired:
        return "retired"
    return "deprecated" if model.deprecated_at or model.retires_at else "active"


def moment(seconds: int) -> str:
    """Return a time in RFC 3339, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def day(seconds: int) -> str | None:
    """Return the day of a time; None for 0."""
    return datetime.fromtimestamp(seconds, UTC).date().isoformat() if seconds else None
