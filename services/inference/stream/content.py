"""The first content of an answer, which ends the time that a model has to begin. Pure."""

from collections.abc import Iterable

from gateway.inference.v1.inference_pb2 import Event


def is_content(event: Event) -> bool:
    """Return whether an event is a part of the answer's content, or its end.

    The start of an empty text or thinking block is not, nor are fields of the answer as a whole:
    providers send them before they generate anything.
    """
    kind = event.WhichOneof("kind")
    if kind == "block_start":
        block = event.block_start
        return block.WhichOneof("kind") not in ("text", "thinking") or bool(
            block.text or block.thinking.text
        )
    if kind == "extra_fields":
        return event.extra_fields.HasField("message")
    return kind not in ("start", "usage", "unknown")


def has_content(batch: Iterable[Event]) -> bool:
    """Return whether a batch has a part of the answer's content, or its end."""
    return any(map(is_content, batch))
