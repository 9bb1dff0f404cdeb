"""What providers share of HTTP: requests with the provider's headers, events, failures.

A provider posts JSON and gets either the whole body or batches of server-sent
events, one batch for each read. Everything that can go wrong on the way is an
`UpstreamError`; what a status means is decided in `failures`, once.
"""

import asyncio
import base64
import math
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from io import BytesIO
from typing import Any, Protocol

from yarl import URL

from gateway.errors.v1 import errors_pb2
from services.common.errors import UpstreamError
from services.common.hops import HOPS_KEY, MAX_HOPS, hops
from services.common.settings import Limits
from services.common.texts import printable
from services.inference import http
from services.inference.providers import failures, redaction
from services.inference.providers.bounds import parse
from services.inference.providers.silence import PatientReader
from services.inference.providers.sse import EventCutter, SseTooLongError, has_event

# A stream that has said its last word gets this long to end, so that its connection
# can be used again; most servers end it in the same packet.
_ENDING_GRACE_S = 0.25
_EVENT_STREAM = "text/event-stream"
# Bytes of a stream that are read without letting others have their turn.
_AT_ONCE = 1 << 13
# What callers are told of a connection that did not come about.
_BROKEN: tuple[tuple[type[Exception], str], ...] = (
    (ConnectionRefusedError, "the provider {}'s server refused the connection"),
    (socket.gaierror, "the name of the provider {}'s server cannot be resolved"),
    (ssl.SSLError, "no TLS connection to the provider {}'s server came about"),
)
_TRANSLATED = (TimeoutError, http.HttpError, SseTooLongError)

Headers = Mapping[str, str]


class Gauge(Protocol):
    """What counts the calls that are under way at providers."""

    def inc(self) -> None:
        """A call begins."""

    def dec(self) -> None:
        """A call is over."""


