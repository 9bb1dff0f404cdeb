"""The first content of an answer: what ends the time that a model has to begin. Pure."""

from collections.abc import Iterable

from gateway.inference.v1.inference_pb2 import Event


def is_content(event: Event) -> bool:
    """Return whether an event holds some of the answer, or its end.

    Providers announce a block of text before they have any, and tell of an answer as a whole
    before they say anything.
    """
    kind = event.WhichOneof("kind")
    if kind == "block_start":
        block = event.block_start
        return block.WhichOneof("kind") not in ("text", "thinking") or bool(
            block.text or block.thinking.text
        )
    if kind == "further":
        return event.further.HasField("message")
    return kind not in ("start", "usage", "unknown")


def has_content(batch: Iterable[Event]) -> bool:
    """Return whether a batch holds some of the answer, or its end."""
    return any(map(is_content, batch))
