"""What is stored of the bodies of an entry: redacted and rendered. Pure."""

from collections.abc import Callable

from gateway.requests.v1.requests_pb2 import RequestBodies
from services.common.messages.request_entry import RequestEntry
from services.request_log.redaction import Redactor

# Renders the bytes of a request's body, and of its response as they were captured: both as texts,
# and what is searched of them.
RenderBodies = Callable[[bytes, bytes], tuple[str, str, str]]


def bodies_of(entry: RequestEntry, render: RenderBodies, redactor: Redactor) -> RequestBodies:
    """Return what is stored of the bodies of an entry that has a request's body."""
    assert entry.logged is not None and entry.request is not None and entry.response is not None
    texts = render(bytes(entry.request.content), bytes(entry.response.content))
    # What is searched is redacted too: in a body, a secret may be written with escapes.
    request, response, searched = map(redactor.redacted, texts)
    return RequestBodies(
        id=entry.logged.id,
        request=request,
        response=response,
        text=searched,
        is_request_truncated=entry.request.is_cut,
        is_response_truncated=entry.response.is_cut,
    )