class Upstream:
    """One provider's server, reached through a client that it shares with others.

    Redirects are not followed. Of a call that is not read to its end, be it cancelled,
    closed or failed, the connection is closed at once and never used again.

    Args:
        name: the provider's name in the settings, for messages.
        base_url: what paths are appended to; its query goes with every request.
        headers: go with every request, credentials among them.
        limits: bounds on time and size, also on what is in an answer; it is an attribute too.
        client: the shared client; it belongs to whoever made it, and is not closed here.
        live: counts the calls under way.
        now: Unix seconds.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        headers: Headers,
        limits: Limits,
        client: http.Client,
        live: Gauge,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self._base = URL(base_url)
        self._origin = http.origin_of(self._base)
        sent = {key.lower(): value for key, value in headers.items()}
        if self._base.user is not None:
            pair = f"{self._base.user}:{self._base.password or ''}".encode()
            sent.setdefault("authorization", f"Basic {base64.b64encode(pair).decode()}")
        sent = {"content-type": "application/json", "user-agent": "llm-gateway", **sent}
        # By the number of gateways that a request has passed before this one.
        self._fields = [
            http.fields((sent | {HOPS_KEY: str(passed + 1)}).items())
            for passed in range(MAX_HOPS + 1)
        ]
        self._secrets = redaction.secrets_of(headers)
        if self._base.password:
            self._secrets += (self._base.password,)
        self.limits = limits
        self._client = client
        self._live = live
        self._now = now
        self._targets: dict[str, str] = {}

    async def post(
        self,
        path: str,
        body: bytes,
        *,
        headers: Collection[tuple[str, str]] = (),
    ) -> bytes:
        """Post JSON and give the body of a whole 2xx answer.

        It may take `limits.step_timeout_s`; else as `post_unbounded`.
        """
        try:
            async with asyncio.timeout(self.limits.step_timeout_s):
                return await self.post_unbounded(path, body, headers=headers)
        except TimeoutError as error:
            raise self._failure(error) from error

    async def post_unbounded(
        self,
        path: str,
        body: bytes,
        *,
        headers: Collection[tuple[str, str]] = (),
    ) -> bytes:
        """Post JSON and give the body of a whole 2xx answer; the caller bounds the time.

        Args:
            path: appended to the base URL, such as `/chat/completions`; few and fixed.
            body: JSON.
            headers: for this request alone, names in lower case.

        Raises:
            UpstreamError: no answer, none in time, one that is too large or not 2xx.
        """
        self._live.inc()
        response: http.Response | None = None
        try:
            response = await self._open(path, body, headers)
            return await self._read(response)
        except _TRANSLATED as error:
            raise self._failure(error) from error
        finally:
            if response is not None:
                response.close()
            self._live.dec()

    async def stream(
        self,
        path: str,
        body: bytes,
        *,
        has_ended: Callable[[], bool],
        headers: Collection[tuple[str, str]] = (),
    ) -> AsyncGenerator[bytes, None]:
        """Post JSON and give the events of a 2xx answer, the text of those that a read completed.

        How long the first event may take is for the caller to say; each later read may
        take `limits.stream_idle_s`. The stream ends when the caller has read the event that is
        the protocol's last, or where the provider ends it: whether that is too early is
        for the caller to say. Close the iterator when it is not read to its end.

        Args:
            path: appended to the base URL; few and fixed.
            body: JSON.
            has_ended: tells whether an event has said that nothing follows.
            headers: for this request alone, names in lower case.

        Raises:
            UpstreamError: no answer, none in time, one that is not 2xx or no event
                stream, an event over `limits.max_sse_line`, or a broken connection.
        """
        self._live.inc()
        response: http.Response | None = None
        reader: PatientReader | None = None
        try:
            response = await self._open(path, body, headers)
            self._check_event_stream(response)
            cutter = EventCutter(self.limits.max_sse_line)
            chunk, rest = await response.read(), b""
            while chunk:
                if len(chunk) > _AT_ONCE:
                    chunk, rest = chunk[:_AT_ONCE], chunk[_AT_ONCE:]
                text = cutter.feed(chunk)
                if reader is None and has_event(text):
                    reader = PatientReader(response, self.limits.stream_idle_s)
                if text and reader is not None:
                    yield text
                    if has_ended():
                        await self._let_end(response)
                        break
                if rest:
                    await asyncio.sleep(0)
                    chunk, rest = rest, b""
                elif reader is None:
                    chunk = await response.read()
                else:
                    chunk = await reader.read()
        except _TRANSLATED as error:
            raise self._failure(error) from error
        finally:
            if reader is not None:
                reader.stop()
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
        return self.json_object_of(body, self.limits.max_answer_values)

    def json_object_of(self, body: bytes, max_values: int) -> dict[str, Any]:
        """Read a whole answer that may hold so many values; see `json_object`."""
        value = parse(body, self.name, max_values)
        if not isinstance(value, dict):
            raise failures.broken_answer(
                self.name, "answered something that is no JSON object", body
            )
        if value.get("error"):
            raise self.in_band(body)
        return value

    async def _open(
        self, path: str, body: bytes, headers: Collection[tuple[str, str]]
    ) -> http.Response:
        """Send the request; give the answer with its body unread, if it is 2xx."""
        fields = self._fields[min(hops.get(), MAX_HOPS)]
        if headers:
            fields += http.fields(headers)
        response = await self._client.send(self._origin, "POST", self._target(path), fields, body)
        if 200 <= response.status < 300:
            return response
        try:
            async with asyncio.timeout(self.limits.stream_idle_s):
                told = await self._read(response, failures.MAX_ERROR_BODY)
        except (http.HttpError, TimeoutError):
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

    def _target(self, path: str) -> str:
        target = self._targets.get(path)
        if target is None:
            url = self._base.joinpath(path.lstrip("/")).with_query(self._base.query)
            target = self._targets[path] = url.raw_path_qs
        return target

    async def _read(self, response: http.Response, bound: float = math.inf) -> bytes:
        """Read the body, or just over `bound` bytes of it."""
        body = BytesIO()
        while body.tell() <= bound and (piece := await response.read()):
            body.write(piece)
        return body.getvalue()

    def _check_event_stream(self, response: http.Response) -> None:
        # Servers that leave the header out are taken at their word that they stream.
        kind = response.headers.get("content-type", _EVENT_STREAM)
        if kind.partition(";")[0].strip().lower() != _EVENT_STREAM:
            raise failures.broken_answer(self.name, "answered something that is no event stream")

    async def _let_end(self, response: http.Response) -> None:
        """Wait a moment for the end, after which the connection can be used again."""
        try:
            async with asyncio.timeout(_ENDING_GRACE_S):
                while await response.read():
                    pass
        except (TimeoutError, http.HttpError):
            return  # all that matters has come; the connection is closed instead

    def _failure(self, error: Exception) -> UpstreamError:
        """Give the failure that one of `_TRANSLATED` is; its own words hold addresses and stay."""
        match error:
            case TimeoutError():
                return UpstreamError(
                    errors_pb2.REASON_UPSTREAM_TIMEOUT,
                    f"the provider {self.name} stayed silent beyond the time limit",
                )
            case http.NotHttpError():
                return failures.broken_answer(self.name, "answered something that is not HTTP")
            case http.CutOffError():
                return failures.cut_off(self.name)
            case http.TooLargeError():
                return failures.over_limit(
                    self.name,
                    f"answered more than {self.limits.max_answer:,} bytes",
                    "limits.max_answer",
                )
            case SseTooLongError():
                return failures.over_limit(
                    self.name,
                    f"streamed an event over {self.limits.max_sse_line:,} bytes",
                    "limits.max_sse_line",
                )
            case _:
                what = next(
                    (what for kind, what in _BROKEN if isinstance(error.__cause__, kind)),
                    "no connection to the provider {}, or it broke",
                )
                words = str(error)
                return UpstreamError(
                    errors_pb2.REASON_UPSTREAM_CONNECTION,
                    what.format(self.name),
                    cause=lambda: printable(redaction.redact(words, self._secrets)),
                )
