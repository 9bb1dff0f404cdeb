"""Requests to a provider: whole answers, refusals and failed connections."""

import asyncio
import gzip

import pytest

from services.common.errors import UpstreamError
from services.common.http import Client
from tests.facade.sockets import refusing_port
from tests.services.inference.providers.scripted_server import (
    END,
    SSE_HEAD,
    Connection,
    ScriptedUpstream,
    scripted_upstream,
)
from tests.services.inference.providers.upstream_calls import (
    failure,
    reason_of,
    streamed,
)


async def test_a_post_sends_body_and_headers_of_the_provider(here: ScriptedUpstream) -> None:
    here.server.plays(lambda c: c.answer(b' {"a":1}\n'))
    body = await here.upstream().post("/x", b'{"q":2}', headers=[("beta", "b")])
    assert body == b' {"a":1}\n'
    request = here.server.requests[0]
    assert (request.target, request.body) == ("/v1/x", b'{"q":2}')
    sent = {name: request.headers[name] for name in ("authorization", "content-type", "beta")}
    assert sent == {
        "authorization": "Bearer very-secret-word",
        "content-type": "application/json",
        "beta": "b",
    }


async def test_the_query_of_the_base_url_goes_with_every_request(here: ScriptedUpstream) -> None:
    here.server.plays(lambda c: c.answer(b"{}"))
    await here.upstream(here.server.url + "/?api-version=a%20b").post("/x", b"{}")
    assert here.server.requests[0].target == "/v1/x?api-version=a+b"


async def test_a_path_may_name_a_model_and_have_a_query(here: ScriptedUpstream) -> None:
    here.server.plays(lambda c: c.answer(b"{}"))
    upstream = here.upstream(here.server.url + "?api-version=a")
    await upstream.post("/models/gemini-2.5-pro:stream?alt=sse", b"{}")
    target = here.server.requests[0].target
    assert target == "/v1/models/gemini-2.5-pro:stream?api-version=a&alt=sse"


async def test_a_gzipped_answer_is_unpacked(here: ScriptedUpstream) -> None:
    here.server.plays(
        lambda c: c.answer(gzip.compress(b'{"a":1}'), headers="content-encoding: gzip")
    )
    assert await here.upstream().post("/x", b"{}") == b'{"a":1}'


async def test_calls_one_after_the_other_share_a_connection(here: ScriptedUpstream) -> None:
    async def script(connection: Connection) -> None:
        if len(here.server.requests) % 2:
            await connection.answer(b"{}")
        else:
            await connection.send(SSE_HEAD)
            await connection.chunk(b"data: last\n\n")
            await connection.send(END)

    here.server.plays(script)
    for _ in range(3):
        await here.upstream().post("/x", b"{}")
        await streamed(here.upstream())
    assert here.server.connections == 1


async def test_a_redirect_is_a_failure_and_is_not_followed(here: ScriptedUpstream) -> None:
    here.server.plays(lambda c: c.answer(b"", 307, f"location: {here.server.url}/y"))
    error = await failure(here.upstream(), stream=False)
    assert (reason_of(error), error.status) == ("UPSTREAM_ERROR", 307)
    assert len(here.server.requests) == 1


async def test_no_cookie_that_a_provider_sets_comes_back_to_it(here: ScriptedUpstream) -> None:
    here.server.plays(lambda c: c.answer(b"{}", headers="set-cookie: a=b"))
    await here.upstream().post("/x", b"{}")
    await here.upstream().post("/x", b"{}")
    assert "cookie" not in here.server.requests[1].headers


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_is_classified_with_its_body_and_wait(
    here: ScriptedUpstream, stream: bool
) -> None:
    here.server.plays(lambda c: c.answer(b'{"error":"slow down"}', 429, "Retry-After: 1.5"))
    error = await failure(here.upstream(), stream=stream)
    assert (reason_of(error), error.status) == ("UPSTREAM_RATE_LIMITED", 429)
    assert (error.body, error.retry_after_s) == ('{"error":"slow down"}', 2)


