"""A request whose conversation is translated to the canonical form only when that is needed.

Within a process, a facade passes a `LazyRequest` in place of a `GenerateRequest`. A provider of the
caller's dialect is sent the validated conversation as the caller wrote it. A provider of another
dialect writes its body from the conversation's plain form. In both cases no canonical messages and
tools are built. Code that needs them calls `complete`; serialization for gRPC does so too. The
conversation of a `LazyRequest` obeys all rules of the proto.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

import orjson

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.messages.plain_message import PlainMessage, PlainRequest

# Maximum bytes of a small body: parsed JSON takes several times the memory of its text.
MAX_SMALL: Final = 1 << 20

# Fields of a body in the caller's dialect by name: `messages`, and optionally `tools` and `system`,
# as JSON that the gateway sends to a provider unchanged.
VerbatimFields = Mapping[str, bytes]


class LazyRequest:
    """A request with its conversation in the caller's dialect, which subclasses translate.

    Args:
        request: the canonical request without messages and tools.
        fields: the parsed JSON of the conversation; numbers have 64 bits and a JSON form.
        size: bytes of the body.
        requires_official_api: see the attribute.
        has_whole_body: see the attribute.

    Attributes:
        request: the canonical request without messages and tools, which `complete` adds.
        fields: see the argument.
        is_small: whether work on the conversation takes so little time that it needs no thread, and
            its parsed JSON so little memory that it is kept.
        requires_official_api: whether only the API of the dialect's author accepts the conversation
            as it is; compatible servers support fewer forms.
        has_whole_body: whether `fields` are all fields of the body but `model` and `stream`, and
            `request` contains only the fields that routing needs.
    """

    is_small = True

    def __init__(
        self,
        request: GenerateRequest,
        fields: Mapping[str, object],
        *,
        size: int,
        requires_official_api: bool,
        has_whole_body: bool = False,
    ) -> None:
        self.request = request
        self.requires_official_api = requires_official_api
        self.has_whole_body = has_whole_body
        self.fields = fields
        self._is_complete = False
        self._size = size
        self._plain: PlainRequest | None = None
        self._is_plain_read = False
        self._written: dict[str, bytes] = {}

    def add_conversation(self, request: GenerateRequest) -> None:
        """Add the messages and tools to the canonical request, and settings that it lacks.

        Raises:
            GatewayError: the conversation is invalid.
        """

    def read_plain(self) -> PlainRequest | None:
        """Return the plain form of the conversation, or None if it has none; see `plain`."""
        return None

    def beginning(self) -> Iterable[PlainMessage]:
        """Return the instructions and messages up to the first user message."""
        return ()

    @property
    def plain(self) -> PlainRequest | None:
        """The plain form of the conversation, or None if it uses features of one dialect only."""
        # Usually read twice; `cached_property` takes a lock.
        if not self._is_plain_read:
            self._is_plain_read = True
            self._plain = self.read_plain()
        return self._plain

    @cached_property
    def verbatim(self) -> VerbatimFields:
        """The conversation in JSON."""
        return {name: self.json_of(name) for name in self.fields}

    def json_of(self, name: str) -> bytes:
        """Return one of the `fields` as JSON, b"" if it is missing."""
        json = self._written.get(name)
        if json is None:
            value = self.fields.get(name)
            if value is None:
                return b""
            json = self._written[name] = orjson.dumps(value)
        return json

    def keep_written(self, written: Mapping[str, bytes]) -> None:
        """Keep the JSON of some of the `fields`, for `json_of`."""
        self._written.update(written)

    def writable(self) -> Mapping[str, object]:
        """Return the `fields` for `orjson.dumps`; those that are already serialized are reused."""
        if not self._written:
            return self.fields
        fragments = {name: orjson.Fragment(json) for name, json in self._written.items()}
        return {**self.fields, **fragments}

    def complete(self) -> GenerateRequest:
        """Return the request with its messages and tools.

        Raises:
            GatewayError: the conversation is invalid; each later call raises it too.
        """
        if not self._is_complete:
            self.add_conversation(self.request)
            self._is_complete = True
        return self.request

    # The methods of protobuf messages that code which sends messages calls.

    def ByteSize(self) -> int:
        """Return the size of the body in bytes: about that of the complete request."""
        return self._size

    def SerializeToString(self) -> bytes:
        """Return the complete request, serialized."""
        return self.complete().SerializeToString()
