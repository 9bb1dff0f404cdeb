"""Bodies that another process parses: the same requests and errors, and nobody left behind."""

import json
import os
import signal
import threading

import orjson
import pytest
import pytest_asyncio

from facade import parsing
from facade.dialects import anthropic, openai
from facade.parsing import CHAT, COUNT_TOKENS, MESSAGES, RESPONSES, ParserPool, is_quick, parse
from services.common.errors import GatewayError
from services.common.messages.lazy_request import LazyRequest
from tests.bench import processes
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

MANY = [{"role": "user", "content": str(number)} for number in range(20_000)]


def body(**fields: object) -> bytes:
    return json.dumps({"model": "m", "max_tokens": 5, "messages": MANY, **fields}).encode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool():
    one = ParserPool(1, 1_000_000)
    yield one
    await one.close()


def children() -> set[int]:
    """Return what this process has started itself: a database's processes come and go."""
    return set(processes.children(os.getpid()))


def assert_equal(there: LazyRequest, here: LazyRequest) -> None:
    """Compare a request that another process has read with one that is read here."""
    assert there.request == here.request
    assert there.verbatim == here.verbatim
    assert there.plain == here.plain
    assert there.has_whole_body == here.has_whole_body
    assert there.requires_official_api == here.requires_official_api
    assert not there.is_small  # work on it is done in a thread
    assert there.ByteSize() == here.ByteSize()
    assert there.complete() == here.complete()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_chat_is_the_same_as_here(pool, stream):
    fields = {"stream": stream, "stream_options": {"include_usage": True}} if stream else {}
    # In parts, which a server gets as one text, or which OpenAI's own server alone takes.
    parts = [{"type": "text", "text": text} for text in ("Be", "brief.")]
    in_parts = [{"role": role, "content": parts} for role in ("assistant", "user")]
    sent = body(**fields, messages=[*MANY, *in_parts])
    assert not is_quick(sent)
    parsed = await pool.parse(CHAT, [sent])
    here = parse(CHAT, [sent], {}, 1_000_000)
    assert here.request.requires_official_api
    assert_equal(parsed.request, here.request)
    assert parsed.source_map == here.source_map
    assert (parsed.stream, parsed.include_usage) == (stream, stream)


async def test_a_chat_with_an_image_is_the_same_as_here(pool):
    image = {"type": "image_url", "image_url": {"url": "https://images.example/1.png"}}
    fields = {"messages": [*MANY, {"role": "user", "content": [image]}]}
    parsed = await pool.parse(CHAT, [body(**fields)])
    here = openai.parse_chat(body(**fields)).request
    here.takes_passthrough = True
    assert parsed.request.parse() == here


@pytest.mark.parametrize("system", ["Be brief.", [{"type": "text", "text": "Be brief."}]])
async def test_messages_are_the_same_as_here(pool, system):
    turns = [{"role": ("user", "assistant")[number % 2], "content": "a"} for number in range(9_999)]
    options = {"betas": ["a", "b"], "coding": True}
    sent = body(messages=turns, system=system, tools=[{"name": "f", "input_schema": {"a": {}}}])
    parsed = await pool.parse(MESSAGES, [sent], **options)
    assert_equal(parsed.request, parse(MESSAGES, [sent], options, 1_000_000).request)


async def test_a_response_is_the_same_as_here(pool):
    sent = json.dumps({"model": "m", "input": MANY, "instructions": "Be brief.", "store": False})
    parsed = await pool.parse(RESPONSES, [sent.encode()])
    here = parse(RESPONSES, [sent.encode()], {}, 1_000_000)
    assert_equal(parsed.request, here.request)
    # Each process has an order of its own for the fields of a body.
    there, echo = (orjson.loads(b"{%b}" % each.state.echo.json) for each in (parsed, here))
    assert there == echo


async def test_a_count_is_the_same_as_here(pool):
    options = {"betas": ["a", "b"], "coding": True}
    parsed = await pool.parse(COUNT_TOKENS, [body()], **options)
    here = anthropic.parse_count_tokens(body(), **options).request
    here.takes_passthrough = True
    assert parsed.request.parse() == here


async def test_an_error_is_the_same_as_here(pool):
    wrong = body(temperature="warm")
    with pytest.raises(GatewayError) as there:
        await pool.parse(CHAT, [wrong])
    with pytest.raises(GatewayError) as here:
        openai.parse_chat(wrong)
    for name in ("code", "message", "param", "limit"):
        assert getattr(there.value, name) == getattr(here.value, name)


async def test_too_many_values_are_reported_with_the_limit():
    pool = ParserPool(1, 1000)
    with pytest.raises(GatewayError) as refused:
        await pool.parse(CHAT, [body()])
    assert refused.value.limit == "limits.max_body_values"
    await pool.close()


async def test_a_process_that_dies_is_replaced():
    pool = ParserPool(1, 1_000_000)
    before = children()
    await pool.parse(CHAT, [body()])
    (process,) = children() - before
    os.kill(process, signal.SIGKILL)
    await until(lambda: not processes.is_running(process))
    await pool.parse(CHAT, [body()])
    assert process not in children()
    await pool.close()
    assert children() == before


async def test_a_process_without_work_is_ended(monkeypatch):
    monkeypatch.setattr(parsing, "IDLE_S", 0.05)
    pool = ParserPool(1, 1_000_000)
    before = children()
    await pool.parse(CHAT, [body()])
    await until(lambda: children() == before)
    await pool.close()


async def test_a_small_body_needs_no_process():
    pool = ParserPool(1, 1_000_000)
    before = children()
    small = json.dumps({"model": "m", "messages": MANY[:10]}).encode()
    assert (await pool.parse(CHAT, [small])).model == "m"
    assert children() == before
    await pool.close()


@pytest.mark.parametrize(
    ("text", "quick"),
    [
        (b"x" * (2 << 20), True),
        (b"x" * (4 << 20), False),
        (b"[" * 100_000, True),
        (b"[" * 200_000, False),
    ],
)
async def test_small_bodies_are_recognised_by_size_and_punctuation(text, quick):
    assert is_quick(text) is quick


@pytest.mark.parametrize(("size", "is_apart"), [(100_000, False), (1_000_000, True)])
async def test_a_body_of_some_size_is_parsed_in_a_thread(pool, monkeypatch, size, is_apart):
    threads, parse = [], parsing.parse

    def noting(*arguments, **options):
        threads.append(threading.get_ident())
        return parse(*arguments, **options)

    monkeypatch.setattr(parsing, "parse", noting)
    before = children()
    asked = {"model": "m", "messages": [{"role": "user", "content": "x" * size}]}
    assert (await pool.parse(CHAT, [json.dumps(asked).encode()])).model == "m"
    assert (threads == [threading.get_ident()]) is not is_apart
    assert children() == before
