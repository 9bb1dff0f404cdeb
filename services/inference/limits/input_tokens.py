"""The most input tokens of a request, for its reservation. Pure.

`estimate` tends to be high for what it can read. Media at addresses are not read, nor are the pages
of a document in compressed objects; here they count as much as providers accept.
"""

from typing import Final

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Media
from gateway.inference.v1.inference_pb2 import EmbedRequest, ForwardRequest, GenerateRequest
from services.common.messages.lazy_request import LazyRequest
from services.inference.media import media_blocks
from services.inference.request.estimate import (
    PAGE,
    estimate_forwarded,
    estimate_input_tokens,
    estimate_inputs,
    estimate_lazy,
    estimate_media,
)

# A request that is admitted.
Sent = GenerateRequest | LazyRequest | EmbedRequest | ForwardRequest

# Most providers read at most 100 pages of a document; an hour of a recording has about as many
# tokens as these.
_PAGES: Final = 100
_RECORDING: Final = 120_000
_BYTES_A_PACKED_PAGE: Final = 4_000


def most_input_tokens(sent: Sent) -> int:
    """Return an estimate of the most input tokens of a request."""
    if isinstance(sent, EmbedRequest):
        return estimate_inputs(sent)
    if isinstance(sent, ForwardRequest):
        return estimate_forwarded(sent)
    if isinstance(sent, LazyRequest):
        return estimate_lazy(sent)  # its conversation is only text
    media_tokens = sum(_more(block.media) for block in media_blocks(sent.messages))
    return estimate_input_tokens(sent) + media_tokens


def _more(media: Media) -> int:
    """Return the tokens that a medium may have beyond its estimate."""
    is_document = media.kind == conversation_pb2.MEDIA_KIND_DOCUMENT
    if media.WhichOneof("source") == "data":
        if not is_document or b"/ObjStm" not in media.data:
            return 0
        max_tokens = PAGE * (len(media.data) // _BYTES_A_PACKED_PAGE + 1)
    elif media.kind == conversation_pb2.MEDIA_KIND_IMAGE:
        return 0
    else:
        max_tokens = PAGE * _PAGES if is_document else _RECORDING
    return max(0, max_tokens - estimate_media(media))
