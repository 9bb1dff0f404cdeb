"""The batch service of Google's Gemini API, with its requests in the batch.

Source: Google's API reference, "Batch API" (`batchGenerateContent`, `batches`). The requests of a
batch have at most 20 MB, and its answers are part of the batch, which is read in pieces.
"""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final
from urllib.parse import quote

import msgspec
import orjson

from services.inference.providers.batches import Headers, Requests, call, escaped, pieces_of
from services.inference.providers.failures import broken_answer
from services.inference.providers.gemini.inlined import AnswerCutter
from services.inference.providers.upstream import Upstream

_METHOD: Final = ":generateContent"
_BATCH_METHOD: Final = ":batchGenerateContent"
_BATCHES: Final = "/batches"
_ENDED: Final = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED"})
# A page has the answers of its batches.
_PAGE: Final = 10
_MAX_PAGES: Final = 50


class _Key(msgspec.Struct):
    key: str = ""


class _Inlined(msgspec.Struct):
    metadata: _Key | None = None
    response: msgspec.Raw = msgspec.Raw(b"null")


class _Batch(msgspec.Struct, rename="camel"):
    state: str = ""
    display_name: str = ""
    create_time: str = ""


class _Operation(msgspec.Struct):
    name: str
    metadata: _Batch = msgspec.field(default_factory=_Batch)
    done: bool = False


class _Page(msgspec.Struct, rename="camel"):
    operations: list[_Operation] = []
    next_page_token: str = ""


_INLINED = msgspec.json.Decoder(_Inlined)
_OPERATION = msgspec.json.Decoder(_Operation)
_PAGES = msgspec.json.Decoder(_Page)


class GeminiBatches:
    """The batch service of a server; see `BatchApi`.

    Args:
        upstream: the server; its base URL ends before `/models`.
    """

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    def takes(self, path: str, headers: Headers) -> bool:
        """Return whether the service runs calls of a path; it does not pass headers on."""
        return path.startswith("/models/") and path.endswith(_METHOD) and not headers

    async def create(self, name: str, path: str, headers: Headers, requests: Requests) -> str:
        """Create a batch, and return its id."""
        items = [
            b'{"metadata":{"key":"' + key.encode() + b'"},"request":' + body + b"}"
            for key, body in requests
        ]
        head = b'{"batch":{"displayName":' + orjson.dumps(name)
        body = head + b',"inputConfig":{"requests":{"requests":[' + b",".join(items) + b"]}}}}"
        del items
        path = path.removesuffix(_METHOD) + _BATCH_METHOD
        return _id_of(self._operation(await self._upstream.post(path, body)))

    async def find(self, name: str, since_s: float) -> str:
        """Return the id of the batch whose display name is a name; "" if there is none."""
        token = ""
        for _ in range(_MAX_PAGES):
            body = await self._without_answers(f"{_BATCHES}?pageSize={_PAGE}{token}")
            try:
                page = _PAGES.decode(body)
            except (msgspec.DecodeError, UnicodeDecodeError):
                raise self._broken(body) from None
            for operation in page.operations:
                if operation.metadata.display_name == name:
                    return _id_of(operation)
            if not (page.next_page_token and page.operations):
                break
            if _created_at_s(page.operations[-1].metadata) < since_s:
                break
            token = f"&pageToken={quote(page.next_page_token, safe='')}"
        return ""

    async def has_ended(self, batch_id: str) -> bool:
        """Return whether a batch has ended."""
        operation = self._operation(await self._without_answers(self._path(batch_id)))
        return operation.done or operation.metadata.state.rpartition("_")[2] in _ENDED

    async def answers(self, batch_id: str) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the answers among the results."""
        cutter = AnswerCutter(self._upstream.limits.max_answer_bytes)
        async for item in self._answers(self._path(batch_id), cutter):
            try:
                result = _INLINED.decode(item)
            except (msgspec.DecodeError, UnicodeDecodeError):
                raise self._broken(item) from None
            if result.metadata is not None and bytes(result.response) != b"null":
                yield result.metadata.key, bytes(result.response)

    async def cancel(self, batch_id: str) -> None:
        """Cancel a batch."""
        await self._upstream.post(f"{self._path(batch_id)}:cancel", b"")

    async def delete(self, batch_id: str) -> None:
        """Delete a batch, with its results."""
        await call(self._upstream, "DELETE", self._path(batch_id))

    async def _without_answers(self, path: str) -> bytes:
        """Return the JSON at a path without the answers of its batches."""
        cutter = AnswerCutter(self._upstream.limits.max_answer_bytes)
        async for _ in self._answers(path, cutter):
            pass
        return cutter.rest

    async def _answers(self, path: str, cutter: AnswerCutter) -> AsyncIterator[bytes]:
        """Yield the answers of the batches at a path, of which few are held at a time."""
        upstream = self._upstream
        async with upstream.response(path, b"", method="GET") as response:
            async for piece in pieces_of(response.body, upstream.limits.stream_idle_s):
                for item in cutter.feed(piece):
                    yield item

    def _path(self, batch_id: str) -> str:
        return f"{_BATCHES}/{escaped(batch_id)}"

    def _operation(self, body: bytes) -> _Operation:
        try:
            return _OPERATION.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._broken(body) from None

    def _broken(self, body: bytes) -> Exception:
        return broken_answer(self._upstream.name, "returned an invalid batch", body)


def _id_of(operation: _Operation) -> str:
    return operation.name.removeprefix("batches/")


def _created_at_s(batch: _Batch) -> float:
    """Return when a batch was created, in Unix seconds; infinity if that is not known."""
    try:
        return datetime.fromisoformat(batch.create_time).timestamp()
    except ValueError:
        return float("inf")
