"""Anthropic's batch service of messages.

Source: Anthropic's API reference, "Message Batches".
"""

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from services.inference.providers.batches import (
    Headers,
    Requests,
    call,
    escaped,
    id_in,
    in_one_line,
    lines_of,
)
from services.inference.providers.failures import broken_answer
from services.inference.providers.upstream import Upstream

_MESSAGES: Final = "/v1/messages"
_BATCHES: Final = "/v1/messages/batches"
_SUCCEEDED: Final = "succeeded"


class _Batch(msgspec.Struct):
    processing_status: str


class _Outcome(msgspec.Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw(b"")


class _Result(msgspec.Struct):
    custom_id: str
    result: _Outcome


_BATCH = msgspec.json.Decoder(_Batch)
_RESULT = msgspec.json.Decoder(_Result)


class AnthropicBatches:
    """The batch service of a server; see `BatchApi`.

    Args:
        upstream: the server; its base URL ends before `/v1`.
    """

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    def takes(self, path: str, headers: Headers) -> bool:
        """Return whether the service runs calls of a path."""
        return path == _MESSAGES

    async def create(self, name: str, path: str, headers: Headers, requests: Requests) -> str:
        """Create a batch, and return its id; it has no place for a name."""
        items = [
            b'{"custom_id":"' + custom_id.encode() + b'","params":' + in_one_line(body) + b"}"
            for custom_id, body in requests
        ]
        body = b'{"requests":[' + b",".join(items) + b"]}"
        del items
        created = await self._upstream.post(_BATCHES, body, headers=headers)
        return id_in(created, self._upstream)

    async def find(self, name: str, since_s: float) -> str:
        """Return "": batches have no names."""
        return ""

    async def has_ended(self, batch_id: str) -> bool:
        """Return whether a batch has ended."""
        body = await call(self._upstream, "GET", self._path(batch_id))
        try:
            return _BATCH.decode(body).processing_status == "ended"
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._broken(body) from None

    async def answers(self, batch_id: str) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the messages among the results."""
        upstream = self._upstream
        path = f"{self._path(batch_id)}/results"
        async with upstream.response(path, b"", method="GET") as response:
            async for line in lines_of(response.body, upstream.limits):
                try:
                    result = _RESULT.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    raise self._broken(line) from None
                if result.result.type == _SUCCEEDED:
                    yield result.custom_id, bytes(result.result.message)

    async def cancel(self, batch_id: str) -> None:
        """Cancel a batch."""
        await self._upstream.post(f"{self._path(batch_id)}/cancel", b"")

    async def delete(self, batch_id: str) -> None:
        """Delete a batch, with its results."""
        await call(self._upstream, "DELETE", self._path(batch_id))

    def _path(self, batch_id: str) -> str:
        return f"{_BATCHES}/{escaped(batch_id)}"

    def _broken(self, body: bytes) -> Exception:
        return broken_answer(self._upstream.name, "returned an invalid batch", body)
