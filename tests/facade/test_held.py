"""Nothing of a request's body is held while its answer is awaited, however large the body is.

The services hold the request that it was parsed into.
"""

import asyncio
import sys

import orjson
import pytest

from facade.dialects import anthropic, openai
from tests.faults import actions
from tests.faults.upstream import fault_upstream
from tests.gateway_in_process import running_gateway
from tests.waiting import until

SOON_S = 20.0
MESSAGES = [{"role": "user", "content": "Hello"}]
DIALECTS = [
    ("/beta/v1/chat/completions", openai, "parse_chat"),
    ("/beta/v1/messages", anthropic, "parse_messages"),
]
# What holds an object that a test keeps in a list, when it is asked how many do.
ONLY_THE_TEST = 2


@pytest.fixture
async def upstream():
    async with fault_upstream() as one:
        one.plays("silent", actions.says_nothing())
        yield one


@pytest.fixture
async def gateway(tmp_path, upstream):
    async with running_gateway(tmp_path, upstream.url) as one:
        yield one


@pytest.mark.parametrize(("path", "dialect", "parse"), DIALECTS)
@pytest.mark.parametrize("stream", [False, True])
async def test_nothing_of_a_body_is_held_while_its_answer_is_awaited(
    gateway, upstream, monkeypatch, path, dialect, parse, stream
):
    held = []
    real = getattr(dialect, parse)

    def noted(body, **named):
        parsed = real(body, **named)
        held.append(body)
        return parsed

    monkeypatch.setattr(dialect, parse, noted)
    body = {"model": "openai/silent", "max_tokens": 9, "messages": MESSAGES, "stream": stream}
    asking = asyncio.create_task(
        gateway.http.post(gateway.url + path, json=body, headers=gateway.api_key())
    )
    try:
        await until(lambda: upstream.busy, within_s=SOON_S)
        holders = sys.getrefcount(held[0])
        assert holders == ONLY_THE_TEST
    finally:
        asking.cancel()


@pytest.mark.parametrize("dialect", [openai, anthropic])
def test_a_body_goes_as_soon_as_it_is_read(monkeypatch, dialect):
    bodies = [orjson.dumps({"model": "m", "max_tokens": 9, "messages": MESSAGES})]
    counted = []
    module = sys.modules[f"{dialect.__name__}.request"]
    real = module.add_messages

    def add_messages(*arguments):
        counted.append(sys.getrefcount(bodies[0]))
        real(*arguments)

    monkeypatch.setattr(module, "add_messages", add_messages)
    # As routes do: with nothing between that would hold it too.
    if dialect is openai:
        openai.parse_chat(bodies[0])
    else:
        anthropic.parse_messages(bodies[0], betas=[], coding=False)
    assert counted == [ONLY_THE_TEST]
