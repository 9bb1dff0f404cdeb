"""Batch services of providers, and what they have in common.

Their requests have the paths and bodies of single ones. Only complete answers are read from the
results: whatever a service did not answer is run by the gateway's own workers.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Protocol
from urllib.parse import quote

import msgspec

from services.common.http import ResponseBody, TooLargeError
from services.common.settings import Limits
from services.inference.providers.connection_failures import connection_failure
from services.inference.providers.failures import broken_answer
from services.inference.providers.upstream import Upstream

# Bytes of the results of a batch at most, which are read in pieces.
MAX_RESULTS = 4 << 30
# Ids and bodies of requests.
Requests = Sequence[tuple[str, bytes]]
Headers = tuple[tuple[str, str], ...]


class BatchApi(Protocol):
    """The batch service of one provider; its methods raise UpstreamError if the provider fails."""

    def takes(self, path: str, headers: Headers) -> bool:
        """Return whether the service runs calls of a path, with such headers."""

    async def create(self, name: str, path: str, headers: Headers, requests: Requests) -> str:
        """Create a batch, and return its id.

        Args:
            name: names the batch, for `find`.
            path: the path of all calls.
            headers: the headers of all calls.
            requests: the requests; their ids have at most 64 letters and digits.
        """

    async def find(self, name: str, since_s: float) -> str:
        """Return the id of the batch with a name; "" if there is none.

        It raises UpstreamError while that is not known.

        Args:
            name: the name that `create` was given.
            since_s: a time before its creation, in Unix seconds.
        """

    async def has_ended(self, batch_id: str) -> bool:
        """Return whether a batch has ended, for any reason."""

    def answers(self, batch_id: str) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the id of each request that was answered, with the body of the answer."""

    async def cancel(self, batch_id: str) -> None:
        """Cancel a batch."""

    async def delete(self, batch_id: str) -> None:
        """Delete a batch that has ended, with its files."""


class _Identified(msgspec.Struct):
    id: str


_ID = msgspec.json.Decoder(_Identified)


def id_in(body: bytes, upstream: Upstream) -> str:
    """Return the id of the object in a response.

    Raises:
        UpstreamError: it has none.
    """
    try:
        return _ID.decode(body).id
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise broken_answer(upstream.name, "returned an object without an id", body) from None


async def call(upstream: Upstream, method: str, path: str) -> bytes:
    """Send a request without a body, and return the body of a 2xx response.

    Raises:
        UpstreamError: the provider failed, or took more than `limits.step_timeout_s`.
    """
    try:
        async with (
            asyncio.timeout(upstream.limits.step_timeout_s),
            upstream.response(path, b"", method=method) as response,
        ):
            return await response.body.whole()
    except TimeoutError as error:
        raise connection_failure(upstream.name, error, upstream.limits, ()) from error


def escaped(object_id: str) -> str:
    """Return an id as part of a path."""
    return quote(object_id, safe="")


def in_one_line(body: bytes) -> bytes:
    """Return JSON without line breaks, which it has between its tokens alone."""
    return body.replace(b"\n", b" ").replace(b"\r", b" ")


async def pieces_of(body: ResponseBody, idle_s: float) -> AsyncIterator[bytes]:
    """Yield the pieces of a response of up to `MAX_RESULTS` bytes.

    Args:
        body: the body of the response.
        idle_s: maximum seconds of silence.

    Raises:
        HttpError: as `ResponseBody.read`.
        TimeoutError: the server is silent for too long.
    """
    body.allow(MAX_RESULTS)
    while True:
        async with asyncio.timeout(idle_s):
            piece = await body.read()
        if not piece:
            return
        yield piece


async def lines_of(body: ResponseBody, limits: Limits) -> AsyncIterator[bytes]:
    """Yield the lines of a response that are not empty.

    Args:
        body: the body of the response, of up to `MAX_RESULTS` bytes.
        limits: `stream_idle_s` bounds a silence, and `max_answer_bytes` a line.

    Raises:
        HttpError: as `ResponseBody.read`; a line is too long.
        TimeoutError: the server is silent for too long.
    """
    parts: list[bytes] = []
    size = 0
    async for piece in pieces_of(body, limits.stream_idle_s):
        first, *others = piece.split(b"\n")
        parts.append(first)
        size = len(others[-1]) if others else size + len(first)
        if size > limits.max_answer_bytes:
            raise TooLargeError
        for each in others:
            if line := b"".join(parts).strip():
                yield line
            parts = [each]
    if line := b"".join(parts).strip():
        yield line
