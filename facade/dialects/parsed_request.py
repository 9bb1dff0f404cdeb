"""The parsed body of a request to a model, the same for all dialects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from facade.dialects.paths import SourceMap

if TYPE_CHECKING:
    from facade.dialects.responses.state import ResponseState


class StoredChat(NamedTuple):
    """A chat to store beside its answer.

    Attributes:
        messages: the messages, as JSON.
        metadata: the caller's metadata.
    """

    messages: str
    metadata: dict[str, str]


@dataclass(slots=True)
class ParsedRequest:
    """The parsed body of a request.

    Attributes:
        request: the request to send, which `facade.inference_stub` accepts: a `LazyRequest` if the
            conversation can be sent as the caller wrote it, else a `GenerateRequest`; an
            `EmbedRequest`; or a `LargeRequest` if another process has parsed the body.
        model: the model that the caller named.
        stream: whether the answer is streamed.
        source_map: positions of the messages and blocks in the body.
        include_usage: whether a chat's stream ends with a usage chunk.
        calls_functions: whether a chat has functions in place of tools.
        base64: whether the answer has vectors in base64.
        metadata: the caller's notes, not validated; None without any.
        end_user: the end user of the caller, or "".
        includes_thoughts: for `generateContent`, whether the answer has the model's thoughts.
        stored: for chats that are stored, what is stored beside the answer.
        state: for responses, the storage options and the fields that the response echoes.
    """

    request: Any
    model: str
    stream: bool
    source_map: SourceMap
    include_usage: bool = False
    calls_functions: bool = False
    base64: bool = False
    metadata: Mapping[str, Any] | None = None
    end_user: str = ""
    includes_thoughts: bool = False
    stored: StoredChat | None = None
    state: ResponseState | None = None
