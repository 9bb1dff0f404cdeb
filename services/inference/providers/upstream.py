"""`Upstream`: an HTTP client for one provider's server, for whole and streamed answers.

It posts JSON and returns either the whole body or batches of server-sent events, one batch per
read. All failures are raised as `UpstreamError`; the module `failures` classifies them.
"""

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any, NamedTuple

from yarl import URL

from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import Event
from services.common import http
from services.common.errors import UpstreamError
from services.common.grpc.hops import HOPS_KEY, MAX_HOPS, hops
from services.common.process import logs
from services.common.process.telemetry.trace_context import attempt_trace, current_trace
from services.common.process.timer_wheel import TimerWheel
from services.common.settings import Limits
from services.inference.metrics import UpstreamCalls
from services.inference.offload import offload
from services.inference.providers import failures, redaction
from services.inference.providers.base import Call
from services.inference.providers.bounds import check_values, parse
from services.inference.providers.connection_failures import TRANSLATED, connection_failure
from services.inference.providers.event_stream import EventStream, let_end
from services.inference.providers.protocols import Authorize, Classify, Reader, Splitter
from services.inference.providers.sse import SseSplitter, SseTooLongError, is_event_stream
from services.inference.stored_files import StoredFilesBody
from services.inference.stream.batches import Batches, OnBatch

# Maximum wait for the body of an error response.
_ERROR_BODY_S = 30.0
_JSON = "application/json"
_REQUEST_ID = "x-request-id"
# Content types with which servers send event streams when none is configured.
_UNTYPED = frozenset({"text/plain", "application/octet-stream"})
# Size of the path cache; some paths contain a model name.
_TARGETS = 1_000


class Framing(NamedTuple):
    """The format of streamed responses.

    Attributes:
        content_type: of such responses.
        split: returns a splitter for the maximum size of an event in bytes.
    """

    content_type: str
    split: Callable[[int], Splitter]


SSE = Framing("text/event-stream", SseSplitter)


