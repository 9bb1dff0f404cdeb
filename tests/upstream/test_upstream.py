"""The upstream's HTTP server: silent and cut answers, callers that disconnect, the log."""

import asyncio

import aiohttp
import pytest

from tests.upstream.app import serving
from tests.upstream.log import RequestLog

OPENAI = ("/v1/chat/completions", {"Authorization": "Bearer sk-secret"})
ANTHROPIC = ("/v1/messages", {"x-api-key": "k-secret", "anthropic-version": "2023-06-01"})
BOTH = pytest.mark.parametrize(
    ("path", "headers"), [OPENAI, ANTHROPIC], ids=["openai", "anthropic"]
)


def body(model, **fields):
    return {
        "model": model,
        "max_tokens": 99,
        "messages": [{"role": "user", "content": "hi"}],
        **fields,
    }


@pytest.fixture
async def session(upstream):
    async with aiohttp.ClientSession(upstream.url) as made:
        yield made


async def until_open(session, count):
    """Wait until that many requests are open."""
    async with asyncio.timeout(60):
        while True:
            async with session.get("/sandbox/live") as response:
                if (await response.json())["open"] == count:
                    return


@BOTH
@pytest.mark.parametrize("stream", [True, False])
async def test_a_silent_model_sends_no_headers_and_notices_who_leaves(
    upstream, session, path, headers, stream
):
    asking = asyncio.create_task(
        session.post(path, json=body("stall", stream=stream), headers=headers)
    )
    await until_open(session, 1)
    assert not asking.done()
    asking.cancel()
    await until_open(session, 0)
    assert upstream.log.live.aborted == 1
    assert upstream.log.entries[0].status is None


@BOTH
@pytest.mark.parametrize(
    ("model", "says"), [("stall-open", b'"content":'), ("stall-half", b"Sandbox")]
)
async def test_a_stream_falls_silent_once_open(upstream, session, path, headers, model, says):
    async with session.post(path, json=body(model, stream=True), headers=headers) as response:
        assert response.status == 200
        seen = b""
        while says not in seen:
            seen += await response.content.readany()
        assert upstream.log.live.open == 1
        assert b"stop" not in seen.replace(b'"stop_', b"")
        response.close()
    await until_open(session, 0)
    assert upstream.log.live.aborted == 1


@BOTH
@pytest.mark.parametrize("stream", [True, False])
async def test_a_cut_answer_breaks_in_the_middle(upstream, session, path, headers, stream):
    async with session.post(path, json=body("cut", stream=stream), headers=headers) as response:
        assert response.status == 200
        seen = b""
        with pytest.raises(aiohttp.ClientPayloadError):
            async for part in response.content.iter_any():
                seen += part
    assert b'"assistant"' in seen
    assert b"said" not in seen or not stream
    assert upstream.log.live.aborted == 0


@pytest.mark.parametrize("stream", [True, False])
async def test_slow_waits_before_each_piece(stream):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    path, headers = ANTHROPIC
    async with (
        serving(sleep=sleep) as upstream,
        aiohttp.ClientSession(upstream.url) as session,
        session.post(path, json=body("slow", stream=stream), headers=headers) as response,
    ):
        text = await response.text()
    assert waits == [0.05] * len(waits)
    if stream:
        assert text.count("text_delta") == len(waits) > 3


async def test_the_log_has_the_requests_without_credentials(upstream, session):
    for path, headers in (OPENAI, ANTHROPIC):
        (await session.post(path, json=body("echo"), headers=headers)).release()
    async with session.get("/sandbox/log") as response:
        first, second = await response.json()
        assert "secret" not in await response.text()
    assert (first["path"], first["dialect"], first["status"]) == (OPENAI[0], "openai", 200)
    assert first["body"] == body("echo")
    assert first["headers"]["authorization"] == "Bearer [redacted]"
    assert second["headers"]["x-api-key"] == "[redacted]"
    assert second["headers"]["anthropic-version"] == "2023-06-01"
    async with session.delete("/sandbox/log") as response:
        assert response.status == 204
    assert not upstream.log.entries


async def test_live_requests_are_counted(session):
    async with session.get("/sandbox/live") as response:
        assert await response.json() == {"open": 0, "aborted": 0}


@BOTH
@pytest.mark.parametrize("sent", [b"{", b"[]", b"\xff"])
async def test_a_body_that_is_no_object_is_refused(session, path, headers, sent):
    async with session.post(path, data=sent, headers=headers) as response:
        assert response.status == 400
        assert (await response.json())["error"]["type"] == "invalid_request_error"


async def test_an_unknown_path_is_reported_in_the_callers_shape(session):
    async with session.get("/v1/nowhere") as response:
        assert response.status == 404
        assert (await response.json())["error"]["code"] == "unknown_url"
    async with session.put("/v1/messages", headers=ANTHROPIC[1]) as response:
        assert response.status == 404
        assert (await response.json())["error"]["type"] == "not_found_error"


def test_a_log_forgets_its_oldest_entries_and_large_bodies():
    log = RequestLog(max_entries=2, max_body_bytes=10)
    for number in range(3):
        entry = log.add(f"/{number}", "openai", [("Cookie", "a=b"), ("Accept", "*/*")])
        log.keep_body(entry, {"n": number}, 11 if number == 2 else 10)
    assert [(entry["path"], entry["body"]) for entry in log.as_json()] == [
        ("/1", {"n": 1}),
        ("/2", None),
    ]
    assert log.entries[0].headers == {"cookie": "[redacted]", "accept": "*/*"}
