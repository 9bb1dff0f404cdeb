"""The parsed body of a request to a model, the same for all dialects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from facade.dialects.paths import SourceMap
from services.common.messages.lazy_request import LazyRequest

if TYPE_CHECKING:
    from facade.dialects.responses.state import ResponseState


@dataclass(slots=True)
class ParsedRequest:
    """The parsed body of a request.

    Attributes:
        request: a `GenerateRequest`, without messages and tools if `lazy` is set; an
            `EmbedRequest`; or a `LargeRequest` if another process has parsed the body.
        model: the model that the caller named.
        stream: whether the answer is streamed.
        source_map: positions of the messages and blocks in the body.
        lazy: the request with the conversation as the caller wrote it, if that can be sent so.
        include_usage: whether a chat's stream ends with a usage chunk.
        calls_functions: whether a chat has functions in place of tools.
        base64: whether the answer has vectors in base64.
        state: for responses, the storage options and the fields that the response echoes.
    """

    request: Any
    model: str
    stream: bool
    source_map: SourceMap
    lazy: LazyRequest | None = None
    include_usage: bool = False
    calls_functions: bool = False
    base64: bool = False
    state: ResponseState | None = None

    @property
    def message(self) -> Any:
        """The request to send to the service; `facade.inference_stub` accepts each of its types."""
        return self.lazy or self.request
