"""OpenAI's batch service, and compatible ones.

Source: OpenAI's API reference, "Batch" and "Files".
"""

from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Final

import msgspec
import orjson

from services.common.ids import IdGenerator, new_id
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
from services.inference.providers.openai.forms import FormField, form
from services.inference.providers.upstream import Upstream

# The paths of calls, and what the lines of a file call them.
_ENDPOINTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "/chat/completions": "/v1/chat/completions",
        "/responses": "/v1/responses",
        "/embeddings": "/v1/embeddings",
    }
)
# The field of a batch's metadata that has its name.
_NAME: Final = "gateway_batch"
_ENDED: Final = frozenset({"failed", "completed", "expired", "cancelled"})
_PAGE: Final = 100
_MAX_PAGES: Final = 20
_OK: Final = 200


class _Batch(msgspec.Struct):
    id: str
    status: str = ""
    created_at: float = 0
    input_file_id: str | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    metadata: dict[str, str] | None = None


class _Page(msgspec.Struct):
    data: list[_Batch]
    has_more: bool = False


class _Response(msgspec.Struct):
    status_code: int
    body: msgspec.Raw


class _Result(msgspec.Struct):
    custom_id: str
    response: _Response | None = None


_BATCH = msgspec.json.Decoder(_Batch)
_BATCHES = msgspec.json.Decoder(_Page)
_RESULT = msgspec.json.Decoder(_Result)


class OpenAIBatches:
    """The batch service of a server; see `BatchApi`.

    Args:
        upstream: the server.
        new_id: makes the boundaries of forms.
    """

    def __init__(self, upstream: Upstream, new_id: IdGenerator = new_id) -> None:
        self._upstream = upstream
        self._new_id = new_id

    def takes(self, path: str, headers: Headers) -> bool:
        """Return whether the service runs calls of a path; it does not pass headers on."""
        return path in _ENDPOINTS and not headers

    async def create(self, name: str, path: str, headers: Headers, requests: Requests) -> str:
        """Upload the file of a batch, create the batch, and return its id."""
        upstream, endpoint = self._upstream, _ENDPOINTS[path]
        head = b'","method":"POST","url":"' + endpoint.encode() + b'","body":'
        lines = [
            b'{"custom_id":"' + custom_id.encode() + head + in_one_line(body) + b"}\n"
            for custom_id, body in requests
        ]
        fields = (
            FormField("purpose", b"batch"),
            FormField("file", b"".join(lines), f"{name}.jsonl", "application/jsonl"),
        )
        del lines
        boundary = self._new_id("form-")
        kind = f"multipart/form-data; boundary={boundary}"
        file_id = id_in(
            await upstream.post("/files", form(fields, boundary), content_type=kind), upstream
        )
        del fields
        batch = {
            "input_file_id": file_id,
            "endpoint": endpoint,
            "completion_window": "24h",
            "metadata": {_NAME: name},
        }
        return id_in(await upstream.post("/batches", orjson.dumps(batch)), upstream)

    async def find(self, name: str, since_s: float) -> str:
        """Return the id of the batch with a name in its metadata; "" if there is none."""
        after = ""
        for _ in range(_MAX_PAGES):
            body = await call(self._upstream, "GET", f"/batches?limit={_PAGE}{after}")
            try:
                page = _BATCHES.decode(body)
            except (msgspec.DecodeError, UnicodeDecodeError):
                raise self._broken(body) from None
            for batch in page.data:
                if (batch.metadata or {}).get(_NAME) == name:
                    return batch.id
            if not (page.has_more and page.data) or page.data[-1].created_at < since_s:
                break
            after = f"&after={escaped(page.data[-1].id)}"
        return ""

    async def has_ended(self, batch_id: str) -> bool:
        """Return whether a batch has ended."""
        return (await self._batch(batch_id)).status in _ENDED

    async def answers(self, batch_id: str) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the answers in the file of results."""
        file_id = (await self._batch(batch_id)).output_file_id
        if not file_id:
            return
        upstream = self._upstream
        path = f"/files/{escaped(file_id)}/content"
        async with upstream.response(path, b"", method="GET") as response:
            async for line in lines_of(response.body, upstream.limits):
                try:
                    result = _RESULT.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    raise self._broken(line) from None
                if result.response is not None and result.response.status_code == _OK:
                    yield result.custom_id, bytes(result.response.body)

    async def cancel(self, batch_id: str) -> None:
        """Cancel a batch."""
        await self._upstream.post(f"/batches/{escaped(batch_id)}/cancel", b"")

    async def delete(self, batch_id: str) -> None:
        """Delete the files of a batch; batches stay."""
        batch = await self._batch(batch_id)
        for file_id in (batch.input_file_id, batch.output_file_id, batch.error_file_id):
            if file_id:
                await call(self._upstream, "DELETE", f"/files/{escaped(file_id)}")

    async def _batch(self, batch_id: str) -> _Batch:
        body = await call(self._upstream, "GET", f"/batches/{escaped(batch_id)}")
        try:
            return _BATCH.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._broken(body) from None

    def _broken(self, body: bytes) -> Exception:
        return broken_answer(self._upstream.name, "returned an invalid batch", body)
