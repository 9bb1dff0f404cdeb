"""Recorded usage of requests, whatever the outcome of their attempts."""

import asyncio
from contextlib import aclosing
from typing import Any

import orjson
import pytest

from gateway.accounts.v1.accounts_pb2 import PLAN_PERSONAL_FREE
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Message, Opaque, Usage
from gateway.inference.v1.inference_pb2 import Event
from services.common.errors import GatewayError
from services.common.grpc.authentication import Caller, caller
from services.common.process import logs
from services.common.text.tokens import estimate_tokens
from services.inference.request.estimate import estimate_input_tokens
from services.inference.usage.lines import CANCELLED, FAILED, SERVED, UsedLine, UsedModel
from services.inference.usage.metering import Metering
from tests.services.inference.fallback.scripted_engine import (
    AUTO,
    DISABLED,
    ScriptedEngine,
    answer,
    broken,
    chain,
    ending,
    failing,
    opening,
    request,
    start,
)
from tests.waiting import until

MESSAGE = Message(role=conversation.ROLE_USER, blocks=[Block(text="Hi there")])
# The estimated tokens of "Hello".
HELLO = estimate_tokens("Hello")
WHOLE_AND_STREAMED = pytest.mark.parametrize("stream", [False, True])


class Lines:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.written: list[UsedLine] = []

    def now(self) -> float:
        return 1.0

    def write(self, values: tuple[Any, ...], head: tuple[Any, ...] = ()) -> None:
        if head:
            user, team, key, endpoint, requested, *named, step, outcome, is_whole, attempts = head
            time_s, request_id, first_ms, duration_ms, *counts = values
            assert is_whole
            used = [(*named, None) if counts[0] is None else (*named, *counts, None, False)]
            values = (
                *(time_s, request_id, user, team, key, endpoint, requested, step, outcome),
                *(attempts, first_ms, duration_ms, False, used),
            )
        line = UsedLine(*orjson.loads(orjson.dumps(values)))
        self.written.append(line._replace(used=[UsedModel(*one) for one in line.used]))

    @property
    def only(self) -> UsedLine:
        [line] = self.written
        return line


@pytest.fixture
def lines() -> Lines:
    caller.set(Caller("user_1", "team_1", PLAN_PERSONAL_FREE, "key_1"))
    logs.request_id.set("req_1")
    return Lines()


def metered(lines: Lines, **settings: Any) -> ScriptedEngine:
    return ScriptedEngine(metering=Metering(lines), **settings)


def reporting(text: str, first: Usage, last: Usage) -> list[Any]:
    """Return a script that tells usage at its head and at its end, as Anthropic's models do."""
    return [[start(), Event(usage=first), *opening(text)], [*ending()[:2], Event(usage=last)]]


@WHOLE_AND_STREAMED
async def test_a_served_request_is_one_line(lines: Lines, stream: bool) -> None:
    there = metered(lines)
    usage = Usage(
        input_tokens=10,
        output_tokens=7,
        cache_read_input_tokens=3,
        cache_creation_input_tokens=2,
        reasoning_tokens=4,
        extra=Opaque(json=b'{"server_tool_use":{"web_search_requests":2},"service_tier":"std"}'),
    )
    there.p.plays("a", reporting("secret words", Usage(input_tokens=10), usage))
    await there.ask(stream, request("a", dialect=conversation.DIALECT_ANTHROPIC))
    line = lines.only
    assert line[:8] == (*(1.0, "req_1", "user_1", "team_1", "key_1", "messages", "a", "primary"),)
    assert (line.outcome, line.attempts, line.is_helper) == (SERVED, 1, False)
    assert [tuple(used) for used in line.used] == [
        ("a", "p", "a", 10, 7, 3, 2, 4, {"web_search": 2}, False, False)
    ]
    assert "secret" not in repr(line) and "std" not in repr(line)


@WHOLE_AND_STREAMED
async def test_the_last_of_several_usages_counts(lines: Lines, stream: bool) -> None:
    there = metered(lines)
    usages = [Event(usage=Usage(input_tokens=10, output_tokens=count)) for count in (1, 2, 3)]
    there.p.plays("a", [[start(), *opening("Hello"), *ending()[:2], *usages]])
    await there.ask(stream, request())
    [used] = lines.only.used
    assert (used.input_tokens, used.output_tokens) == (10, 3)


@WHOLE_AND_STREAMED
async def test_a_failed_request_is_a_line_without_usage(lines: Lines, stream: bool) -> None:
    there = metered(lines, fallbacks=())
    there.p.plays("a", [failing(401)])
    with pytest.raises(GatewayError):
        await there.ask(stream, request())
    assert (lines.only.outcome, lines.only.attempts, lines.only.first_ms) == (FAILED, 1, None)
    assert [used.input_tokens for used in lines.only.used] == [None]


@WHOLE_AND_STREAMED
async def test_the_model_that_answered_comes_first(lines: Lines, stream: bool) -> None:
    there = metered(lines)
    there.p.plays("a", [failing(401)])
    await there.ask(stream, chain("a", "b"))
    line = lines.only
    assert (line.outcome, line.attempts, line.step, line.requested) == (SERVED, 2, "s2", "a")
    assert [used.model for used in line.used] == ["b"]