class Upstream:
    """HTTP client for one provider's server; the connections belong to a shared client.

    Redirects are not followed. If a response is not read to its end, because the call was
    cancelled, closed or failed, its connection is closed at once and never reused.

    Args:
        name: the provider's name in the settings, for messages.
        base_url: the URL to which paths are appended; its query is added to every request.
        headers: headers of every request, including credentials.
        limits: bounds on time, size and content of answers; also an attribute.
        client: the shared client; not closed by this class.
        live: counts the running calls.
        now: returns Unix seconds.
        classify: returns the error for a response other than 2xx.
        missing_key: the environment variable of the API key if it is not set; every request is then
            refused, since it would be sent without credentials.
        authorize: returns further headers of each request; if they depend on the body, requests
            have no stored files.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        headers: Mapping[str, str],
        limits: Limits,
        client: http.Client,
        live: UpstreamCalls,
        now: Callable[[], float] = time.time,
        missing_key: str = "",
        classify: Classify = failures.classify,
        authorize: Authorize | None = None,
    ) -> None:
        self.name = name
        self._authorize = authorize
        self._classify = classify
        self._missing_key = missing_key
        self._base = URL(base_url)
        self._origin = http.origin_of(self._base)
        sent = {key.lower(): value for key, value in headers.items()}
        if self._base.user is not None:
            pair = f"{self._base.user}:{self._base.password or ''}".encode()
            sent.setdefault("authorization", f"Basic {base64.b64encode(pair).decode()}")
        sent = {"content-type": "application/json", "user-agent": "sluicegate", **sent}
        # Indexed by the number of gateways that the request has passed before this one.
        self._sent = sent
        self._fields = [
            http.fields((sent | {HOPS_KEY: str(passed + 1)}).items())
            for passed in range(MAX_HOPS + 1)
        ]
        # A caller's headers of these names are left out; only beta features are sent of both.
        self._own = frozenset(sent) - {"anthropic-beta"}
        self._own_secrets = redaction.secrets_of(headers)
        if self._base.password:
            self._own_secrets += (self._base.password,)
        self.limits = limits
        self._client = client
        self._live = live
        self._now = now
        self._timers = TimerWheel()
        self._target = lru_cache(_TARGETS)(self._target_of)

    async def post(
        self,
        path: str,
        body: bytes,
        *,
        headers: Collection[tuple[str, str]] = (),
        call: Call | None = None,
        content_type: str = "",
    ) -> bytes:
        """Post JSON and return the body of a 2xx response, within `limits.step_timeout_s`.

        See `post_unbounded`.
        """
        try:
            async with asyncio.timeout(self.limits.step_timeout_s):
                return await self.post_unbounded(
                    path, body, headers=headers, call=call, content_type=content_type
                )
        except TimeoutError as error:
            raise self._failure(error) from error

    async def post_unbounded(
        self,
        path: str,
        body: bytes,
        *,
        headers: Collection[tuple[str, str]] = (),
        call: Call | None = None,
        content_type: str = "",
        bounds_values: bool = False,
    ) -> bytes:
        """Post JSON and return the body of a 2xx response; the caller sets the timeout.

        Args:
            path: appended to the base URL, such as `/chat/completions`; it may have a query.
            body: JSON.
            headers: headers of this request, names in lower case; those that are also among the
                provider's own headers are left out.
            call: gets the headers of the response; its stored files replace their tokens in the
                body.
            content_type: the type of a body other than JSON.
            bounds_values: whether the number of JSON values in the response is limited.

        Raises:
            UpstreamError: no response, a timeout, or a response that is too large or not 2xx.
            GatewayError: as the pieces of `StoredFilesBody`.
        """
        if call is not None and call.deferred is not None:
            return call.deferred.answer_to(path, headers, body)
        posting = self.response(path, body, headers=headers, call=call, content_type=content_type)
        del body  # an answer may take minutes
        async with posting as response:
            answer = await response.body.whole()
            if bounds_values and len(answer) > self.limits.max_answer_values:
                check_values(answer, self.name, self.limits.max_answer_values)
            return answer

    @asynccontextmanager
    async def response(
        self,
        path: str,
        body: bytes,
        *,
        headers: Collection[tuple[str, str]] = (),
        call: Call | None = None,
        content_type: str = "",
        method: str = "POST",
    ) -> AsyncIterator[http.Response]:
        """Send a body; provide the response, which is 2xx, with its body unread.

        The caller sets the timeout; the arguments are those of `post_unbounded`.

        Raises:
            UpstreamError: no response, one that is not 2xx, or a failure within the block.
        """
        sending = self._send(path, body, headers, call, content_type, method)
        del body  # an answer may take minutes
        self._live.count += 1
        response: http.Response | None = None
        try:
            response = await sending
            if call is not None:
                call.answer_headers = response.headers
            if not 200 <= response.status < 300:
                raise await self._refusal(response)
            yield response
        except TRANSLATED as error:
            raise self._failure(error) from error
        finally:
            if response is not None:
                response.body.release()
            self._live.count -= 1

    async def stream(
        self,
        path: str,
        make_body: Callable[[], bytes],
        *,
        reader: Reader,
        headers: Collection[tuple[str, str]] = (),
        call: Call | None = None,
        framing: Framing = SSE,
    ) -> Batches:
        """Post JSON and yield the events of a 2xx response, one batch per read.

        A server that does not stream answers with JSON, which is read as a whole answer, in one
        batch.

        The caller sets the timeout of the first content: a model may think long after the provider
        has begun to answer. From then on each read may take what the call's `Patience` allows, by
        default `limits.stream_idle_s`. The stream ends with the dialect's end event, or when the
        provider closes it. Events received before a failure in the same read are yielded first; a
        failure after a complete answer is ignored.
        Close the iterator if it is not read to its end.

        Args:
            path: appended to the base URL; it may have a query.
            make_body: returns JSON; called in a thread if the request is large.
            reader: parses the events.
            headers: headers of this request, names in lower case; those that are also among the
                provider's own headers are left out.
            call: as for `post_unbounded`.
            framing: the format of the stream.

        Raises:
            GatewayError: as the pieces of `StoredFilesBody`.
            UpstreamError: no response, a timeout, a response that is not 2xx or is neither an event
                stream nor JSON, an event over `limits.max_sse_line_bytes`, a broken connection, an
                event that reports an error or cannot be parsed, or a premature end.
        """
        is_small = call is not None and call.lazy is not None and call.lazy.is_small
        body = make_body() if is_small else await offload(make_body)
        sending = self._send(path, body, headers, call)
        del body
        self._live.count += 1
        response: http.Response | None = None
        stream: EventStream | None = None
        whole: bytes | None = None
        try:
            response = await sending
            if call is not None:
                call.answer_headers = response.headers
            if not 200 <= response.status < 300:
                raise await self._refusal(response)
            expected, split = framing
            # A server without a Content-Type header is assumed to stream.
            content_type = response.headers.get("content-type", expected)
            if content_type == expected or self._is_streamed(content_type, expected):
                stream = EventStream(response.body, reader, self.limits, self._timers, call, split)
                on_batch: OnBatch | None = None
                has_more = True
                while has_more and (events := await stream.next(on_batch)) is not None:
                    on_batch = yield events
                    has_more = not reader.ended
                if reader.ended and not response.body.is_received:
                    await let_end(response.body)
            else:
                whole = await response.body.whole()
        except (UpstreamError, *TRANSLATED) as error:
            if not reader.is_complete:
                raise self._failure(error) from error
        finally:
            if stream is not None and stream.needs_stop:
                stream.stop()
            if response is not None:
                response.body.release()
            self._live.count -= 1
        last = [] if whole is None else self.events_of(whole, reader)
        if whole is None and not (reader.ended and reader.is_complete):
            reader.end(last)
        if last:
            yield last

    def events_of(self, body: bytes, reader: Reader) -> list[Event]:
        """Return the events of a whole answer: JSON, or the text of an event stream.

        Some servers stream regardless of what the request asks for, others never stream.

        Raises:
            UpstreamError: the body is neither, reports an error, or is incomplete.
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
        """Return the error for an error object inside a stream or a 200 response."""
        return failures.in_band(self.name, body, secrets=self._secrets)

    def json_object(self, body: bytes) -> dict[str, Any]:
        """Parse a whole answer.

        Raises:
            UpstreamError: the body is not a JSON object, or reports an error.
        """
        return self.json_object_of(body, self.limits.max_answer_values)

    def json_object_of(self, body: bytes, max_values: int) -> dict[str, Any]:
        """Parse a whole answer of at most `max_values` JSON values; see `json_object`."""
        value = parse(body, self.name, max_values)
        if not isinstance(value, dict):
            raise failures.broken_answer(
                self.name, "returned a response that is not a JSON object", body
            )
        if value.get("error"):
            raise self.in_band(body)
        return value

    def _send(
        self,
        path: str,
        body: bytes,
        headers: Collection[tuple[str, str]],
        call: Call | None,
        content_type: str = "",
        method: str = "POST",
    ) -> Coroutine[Any, Any, http.Response]:
        """Send the request and return the response, with its body unread."""
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
        if (request_id := logs.request_id.get()) and _REQUEST_ID not in self._own:
            fields += f"{_REQUEST_ID}: {request_id}\r\n"
        if headers:
            fields += http.fields([pair for pair in headers if pair[0] not in self._own])
        if (trace := attempt_trace.get() or current_trace.get()) is not None:
            fields += http.fields(trace.pairs())
        stored = None if call is None else call.stored
        sent = body if stored is None else stored.body(body)
        if self._authorize is not None:
            return self._authorized(self._authorize, method, self._target(path), fields, body, sent)
        sending = self._client.send(self._origin, method, self._target(path), fields, sent)
        return sending if isinstance(sent, bytes) else sent.admitted(sending)

    async def _authorized(
        self,
        authorize: Authorize,
        method: str,
        target: str,
        fields: str,
        body: bytes,
        sent: bytes | StoredFilesBody,
    ) -> http.Response:
        """Send a request with the headers that authorize it.

        Args:
            authorize: returns the headers.
            method: the method.
            target: path and query.
            fields: the other headers.
            body: the body as it is signed.
            sent: the body as it is sent.
        """
        url = f"{self._base.scheme}://{self._origin.authority}{target}"
        fields += http.fields(await authorize.headers(method, url, body))
        sending = self._client.send(self._origin, method, target, fields, sent)
        del body
        return await (sending if isinstance(sent, bytes) else sent.admitted(sending))

    @property
    def _secrets(self) -> tuple[str, ...]:
        """The secrets that no message may contain."""
        authorize = self._authorize
        return self._own_secrets if authorize is None else (*self._own_secrets, *authorize.secrets)

    async def _refusal(self, response: http.Response) -> UpstreamError:
        """Return the error for a response other than 2xx."""
        answer, body = response.body, b""
        try:
            async with asyncio.timeout(min(self.limits.stream_idle_s, _ERROR_BODY_S)):
                while len(body) <= failures.MAX_ERROR_BODY and (piece := await answer.read()):
                    body += piece
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
        # A path with escapes is sent as it is: a signature covers it.
        url = self._base.joinpath(path.lstrip("/"), encoded="%" in path)
        url = url.with_query(self._base.query)
        return url.extend_query(query).raw_path_qs

    def _is_streamed(self, content_type: str, expected: str) -> bool:
        """Return whether a content type is that of an event stream; False if it is JSON.

        Raises:
            UpstreamError: it is neither.
        """
        kind = content_type.partition(";")[0].strip().lower()
        if kind == expected or kind in _UNTYPED:
            return True
        if kind != _JSON:
            raise failures.broken_answer(
                self.name, "returned a response that is not an event stream"
            )
        return False

    def _failure(self, error: Exception) -> UpstreamError:
        """Return the error for one of `TRANSLATED`."""
        return connection_failure(self.name, error, self.limits, self._secrets)