@pytest.mark.parametrize("status", [401, 429, 500])
async def test_the_log_has_what_is_hidden_from_callers(here: ScriptedUpstream, status: int) -> None:
    told = b'{"error":{"type":"t","code":"c","message":"Org o1\\nowes, I saw very-secret-word"}}'
    here.server.plays(lambda c: c.answer(told, status))
    error = await failure(here.upstream(), stream=False)
    assert "Org" not in error.message
    assert error.cause() == r"t/c: Org o1\nowes, I saw [redacted]"


async def test_the_log_has_the_beginning_of_long_words(here: ScriptedUpstream) -> None:
    here.server.plays(lambda c: c.answer(b'{"error":"%s"}' % (b"x" * 10_000), 500))
    assert len((await failure(here.upstream(), stream=False)).cause()) == 500


async def test_the_key_sent_is_taken_out_of_the_providers_words(here: ScriptedUpstream) -> None:
    here.server.plays(lambda c: c.answer(b'{"error":"I saw very-secret-word"}', 400))
    error = await failure(here.upstream(), stream=False)
    assert error.message == "I saw [redacted]"


async def test_of_an_endless_error_body_only_the_beginning_is_read(here: ScriptedUpstream) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 500 S\r\n\r\n")
        while True:
            await connection.send(b"x" * 4096)

    here.server.plays(script)
    error = await failure(here.upstream(), stream=False)
    assert (error.status, len(error.body)) == (500, 4096)


async def test_an_error_without_its_body_has_its_status(here: ScriptedUpstream) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 503 S\r\ncontent-length: 9\r\n\r\n")
        await connection.until_left()

    here.server.plays(script)
    error = await failure(here.upstream(stream_idle_s=0.05), stream=False)
    assert (reason_of(error), error.status) == ("UPSTREAM_ERROR", 503)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_over_the_bound_is_a_failure_and_left(stream: bool) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        while True:
            await connection.chunk(b"data: x\n\n" * 1000)

    async with scripted_upstream(Client(60, max_answer_bytes=1 << 20)) as here:
        here.server.plays(script)
        error = await failure(here.upstream(), stream=stream)
        assert (reason_of(error), error.limit) == ("UPSTREAM_ERROR", "limits.max_answer_bytes")
        await asyncio.wait_for(here.server.left.wait(), 60)


async def test_an_answer_other_than_a_json_object_is_a_failure(here: ScriptedUpstream) -> None:
    for body in (b"<html>", b"[1]", b'{"a":'):
        with pytest.raises(UpstreamError) as raised:
            here.upstream().json_object(body)
        assert (reason_of(raised.value), raised.value.body) == ("UPSTREAM_ERROR", body.decode())


async def test_an_error_in_an_answer_of_200_is_an_error(here: ScriptedUpstream) -> None:
    with pytest.raises(UpstreamError) as raised:
        here.upstream().json_object(b'{"error":{"type":"overloaded_error"}}')
    assert reason_of(raised.value) == "UPSTREAM_OVERLOADED"


@pytest.mark.parametrize("stream", [False, True])
async def test_no_server_at_the_address_is_a_connection_failure(
    here: ScriptedUpstream, stream: bool
) -> None:
    with refusing_port() as port:
        error = await failure(here.upstream(f"http://127.0.0.1:{port}"), stream=stream)
    assert (reason_of(error), error.status) == ("UPSTREAM_CONNECTION", None)


