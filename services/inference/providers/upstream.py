"""The HTTP side that providers share: one pooled client, server-sent events, failures.

A provider posts JSON and gets either the whole body or batches of server-sent
events, one batch for each read. Everything that can go wrong on the way is an
`UpstreamError`; what a status means is decided in `failures`, once.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import aiohttp
import orjson
from yarl import URL

from gateway.errors.v1 import errors_pb2
from services.common.errors import UpstreamError
from services.common.settings import Limits
from services.inference.providers import failures
from services.inference.providers.sse import ServerSentEvent, SseParser, SseTooLongError

# A stream that has said its last word gets this long to end, so that its connection
# can be used again; most servers end it in the same packet.
_ENDING_GRACE_S = 0.25
_EVENT_STREAM = "text/event-stream"

Headers = Mapping[str, str]


class Gauge(Protocol):
    """What counts the calls that are under way at providers."""

    def inc(self) -> None:
        """A call begins."""

    def dec(self) -> None:
        """A call is over."""


class Upstream:
    """One provider's server, reached through a session that it shares with others.

    Redirects are not followed. Of a call that is not read to its end, be it cancelled,
    closed or failed, the connection is closed at once and never used again.

    Args:
        name: the provider's name in the settings, for messages.
        base_url: what paths are appended to; its query goes with every request.
        headers: go with every request, credentials among them.
        limits: bounds on time and size.
        session: the shared client. Its connector pools and it keeps no cookies; it
            belongs to whoever made it, and is not closed here.
        live: counts the calls under way.
        now: Unix seconds.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        headers: Headers,
        limits: Limits,
        session: aiohttp.ClientSession,
        live: Gauge,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self._base = URL(base_url)
        self._headers = {
            "content-type": "application/json",
            "user-agent": "llm-gateway",
            **{key.lower(): value for key, value in headers.items()},
        }
        self._secrets = failures.secrets_of(headers)
        if self._base.password:
            self._secrets += (self._base.password,)
        self._limits = limits
        self._session = session
        self._live = live
        self._now = now
        self._urls: dict[str, URL] = {}
        self._timeout = aiohttp.ClientTimeout(total=None, connect=limits.connect_timeout_s)

    async def post(
        self,
        path: str,
        body: bytes,
        *,
        headers: Iterable[tuple[str, str]] = (),
        timeout_s: float | None = None,
    ) -> tuple[Headers, bytes]:
        """Post JSON and give the headers and body of a whole 2xx answer.

        Args:
            path: appended to the base URL, such as `/chat/completions`; few and fixed.
            body: JSON.
            headers: for this request alone, names in lower case.
            timeout_s: seconds for all of it; `limits.step_timeout_s` when None.

        Raises:
            UpstreamError: no answer, none in time, one that is too large or not 2xx.
        """
        self._live.inc()
        response: aiohttp.ClientResponse | None = None
        try:
            with self._translated():
                async with asyncio.timeout(timeout_s or self._limits.step_timeout_s):
                    response = await self._open(path, body, headers)
                    whole = await self._read(response, self._limits.max_message)
            if len(whole) > self._limits.max_message:
                raise failures.broken_answer(
                    self.name, f"answered more than {self._limits.max_message} bytes"
                )
            return response.headers, whole
        finally:
            if response is not None:
                response.close()
            self._live.dec()

    async def stream(
        self,
        path: str,
        body: bytes,
        *,
        is_last: Callable[[ServerSentEvent], bool],
        headers: Iterable[tuple[str, str]] = (),
    ) -> AsyncGenerator[list[ServerSentEvent], None]:
        """Post JSON and give the events of a 2xx answer, a batch for each read, none empty.

        The first event may take `limits.step_timeout_s`, each later read
        `limits.stream_idle_s`. The stream ends after the event that is the protocol's
        last, or where the provider ends it: whether that is too early is for the
        caller to say. Close the iterator when it is not read to its end.

        Args:
            path: appended to the base URL; few and fixed.
            body: JSON.
            is_last: tells the event that nothing follows.
            headers: for this request alone, names in lower case.

        Raises:
            UpstreamError: no answer, none in time, one that is not 2xx or no event
                stream, a line over `limits.max_sse_line`, or a broken connection.
        """
        self._live.inc()
        response: aiohttp.ClientResponse | None = None
        try:
            with self._translated():
                async with asyncio.timeout(self._limits.step_timeout_s):
                    response = await self._open(path, body, headers)
                    self._check_event_stream(response)
                    content = response.content
                    parser = SseParser(self._limits.max_sse_line)
                    batch: list[ServerSentEvent] = []
                    while not batch and (chunk := await content.readany()):
                        batch = parser.feed(chunk)
            while batch or chunk:
                if batch:
                    yield batch
                    if is_last(batch[-1]):
                        break
                with self._translated():
                    async with asyncio.timeout(self._limits.stream_idle_s):
                        chunk = await content.readany()
                    batch = parser.feed(chunk)
            if batch:
                await self._let_end(content)
        finally:
            if response is not None:
                response.close()
            self._live.dec()

    def in_band(self, body: bytes) -> UpstreamError:
        """Give the failure that an error object inside a stream or a 200 stands for."""
        return failures.in_band(self.name, body, secrets=self._secrets)

    def json_object(self, body: bytes) -> dict[str, Any]:
        """Read a whole answer.

        Raises:
            UpstreamError: it is no JSON object, or one that tells an error.
        """
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            value = None
        if not isinstance(value, dict):
            raise failures.broken_answer(
                self.name, "answered something that is no JSON object", body
            )
        if value.get("error"):
            raise self.in_band(body)
        return value

    async def _open(
        self, path: str, body: bytes, headers: Iterable[tuple[str, str]]
    ) -> aiohttp.ClientResponse:
        """Send the request; give the answer with its body unread, if it is 2xx."""
        response = await self._session.post(
            self._url(path),
            data=body,
            headers={**self._headers, **dict(headers)},
            allow_redirects=False,
            timeout=self._timeout,
        )
        if 200 <= response.status < 300:
            return response
        try:
            async with asyncio.timeout(self._limits.stream_idle_s):
                told = await self._read(response, failures.MAX_ERROR_BODY)
        except (aiohttp.ClientError, OSError):  # TimeoutError among them
            told = b""  # the status says enough
        finally:
            response.close()
        raise failures.classify(
            self.name,
            response.status,
            response.headers,
            told[: failures.MAX_ERROR_BODY],
            secrets=self._secrets,
            now=self._now,
        )

    def _url(self, path: str) -> URL:
        url = self._urls.get(path)
        if url is None:
            url = self._base.joinpath(path.lstrip("/")).with_query(self._base.query)
            self._urls[path] = url
        return url

    async def _read(self, response: aiohttp.ClientResponse, bound: int) -> bytes:
        """Read the body, or just over `bound` bytes of it."""
        pieces: list[bytes] = []
        size = 0
        while size <= bound and (piece := await response.content.readany()):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)

    def _check_event_stream(self, response: aiohttp.ClientResponse) -> None:
        # Servers that leave the header out are taken at their word that they stream.
        if "content-type" in response.headers and response.content_type != _EVENT_STREAM:
            raise failures.broken_answer(self.name, "answered something that is no event stream")

    async def _let_end(self, content: aiohttp.StreamReader) -> None:
        """Wait a moment for the end, which gives the connection back to the pool."""
        try:
            async with asyncio.timeout(_ENDING_GRACE_S):
                while await content.readany():
                    pass
        except (TimeoutError, aiohttp.ClientError):
            return  # all that matters has come; the connection is closed instead

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn what the HTTP client raises into failures; its words hold addresses and stay."""
        try:
            yield
        except TimeoutError as error:
            raise UpstreamError(
                errors_pb2.REASON_UPSTREAM_TIMEOUT,
                f"the provider {self.name} stayed silent beyond the time limit",
            ) from error
        except aiohttp.ClientResponseError as error:
            raise failures.broken_answer(
                self.name, "answered something that is not HTTP"
            ) from error
        except aiohttp.ClientPayloadError as error:
            raise failures.cut_off(self.name) from error
        except (aiohttp.ClientError, OSError) as error:
            raise UpstreamError(
                errors_pb2.REASON_UPSTREAM_CONNECTION,
                f"no connection to the provider {self.name}, or it broke",
            ) from error
        except SseTooLongError as error:
            raise failures.broken_answer(
                self.name, f"streamed an event over {self._limits.max_sse_line} bytes"
            ) from error