async def test_what_a_broken_answer_cost_is_included(lines: Lines) -> None:
    there = metered(lines)
    head = Usage(input_tokens=50, output_tokens=1)
    script = broken("Hello")
    there.p.plays("a", [[start(), Event(usage=head), *opening("Hello")], script[1]])
    there.p.plays("b", reporting("Hello you", head, Usage(input_tokens=60, output_tokens=9)))
    await there.stream(chain("a", "b"))
    line = lines.only
    assert (line.outcome, line.attempts) == (SERVED, 2)
    assert [
        (used.model, used.input_tokens, used.output_tokens, used.is_estimated) for used in line.used
    ] == [
        ("b", 60, 9, False),
        # Its last report was of one token, and more was delivered.
        ("a", 50, HELLO, True),
    ]


async def test_attempts_at_one_model_are_added_up(lines: Lines) -> None:
    there = metered(lines, fallbacks=())
    head = Usage(input_tokens=50, output_tokens=1)
    there.p.plays(
        "a",
        [[start(), Event(usage=head), *opening("Hello")], broken("")[1]],
        reporting("Hello you", head, Usage(input_tokens=50, output_tokens=9)),
    )
    await there.stream(request(fallback=AUTO))
    assert [
        (used.model, used.input_tokens, used.output_tokens, used.is_estimated)
        for used in lines.only.used
    ] == [("a", 100, HELLO + 9, True)]


FALLBACKS = pytest.mark.parametrize("fallback", [AUTO, DISABLED])


async def leave(there: ScriptedEngine, fallback: int) -> None:
    """Request a stream, and leave after its first batch."""
    asked = request(fallback=fallback, messages=[MESSAGE])
    async with aclosing(await there.engine.stream(asked)) as batches:
        async for _ in batches:
            break
        await asyncio.sleep(0)


@FALLBACKS
async def test_a_caller_who_leaves_has_used_what_was_delivered(lines: Lines, fallback: int) -> None:
    there = metered(lines)
    head = Usage(input_tokens=50, output_tokens=1, cache_read_input_tokens=4)
    there.p.plays("a", [[start(), Event(usage=head), *opening("Hello")], 1e6])
    await leave(there, fallback)
    line = lines.only
    assert line.outcome == CANCELLED
    assert line.used == [UsedModel("a", "p", "a", 50, HELLO, 4, is_estimated=True)]


@FALLBACKS
async def test_what_no_provider_reports_is_estimated(lines: Lines, fallback: int) -> None:
    there = metered(lines)
    there.p.plays("a", [[start(), *opening("Hello")], 1e6])
    await leave(there, fallback)
    [used] = lines.only.used
    read = estimate_input_tokens(request(messages=[MESSAGE]))
    assert used == UsedModel("a", "p", "a", read, HELLO, is_estimated=True)


@FALLBACKS
async def test_a_stream_that_breaks_off_is_estimated(lines: Lines, fallback: int) -> None:
    there = metered(lines, fallbacks=())
    there.p.plays("a", broken("Hello"), broken("Hello"), broken("Hello"))
    with pytest.raises(GatewayError):
        await there.stream(request(fallback=fallback))
    line = lines.only
    [used] = line.used
    assert (line.outcome, used.is_estimated) == (FAILED, True)
    # What later attempts repeated was not delivered again.
    assert used.output_tokens == HELLO


@WHOLE_AND_STREAMED
async def test_an_answer_without_usage_is_estimated(lines: Lines, stream: bool) -> None:
    there = metered(lines)
    there.p.plays("a", [[start(), *opening("Hello")], ending()[:2]])
    if stream:
        await there.stream(request())
    else:
        await there.engine.generate(request())
    [used] = lines.only.used
    assert (used.output_tokens, used.is_estimated) == (HELLO, True)
    assert used.input_tokens


async def test_who_leaves_before_the_first_content_has_sent(lines: Lines) -> None:
    there = metered(lines)
    there.p.plays("a", [1e6])
    asking = asyncio.create_task(there.ask(False, request(fallback=DISABLED)))
    await until(lambda: there.p.calls)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    [used] = lines.only.used
    assert (lines.only.outcome, used.output_tokens, used.is_estimated) == (CANCELLED, 0, True)
    assert used.input_tokens


async def test_work_of_the_gateway_is_a_task(lines: Lines) -> None:
    caller.set(Caller("user_1", "", PLAN_PERSONAL_FREE, ""))
    await metered(lines).ask(False, request())
    assert (lines.only.endpoint, lines.only.key_id) == ("task", "")


async def test_a_part_of_a_request_says_which(lines: Lines) -> None:
    there = metered(lines)
    await there.engine.generate(request(), task="describe_image")
    assert (lines.only.is_helper, lines.only.step) == (True, "describe_image")


async def test_counting_tokens_uses_nothing(lines: Lines) -> None:
    await metered(lines).engine.count_tokens(request())
    assert lines.written == []


async def test_nothing_is_written_where_usage_is_off(lines: Lines) -> None:
    there = ScriptedEngine()
    there.p.plays("a", answer("Hi"))
    await there.ask(True, request())
    assert lines.written == []