async def test_a_plain_server_at_an_https_url_is_a_failure(here: ScriptedUpstream) -> None:
    async def answer_in_the_clear(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 S\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer_in_the_clear, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        error = await failure(here.upstream(f"https://127.0.0.1:{port}"), stream=False)
    assert reason_of(error) == "UPSTREAM_CONNECTION"


@pytest.mark.parametrize(
    ("address", "said", "cause"),
    [
        ("http://127.0.0.1:{}", "refused the connection", "127.0.0.1:{}: [Errno 111]"),
        ("http://nowhere.invalid:{}", "could not be resolved", "nowhere.invalid:{}: [Errno"),
        ("https://127.0.0.1:{}", "TLS connection to the provider", "127.0.0.1:{}: [SSL"),
    ],
    ids=["refused", "no name", "no TLS"],
)
async def test_a_connection_that_does_not_come_about_says_why(
    address: str, said: str, cause: str
) -> None:
    async def answer_in_the_clear(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 S\r\n\r\n")
        writer.close()

    with refusing_port() as port:
        async with (
            scripted_upstream(Client(connect_timeout_s=60)) as here,
            await asyncio.start_server(answer_in_the_clear, "127.0.0.1", 0) as server,
        ):
            if address.startswith("https"):
                port = server.sockets[0].getsockname()[1]
            error = await failure(here.upstream(address.format(port)), stream=False)
    assert said in error.message
    assert error.cause().startswith(cause.format(port))


@pytest.mark.parametrize("before", [b"", SSE_HEAD, SSE_HEAD + b"9\r\ndata: a\n\n\r\n"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_connection_that_breaks_is_a_connection_failure(
    here: ScriptedUpstream, stream: bool, before: bytes
) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(before)
        connection.reset()

    here.server.plays(script)
    assert reason_of(await failure(here.upstream(), stream=stream)) == "UPSTREAM_CONNECTION"


async def test_a_body_shorter_than_it_said_is_a_connection_failure(here: ScriptedUpstream) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 200 S\r\ncontent-length: 9\r\n\r\n{}")
        connection.close()

    here.server.plays(script)
    assert reason_of(await failure(here.upstream(), stream=False)) == "UPSTREAM_CONNECTION"


async def test_something_that_is_not_http_is_a_failure(here: ScriptedUpstream) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(b"220 smtp ready\r\n\r\n")
        connection.close()

    here.server.plays(script)
    assert reason_of(await failure(here.upstream(), stream=False)) == "UPSTREAM_ERROR"


async def test_silence_before_the_answer_ends_at_the_step_timeout(here: ScriptedUpstream) -> None:
    here.server.plays(lambda c: c.answer(b"{}"))
    await here.upstream().post("/x", b"{}")  # opens the connection, so that no pause prevents it
    here.server.plays(lambda c: c.until_left())
    error = await failure(here.upstream(step_timeout_s=0.05), stream=False)
    assert (reason_of(error), error.status) == ("UPSTREAM_TIMEOUT", None)
    await asyncio.wait_for(here.server.left.wait(), 60)


async def test_a_post_that_its_caller_bounds_has_that_bound_alone(here: ScriptedUpstream) -> None:
    async def script(connection: Connection) -> None:
        silent.set()
        await connection.until_left()

    here.server.plays(script)
    silent = asyncio.Event()
    upstream = here.upstream(step_timeout_s=0.01)
    call = asyncio.ensure_future(upstream.post_unbounded("/x", b""))
    await silent.wait()
    await asyncio.wait([call], timeout=0.05)
    assert not call.done()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(here.server.left.wait(), 60)


@pytest.mark.parametrize("sent", [b"", SSE_HEAD, SSE_HEAD + b"9\r\ndata: a\n\n\r\n"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_cancelled_call_closes_its_connection_at_once(
    here: ScriptedUpstream, stream: bool, sent: bytes
) -> None:
    waiting = asyncio.Event()

    async def script(connection: Connection) -> None:
        await connection.send(sent)
        waiting.set()
        await connection.until_left()

    here.server.plays(script)
    upstream = here.upstream()
    call = asyncio.ensure_future(streamed(upstream) if stream else upstream.post("/x", b"{}"))
    await waiting.wait()
    assert here.live.count == 1
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert here.live.count == 0
    await asyncio.wait_for(here.server.left.wait(), 60)
