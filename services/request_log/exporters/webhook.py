"""Exporter to a webhook, in the format of Langfuse's ingestion API."""

import asyncio
import logging
from collections.abc import Sequence

from yarl import URL

from services.common.http import Client, HttpError, fields, origin_of
from services.request_log.exporters.base import ExportedRequest, ExportError
from services.request_log.exporters.langfuse import langfuse_requests, rejected_entries

_TIMEOUT_S = 30.0
# Statuses after which the same request may succeed: timeouts, too many requests.
_PASSING = frozenset({408, 425, 429})
_SERVER_ERRORS = 500

log = logging.getLogger(__name__)


class WebhookExporter:
    """Posts batches to a URL.

    Args:
        client: sends requests; closed with the exporter.
        url: the URL.
        authorization: value of the Authorization header, or "".
    """

    name = "webhook"

    def __init__(self, client: Client, url: URL, authorization: str) -> None:
        self._client = client
        self._url = url
        headers = [("content-type", "application/json")]
        if authorization:
            headers.append(("authorization", authorization))
        self._fields = fields(headers)

    async def send(self, batch: Sequence[ExportedRequest]) -> int:
        """Post a batch, in one request or more; see `Exporter`."""
        bodies = await asyncio.to_thread(lambda: list(langfuse_requests(batch)))
        rejected: dict[str, str] = {}
        for body in bodies:
            rejected |= rejected_entries(await self._post(body))
        if rejected:
            log.error(
                "the webhook rejected entries of the request log",
                extra={"entries": len(rejected), "error": next(iter(rejected.values()))},
            )
        return min(len(rejected), len(batch))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _post(self, body: bytes) -> bytes:
        """Post a body; return that of the answer."""
        target = self._url.raw_path_qs
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                response = await self._client.send(
                    origin_of(self._url), "POST", target, self._fields, body
                )
                try:
                    answer = await response.body.whole()
                finally:
                    response.body.release()
        except TimeoutError:
            raise ExportError("the webhook has not answered in time") from None
        except HttpError as error:
            raise ExportError(f"the webhook cannot be reached: {error}") from error
        status = response.status
        if not 200 <= status < 300:
            is_passing = status >= _SERVER_ERRORS or status in _PASSING
            raise ExportError(f"the webhook answered {status}", is_passing=is_passing)
        return answer
