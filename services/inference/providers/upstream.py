"""`Upstream`: HTTP requests to one provider's server, and its answers, whole or streamed.

A provider posts JSON and gets either the whole body or batches of server-sent events, one batch per
read. All failures are raised as `UpstreamError`; `failures` classifies them.
"""

import asyncio
import base64
import math
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import lru_cache
from io import BytesIO
from typing import Any

from yarl import URL

from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import Event
from services.common.errors import UpstreamError
from services.common.far_timers import FarTimers
from services.common.hops import HOPS_KEY, MAX_HOPS, hops
from services.common.settings import Limits
from services.common.telemetry.trace_context import attempt_trace, current_trace
from services.inference import http
from services.inference.offload import offload
from services.inference.providers import failures, redaction
from services.inference.providers.bounds import check_values, parse
from services.inference.providers.connection_failures import TRANSLATED, connection_failure
from services.inference.providers.event_stream import EventStream
from services.inference.providers.protocols import Classify, Gauge, OnHeaders, Reader
from services.inference.providers.sse import SseSplitter, SseTooLongError, is_event_stream
from services.inference.stream.batches import Batches, Take

# Grace period for the end of a finished stream, so that its connection can be reused; most servers
# end it in the same packet.
_ENDING_GRACE_S = 0.25
# Maximum wait for the body of an error response.
_ERROR_BODY_S = 30.0
_EVENT_STREAM = "text/event-stream"
_JSON = "application/json"
# Types that servers name event streams which do not set one.
_UNTYPED = frozenset({"text/plain", "application/octet-stream"})
# Size of the path cache; some paths contain a model's name.
_TARGETS = 1_000


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
        classify: returns the error for a response other than 2xx.
        missing_key: the variable that the key was to be in, where it is not set; every
            request is refused then, as it would go out without credentials.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        headers: Mapping[str, str],
        limits: Limits,
        client: http.Client,
        live: Gauge,
        now: Callable[[], float] = time.time,
        missing_key: str = "",
        classify: Classify = failures.classify,
    ) -> None:
        self.name = name
        self._classify = classify
        self._missing_key = missing_key
        self._base = URL(base_url)
        self._origin = http.origin_of(self._base)
        sent = {key.lower(): value for key, value in headers.items()}
        if self._base.user is not None:
            pair = f"{self._base.user}:{self._base.password or ''}".encode()
            sent.setdefault("authorization", f"Basic {base64.b64encode(pair).decode()}")
        sent = {"content-type": "application/json", "user-agent": "llm-gateway", **sent}
        # By the number of gateways that a request has passed before this one.
        self._sent = sent
        self._fields = [
            http.fields((sent | {HOPS_KEY: str(passed + 1)}).items())
            for passed in range(MAX_HOPS + 1)
        ]
        # Of these the operator's count alone; names of beta features are added to theirs.
        self._own = frozenset(sent) - {"anthropic-beta"}
        self._secrets = redaction.secrets_of(headers)
        if self._base.password:
            self._secrets += (self._base.password,)
        self.limits = limits
        self._client = client
        self._live = live
        self._now = now
        self._timers = FarTimers()
        self._target = lru_cache(_TARGETS)(self._target_of)

    async def post(
        self,
        path: str,
        body: bytes,
        *,
        headers: Collection[tuple[str, str]] = (),
        on_headers: OnHeaders | None = None,
        content_type: str = "",
    ) -> bytes:
        """Post JSON and return the body of a 2xx response, within `limits.step_timeout_s`.

        See `post_unbounded`.
        """
        try:
            async with asyncio.timeout(self.limits.step_timeout_s):
                return await self.post_unbounded(
                    path, body, headers=headers, on_headers=on_headers, content_type=content_type
                )
        except TimeoutError as error:
            raise self._failure(error) from error

    async def post_unbounded(
        self,
        path: str,
        body: bytes,
        *,
        headers: Collection[tuple[str, str]] = (),
        on_headers: OnHeaders | None = None,
        content_type: str = "",
    ) -> bytes:
        """Post JSON and return the body of a 2xx response; the caller sets the timeout.

        Args:
            path: appended to the base URL, such as `/chat/completions`; it may have a query.
            body: JSON.
            headers: for this request alone, names in lower case; those that the provider's
                own headers have are left out.
            on_headers: is called with the headers of the answer.
            content_type: of a body that is no JSON.

        Raises:
            UpstreamError: no answer, none in time, one that is too large or not 2xx.
        """
        self._live.inc()
        response: http.Response | None = None
        try:
            response = await self._send(path, body, headers, content_type)
            if not _is_accepted(response, on_headers):
                raise await self._refusal(response)
            return await self._whole(response)
        except TRANSLATED as error:
            raise self._failure(error) from error
        finally:
            if response is not None:
                response.close()
            self._live.dec()

    async def stream(
        self,
        path: str,
        make_body: Callable[[], bytes],
        *,
        reader: Reader,
        headers: Collection[tuple[str, str]] = (),
        on_headers: OnHeaders | None = None,
    ) -> Batches:
        """Post JSON and return the events of a 2xx answer, a batch for each read.

        A server that does not stream answers with JSON: that is read as a whole answer, in one
        batch.

        How long the first content may take is for the caller to say: a model may think
        long after the provider has begun to answer. From then on each read may take
        `limits.stream_idle_s`. The stream ends when an event says that nothing follows, or where
        the provider ends it. What came before a failure in the same read is returned first, and
        a failure behind a complete answer is none. Close the iterator when it is not read to its
        end.

        Args:
            path: appended to the base URL; it may have a query.
            make_body: returns JSON; it is called in a thread where the request is large.
            reader: makes the events.
            headers: for this request alone, names in lower case; those that the provider's
                own headers have are left out.
            on_headers: is called with the headers of the answer.

        Raises:
            UpstreamError: no answer, none in time, one that is not 2xx, or neither an event stream
                nor JSON, an event over `limits.max_sse_line_bytes`, a broken connection, an
                event that tells an error or cannot be read, or an end that came too early.
        """
        body = await offload(make_body)
        self._live.inc()
        response: http.Response | None = None
        stream: EventStream | None = None
        whole: bytes | None = None
        try:
            response = await self._send(path, body, headers)
            if not _is_accepted(response, on_headers):
                raise await self._refusal(response)
            if self._is_streamed(response):
                stream = EventStream(response, reader, self.limits, self._timers)
                take: Take | None = None
                while (events := await stream.next(take)) is not None:
                    take = yield events
                if reader.ended:
                    await self._let_end(response)
            else:
                whole = await self._whole(response)
        except (UpstreamError, *TRANSLATED) as error:
            if not reader.is_complete:
                raise self._failure(error) from error
        finally:
            if stream is not None:
                stream.stop()
            if response is not None:
                response.close()
            self._live.dec()
        last: list[Event] = []
        if whole is not None:
            last = self.events_of(whole, reader)
        else:
            reader.end(last)
        if last:
            yield last

    def events_of(self, body: bytes, reader: Reader) -> list[Event]:
        """Return the events of a whole answer: JSON, or the text of an event stream.

        Some servers stream whatever they are asked, others never do.

        Raises:
            UpstreamError: it is neither, tells an error, or has no end.
        """
        events: list[Event] = []
        if not is_event_stream(body):
            reader.read_whole(self.json_object(body), events)
            return events
        try:
            text = SseSplitter(self.limits.max_sse_line_bytes).feed(body)
        except SseTooLongError as error:
            raise self._failure(error) from error
        reader.feed(text, events)
        reader.end(events)
        return events

    def in_band(self, body: bytes) -> UpstreamError:
        """Return the failure that an error object inside a stream or a 200 stands for."""
        return failures.in_band(self.name, body, secrets=self._secrets)

    def check_values(self, body: bytes) -> None:
        """Check the number of JSON values in a whole answer; see `bounds.check_values`."""
        if len(body) > self.limits.max_answer_values:
            check_values(body, self.name, self.limits.max_answer_values)

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

    def _send(
        self,
        path: str,
        body: bytes,
        headers: Collection[tuple[str, str]],
        content_type: str = "",
    ) -> Coroutine[Any, Any, http.Response]:
        """Send the request; return the response with its body unread."""
        if self._missing_key:
            raise UpstreamError(
                errors_pb2.REASON_UPSTREAM_AUTH,
                f"the provider {self.name} has no key: providers.{self.name}.api_key_env names "
                f"{self._missing_key}, which is not set in the gateway's environment",
            )
        passed = min(hops.get(), MAX_HOPS)
        fields = self._fields[passed]
        if content_type:
            own = {"content-type": content_type, HOPS_KEY: str(passed + 1)}
            fields = http.fields((self._sent | own).items())
        if headers:
            fields += http.fields([pair for pair in headers if pair[0] not in self._own])
        if (trace := attempt_trace.get() or current_trace.get()) is not None:
            fields += http.fields(trace.pairs())
        return self._client.send(self._origin, "POST", self._target(path), fields, body)

    async def _refusal(self, response: http.Response) -> UpstreamError:
        """Return the error for a response other than 2xx."""
        try:
            async with asyncio.timeout(min(self.limits.stream_idle_s, _ERROR_BODY_S)):
                body = await self._read(response, failures.MAX_ERROR_BODY)
        except (http.HttpError, TimeoutError):
            body = b""  # the status is sufficient
        return self._classify(
            self.name,
            response.status,
            response.headers,
            body[: failures.MAX_ERROR_BODY],
            secrets=self._secrets,
            now=self._now,
        )

    def _target_of(self, path: str) -> str:
        path, _, query = path.partition("?")
        url = self._base.joinpath(path.lstrip("/")).with_query(self._base.query)
        return url.extend_query(query).raw_path_qs

    async def _whole(self, response: http.Response) -> bytes:
        """Read the body of an answer."""
        whole = response.rest()
        if whole is None:
            whole = await response.whole()
        return await self._read(response) if whole is None else whole

    async def _read(self, response: http.Response, bound: float = math.inf) -> bytes:
        """Read the body, or just over `bound` bytes of it."""
        body = BytesIO()
        while body.tell() <= bound and (piece := await response.read()):
            body.write(piece)
        return body.getvalue()

    def _is_streamed(self, response: http.Response) -> bool:
        """Return whether an answer is an event stream, False if it is JSON.

        Raises:
            UpstreamError: it is neither.
        """
        # A server without a Content-Type header is assumed to stream.
        given = response.headers.get("content-type", _EVENT_STREAM)
        if given == _EVENT_STREAM:
            return True
        kind = given.partition(";")[0].strip().lower()
        if kind == _EVENT_STREAM or kind in _UNTYPED:
            return True
        if kind != _JSON:
            raise failures.broken_answer(self.name, "answered something that is no event stream")
        return False

    async def _let_end(self, response: http.Response) -> None:
        """Wait briefly for the end of the stream, after which the connection can be reused."""
        if response.rest() is not None:
            return
        try:
            async with asyncio.timeout(_ENDING_GRACE_S):
                while await response.read():
                    pass
        except (TimeoutError, http.HttpError):
            return  # the answer is complete; close the connection

    def _failure(self, error: Exception) -> UpstreamError:
        """Return the error for one of `TRANSLATED`."""
        return connection_failure(self.name, error, self.limits, self._secrets)


def _is_accepted(response: http.Response, on_headers: OnHeaders | None) -> bool:
    """Call `on_headers`; return whether the status is 2xx."""
    if on_headers is not None:
        on_headers(response.headers)
    return 200 <= response.status < 300
