"""Batches of entries, and what is stored of an entry. Pure."""

from collections.abc import Container, Iterable, Sequence
from itertools import islice

from gateway.requests.v1.requests_pb2 import LoggedRequest
from services.common.messages.request_entry import RequestEntry

# Entries of a batch; binding their values blocks the event loop for less than a millisecond.
_AT_ONCE = 100
_BYTES_AT_ONCE = 2 << 20  # of bodies, which take several times as much while they are rendered


def first_batch(entries: Iterable[RequestEntry]) -> Sequence[RequestEntry]:
    """Return the first entries, as many as one batch has."""
    batch: list[RequestEntry] = []
    size = 0
    for entry in islice(entries, _AT_ONCE):
        for body in (entry.request, entry.response):
            size += 0 if body is None else len(body.content)
        if batch and size > _BYTES_AT_ONCE:
            break
        batch.append(entry)
    return batch


def completed(entry: RequestEntry, ids_with_bodies: Container[str]) -> LoggedRequest:
    """Return what is stored of an entry, with its usage if that is known."""
    logged = entry.logged
    assert logged is not None, "it has ended"
    logged.has_bodies = logged.id in ids_with_bodies
    if entry.has_usage:
        logged.model, logged.provider = entry.model, entry.provider
        logged.attempts = entry.attempts
        logged.input_tokens, logged.output_tokens = entry.input_tokens, entry.output_tokens
        if entry.cost_pusd is not None:
            logged.cost_pusd = entry.cost_pusd
    return logged
