"""Anthropic's batch service of messages.

Source: Anthropic's API reference, "Message Batches".
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import datetime
from typing import Final

import msgspec

from gateway.errors.v1 import errors_pb2
from services.common.errors import UpstreamError
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
_ENDED: Final = "ended"
_PAGE: Final = 100
_MAX_PAGES: Final = 50
# The longest time from the beginning of an attempt to create a batch until it is listed.
_CREATED_WITHIN_S: Final = 3_600


class _Batch(msgspec.Struct):
    id: str
    processing_status: str
    created_at: datetime | None = None


class _Page(msgspec.Struct):
    data: list[_Batch]
    has_more: bool = False


class _Outcome(msgspec.Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw(b"")


class _Result(msgspec.Struct):
    custom_id: str
    result: _Outcome


_BATCH = msgspec.json.Decoder(_Batch)
_BATCHES_PAGE = msgspec.json.Decoder(_Page)
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
        """Create a batch, and return its id; it has no name, so that its requests have it."""
        head = b'{"custom_id":"' + name.encode() + b"-"
        items = [
            head + custom_id.encode() + b'","params":' + in_one_line(body) + b"}"
            for custom_id, body in requests
        ]
        body = b'{"requests":[' + b",".join(items) + b"]}"
        del items
        created = await self._upstream.post(_BATCHES, body, headers=headers)
        return id_in(created, self._upstream)

    async def find(self, name: str, since_s: float) -> str:
        """Return the id of the batch whose requests have a name; "" if there is none.

        Only the results of a batch show its requests.

        Raises:
            UpstreamError: it may be one of the batches that have not ended.
        """
        after, may_be_open = "", False
        for _ in range(_MAX_PAGES):
            body = await call(self._upstream, "GET", f"{_BATCHES}?limit={_PAGE}{after}")
            try:
                page = _BATCHES_PAGE.decode(body)
            except (msgspec.DecodeError, UnicodeDecodeError):
                raise self._broken(body) from None
            ages = [_age_s(batch, since_s) for batch in page.data]
            for batch, age_s in zip(page.data, ages, strict=True):
                if not 0 <= age_s <= _CREATED_WITHIN_S:
                    continue
                if batch.processing_status != _ENDED:
                    may_be_open = True
                elif await self._has_requests_of(batch.id, name):
                    return batch.id
            if not (page.has_more and page.data) or min(ages) < 0:
                break
            after = f"&after_id={escaped(page.data[-1].id)}"
        if may_be_open:
            message = f"the provider {self._upstream.name} does not show yet which batch is which"
            raise UpstreamError(errors_pb2.REASON_UPSTREAM_ERROR, message)
        return ""

    async def _has_requests_of(self, batch_id: str, name: str) -> bool:
        """Return whether the first result of a batch is of a request with a name."""
        async with aclosing(self._results(batch_id)) as results:
            async for result in results:
                return result.custom_id.startswith(f"{name}-")
        return False

    async def has_ended(self, batch_id: str) -> bool:
        """Return whether a batch has ended."""
        body = await call(self._upstream, "GET", self._path(batch_id))
        try:
            return _BATCH.decode(body).processing_status == _ENDED
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._broken(body) from None

    async def answers(self, batch_id: str) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the messages among the results."""
        async for result in self._results(batch_id):
            if result.result.type == _SUCCEEDED:
                yield result.custom_id.rpartition("-")[2], bytes(result.result.message)

    async def _results(self, batch_id: str) -> AsyncGenerator[_Result, None]:
        upstream = self._upstream
        path = f"{self._path(batch_id)}/results"
        async with upstream.response(path, b"", method="GET") as response:
            async for line in lines_of(response.body, upstream.limits):
                try:
                    result = _RESULT.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    raise self._broken(line) from None
                yield result

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


def _age_s(batch: _Batch, since_s: float) -> float:
    """Return how long after a time in Unix seconds a batch was created; 0 if that is not known."""
    return 0.0 if batch.created_at is None else batch.created_at.timestamp() - since_s
