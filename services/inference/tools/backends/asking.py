"""Requests to search backends, with their limits and failures."""

import asyncio
import base64
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import orjson
from yarl import URL

from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Reason
from services.common import http
from services.common.errors import GatewayError

# Advice to the operator, by HTTP status.
CHECK_KEY = "its key (tools.web_search.api_key or api_key_env)"

_MAX_ANSWER = 2 << 20
_MAX_WAIT_S = 3_600


class Backend:
    """The server of a search backend.

    Args:
        name: the backend's name, for messages.
        url: endpoint URL; its user and password become Basic authorization.
        headers: headers of each request, with credentials.
        refusals: advice to the operator by HTTP status.
        timeout_s: timeout in seconds.
        client: the HTTP client; not the fetcher, as the URL is trusted.
    """

    def __init__(
        self,
        name: str,
        url: URL,
        headers: Mapping[str, str],
        refusals: Mapping[int, str],
        timeout_s: float,
        client: http.Client,
    ) -> None:
        self.name = name
        self._url = url
        self._origin = http.origin_of(url)
        sent = {"accept": "application/json", "user-agent": "sluicegate", **headers}
        if url.user is not None:
            pair = f"{url.user}:{url.password or ''}".encode()
            sent.setdefault("authorization", f"Basic {base64.b64encode(pair).decode()}")
        self._fields = http.fields(sent.items())
        self._refusals = refusals
        self._timeout_s = timeout_s
        self._client = client

    async def get(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Send a GET request; return the JSON object of the response.

        Raises:
            GatewayError: the request failed; see `Searches.search`.
        """
        return await self._ask("GET", self._url.update_query(query).raw_path_qs, self._fields)

    async def post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send a POST request; see `get`."""
        fields = f"{self._fields}content-type: application/json\r\n"
        return await self._ask("POST", self._url.raw_path_qs, fields, orjson.dumps(body))

    async def _ask(
        self, method: str, target: str, fields: str, body: bytes = b""
    ) -> dict[str, Any]:
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._client.send(self._origin, method, target, fields, body)
                try:
                    if response.status != 200:
                        raise self._refusal(response)
                    answer = await self._read(response)
                finally:
                    response.body.release()
        except TimeoutError:
            raise self.failure(
                errors_pb2.REASON_UPSTREAM_TIMEOUT,
                f"did not answer within {self._timeout_s:g} s",
                limit="tools.web_search.timeout_s",
            ) from None
        except http.HttpError as error:
            raise self.failure(
                errors_pb2.REASON_UPSTREAM_CONNECTION,
                "could not be reached, or closed the connection",
            ) from error
        try:
            value = orjson.loads(answer)
        except orjson.JSONDecodeError:
            value = None
        if not isinstance(value, dict):
            raise self.failure(
                errors_pb2.REASON_UPSTREAM_ERROR, "returned a response that is not a JSON object"
            )
        return value

    async def _read(self, response: http.Response) -> bytes:
        body = BytesIO()
        while piece := await response.body.read():
            body.write(piece)
            if body.tell() > _MAX_ANSWER:
                raise self.failure(
                    errors_pb2.REASON_UPSTREAM_ERROR, f"returned more than {_MAX_ANSWER:,} bytes"
                )
        return body.getvalue()

    def _refusal(self, response: http.Response) -> GatewayError:
        status = response.status
        if status in self._refusals:
            return self.failure(
                errors_pb2.REASON_UPSTREAM_AUTH,
                f"answered with status {status}: the operator should check "
                f"{self._refusals[status]}",
            )
        if status == 429:
            wait = response.headers.get("retry-after", "")
            is_number = wait.isdecimal() and len(wait) < 6
            return self.failure(
                errors_pb2.REASON_UPSTREAM_RATE_LIMITED,
                "rate-limited the gateway",
                retry_after_s=min(int(wait), _MAX_WAIT_S) if is_number else None,
            )
        return self.failure(errors_pb2.REASON_UPSTREAM_ERROR, f"answered with status {status}")

    def failure(
        self,
        reason: Reason.ValueType,
        problem: str,
        *,
        limit: str = "",
        retry_after_s: int | None = None,
    ) -> GatewayError:
        """Return an error of the backend."""
        return GatewayError(
            reason,
            f"the web search backend {self.name} {problem}",
            limit=limit,
            retry_after_s=retry_after_s,
        )
