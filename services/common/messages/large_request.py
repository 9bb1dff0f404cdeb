"""A serialized `GenerateRequest` in parts that are parsed one at a time.

Parsing holds the GIL and thus blocks the event loop: for 40 ms with a request of 100,000 messages.
Between two parts the event loop can run.
"""

from collections.abc import Iterable

from gateway.inference.v1.inference_pb2 import EmbedRequest, ForwardRequest, GenerateRequest

# Messages in a part, which take 1 ms to parse.
_MESSAGES = 2_000


class LargeRequest:
    """A serialized request, which a facade passes on in place of a `GenerateRequest`."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        """Create a request from the parts that `serialize` returned."""
        self._parts = list(parts)
        self._size = sum(map(len, self._parts))

    def parse(self) -> GenerateRequest:
        """Parse the request and release its parts; to be called once, in a thread."""
        request = GenerateRequest()
        self._parts.reverse()
        while self._parts:
            request.MergeFromString(self._parts.pop())
        return request

    # The methods of protobuf messages that code which sends messages calls.

    def ByteSize(self) -> int:
        """Return the number of bytes of the serialized request."""
        return self._size

    def SerializeToString(self) -> bytes:
        """Return the serialized request."""
        return b"".join(self._parts)


def serialize(request: GenerateRequest | EmbedRequest | ForwardRequest) -> list[bytes]:
    """Serialize a request in parts, whose concatenation is the serialized request.

    The messages are removed from the request. Any other request is one part.
    """
    if not isinstance(request, GenerateRequest):
        return [request.SerializeToString()]
    messages = request.messages
    parts = [
        GenerateRequest(messages=messages[begin : begin + _MESSAGES]).SerializeToString()
        for begin in range(0, len(messages), _MESSAGES)
    ]
    request.ClearField("messages")
    return [*parts, request.SerializeToString()]
