"""A request to generate whose conversation is translated when it is first needed.

Within a process a facade hands one over in place of a `GenerateRequest`. A provider that
speaks the caller's own dialect is sent the conversation as its caller wrote it, once it has
been checked, and one of another dialect what it writes from its plain form, so that nobody makes
canonical messages and tools of it. Whoever needs those completes the request; over gRPC it goes
complete. What a facade makes one of keeps to all rules
of the proto.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Final

import orjson

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.plain_request import PlainMessage, PlainRequest

# Bytes of a body up to which this is done: what a caller's JSON becomes when it is read takes
# several times as much memory, and is held until the request has been answered.
MAX_BODY: Final = 1 << 20

# Fields of a body in the caller's dialect, `messages` and perhaps `tools` and `system`, by
# their names: JSON without anything that the gateway would change on its way to a provider.
Source = Mapping[str, bytes]


class LazyRequest:
    """A request, and its conversation in the dialect of its caller.

    Attributes:
        request: all but its messages and tools, which `complete` adds.
        fields: as the argument.
        only_maker: whether only the dialect's own maker takes the conversation as it is;
            other servers know fewer forms.
        is_whole: whether `fields` are those of the whole body but for `model` and `stream`, and
            `request` has no more than what decides where it goes.
    """

    def __init__(
        self,
        request: GenerateRequest,
        fields: Mapping[str, object],
        add: Callable[[GenerateRequest], None],
        *,
        size: int,
        only_maker: bool,
        is_whole: bool = False,
        read_plain: Callable[[], PlainRequest | None] | None = None,
        read_beginning: Callable[[], Iterable[PlainMessage]] = tuple,
    ) -> None:
        """Return a request.

        Args:
            request: all but its messages and tools.
            fields: the conversation, as it was read from JSON; each number is one that JSON
                can say, of 64 bits.
            add: completes it.
            size: bytes of the body that it was read from.
            only_maker: see the attribute.
            is_whole: see the attribute.
            read_plain: returns its plain form, if it has one.
            read_beginning: returns the `beginning`.
        """
        self.request = request
        self.only_maker = only_maker
        self.is_whole = is_whole
        self.fields = fields
        self._add: Callable[[GenerateRequest], None] | None = add
        self._size = size
        self._plain: PlainRequest | None = None
        self._read_plain = read_plain
        self._read_beginning = read_beginning
        self._written: dict[str, bytes] = {}

    @property
    def plain(self) -> PlainRequest | None:
        """The conversation in the words of all dialects, if it has no others."""
        # Most requests that ask for it ask twice; a `cached_property` takes a lock.
        read, self._read_plain = self._read_plain, None
        if read is not None:
            self._plain = read()
        return self._plain

    def beginning(self) -> Iterable[PlainMessage]:
        """Return the texts of its instructions and messages, up to the first of a user."""
        return self._read_beginning()

    @cached_property
    def source(self) -> Source:
        """The conversation in JSON."""
        return {name: orjson.dumps(value) for name, value in self.fields.items()}

    def json_of(self, name: str) -> bytes:
        """Return one of the `fields` in JSON, b"" where it is not there."""
        json = self._written.get(name)
        if json is None:
            value = self.fields.get(name)
            if value is None:
                return b""
            json = self._written[name] = orjson.dumps(value)
        return json

    def writable(self) -> Mapping[str, object]:
        """Return the `fields` to be written as JSON, which some of them are by now."""
        if not self._written:
            return self.fields
        written = {name: orjson.Fragment(json) for name, json in self._written.items()}
        return {**self.fields, **written}

    def complete(self) -> GenerateRequest:
        """Return the request with its messages and tools.

        Raises:
            GatewayError: invalid, the conversation; so does each later call.
        """
        if self._add is not None:
            self._add(self.request)
            self._add = None
        return self.request

    # As protobuf calls them: code that sends messages calls these.

    def ByteSize(self) -> int:
        """Return about as many bytes as it would have complete, which are those of its body."""
        return self._size

    def SerializeToString(self) -> bytes:
        """Return the complete request, serialized."""
        return self.complete().SerializeToString()
