"""Serialization of cached answers. Pure.

An entry is the time at which its answer was generated, followed by the answer: a
`GenerateResponse`, or the events of a stream as one `StreamGenerateResponse`.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple, Self

from google.protobuf.message import DecodeError, Message

from gateway.inference.v1.inference_pb2 import (
    CACHE_STATUS_HIT,
    Event,
    GenerateResponse,
    RouteInfo,
    StreamGenerateResponse,
)

# Unix milliseconds.
_HEAD = struct.Struct(">Q")
# Events per batch of a replayed stream.
_BATCH = 64


class CachedAnswer(NamedTuple):
    """A cached answer.

    Attributes:
        made_ms: when the answer was generated, in Unix milliseconds.
        content: the serialized answer.
    """

    made_ms: int
    content: bytes

    @classmethod
    def parse(cls, entry: bytes) -> Self | None:
        """Parse an entry; return None if it is too short."""
        if len(entry) <= _HEAD.size:
            return None
        [made_ms] = _HEAD.unpack_from(entry)
        return cls(made_ms, entry[_HEAD.size :])

    def entry(self) -> bytes:
        """Return the answer as an entry."""
        return _HEAD.pack(self.made_ms) + self.content

    def age_s(self, now_ms: int) -> int:
        """Return the age in whole seconds, at least 0 as clocks of machines differ."""
        return max(0, now_ms - self.made_ms) // 1000

    def response(self, now_ms: int) -> GenerateResponse | None:
        """Return the whole answer, or None if it is damaged."""
        response = GenerateResponse()
        if not _is_parsed(response, self.content) or not response.HasField("route"):
            return None
        self._mark(response.route, now_ms)
        return response

    def batches(self, now_ms: int) -> list[Sequence[Event]] | None:
        """Return the events of a streamed answer, in batches, or None if they are damaged."""
        stream = StreamGenerateResponse()
        if not _is_parsed(stream, self.content):
            return None
        events = list(stream.events)
        if not events or not events[0].HasField("start"):
            return None
        self._mark(events[0].start.route, now_ms)
        return [events[index : index + _BATCH] for index in range(0, len(events), _BATCH)]

    def _mark(self, route: RouteInfo, now_ms: int) -> None:
        """Mark the route as a cache hit, and remove the attempts and headers of the original."""
        route.cache = CACHE_STATUS_HIT
        route.cache_age_s = self.age_s(now_ms)
        route.attempts = 0
        del route.failed_attempts[:]
        route.headers.clear()
        route.upstream_request_id = ""


def _is_parsed(message: Message, content: bytes) -> bool:
    try:
        message.ParseFromString(content)
    except DecodeError:
        return False
    return True
