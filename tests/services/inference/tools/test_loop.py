"""The rounds of one answer, with models that play scripts."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

import pytest

from gateway.conversation.v1 import conversation_pb2 as c
from gateway.conversation.v1.conversation_pb2 import Block, Message, Opaque, ToolUse, Usage
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import (
    BlockStop,
    Event,
    Finish,
    GenerateRequest,
    GenerateResponse,
    RetryPolicy,
    Tool,
    ToolChoice,
)
from services.common.errors import GatewayError, UpstreamError
from services.inference.stream.accumulator import whole_of
from services.inference.tools.loop import MAX_CALLS, MAX_ROUNDS
from services.inference.tools.running import WebTools
from tests.services.inference.fallback.scripted_engine import (
    FOREVER,
    ScriptedEngine,
    answer,
    chain,
    cut,
    failing,
    start,
)
from tests.services.inference.fallback.virtual_time import in_no_time
from tests.web_tools import Web

STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
CALLS_TOOLS = c.FINISH_REASON_TOOL_USE


class SearchingEngine(ScriptedEngine):
    """An engine that has a web."""

    def __init__(self, fallbacks: Sequence[str] = ()) -> None:
        super().__init__(fallbacks=fallbacks)
        self.web = Web()
        tools = WebTools(self.web, self.web, self.engine._metrics)
        self.engine.routes = replace(self.engine.routes, web=tools)

    async def tell(self, stream: bool, request: GenerateRequest) -> GenerateResponse:
        if not stream:
            return await self.engine.generate(request)
        # Putting it together checks the order of the events.
        return whole_of(await self.batches(request))

    def rounds(self) -> list[GenerateRequest]:
        return [call.request for _, call in self.p.calls]


def wanted(**fields) -> GenerateRequest:
    messages = [Message(role=c.ROLE_USER, blocks=[Block(text="Find it.")])]
    request = GenerateRequest(model="a", messages=messages, use_built_in_tools=True)
    request.MergeFrom(GenerateRequest(**fields))
    return request


def call(index: int = 0, name: str = "web_search", arguments: str = '{"query":"q"}') -> list[Event]:
    use = ToolUse(id=f"call_{index}", name=name)
    return [
        Event(block=index, block_start=Block(tool_use=use)),
        Event(block=index, input=arguments),
        Event(block=index, block_stop=BlockStop()),
    ]


def calling(
    *calls: list[Event], tokens: int | None = 5, reason: c.FinishReason.ValueType = CALLS_TOOLS
) -> Sequence[Sequence[Event]]:
    usage = [] if tokens is None else [Event(usage=Usage(input_tokens=10, output_tokens=tokens))]
    end = [Event(finish=Finish(reason=reason)), *usage]
    return [[start(), *(event for one in calls for event in one)], end]


def kinds(response: GenerateResponse) -> list[str]:
    return [block.WhichOneof("kind") or "" for block in response.choices[0].blocks]


def reason(response: GenerateResponse) -> int:
    return response.choices[0].finish.reason


@STREAMED
async def test_what_was_found_goes_to_the_model(stream):
    scripted = SearchingEngine()
    scripted.p.plays("a", calling(call()), answer("Found."))
    response = await scripted.tell(stream, wanted())
    assert kinds(response) == ["server_tool_use", "server_tool_result", "text"]
    assert reason(response) == c.FINISH_REASON_END_TURN
    assert response.usage.output_tokens == 8
    assert response.usage.web_search_requests == 1
    first, second = scripted.rounds()
    assert [tool.name for tool in first.tools] == ["web_search", "web_fetch"]
    made, results = second.messages[1:]
    assert made.blocks[0].tool_use.input == '{"query":"q"}'
    assert results.blocks[0].tool_result.tool_use_id == made.blocks[0].tool_use.id
    assert "Typst sets documents." in results.blocks[0].tool_result.blocks[0].text


@STREAMED
async def test_a_model_that_never_stops_is_paused(stream):
    scripted = SearchingEngine()
    scripted.p.plays("a", calling(call()))
    response = await scripted.tell(stream, wanted())
    assert len(scripted.rounds()) == MAX_ROUNDS
    assert len(scripted.web.queries) == MAX_ROUNDS - 1
    assert reason(response) == c.FINISH_REASON_PAUSE_TURN
    refused = response.choices[0].blocks[-1].server_tool_result
    assert refused.error_code == "max_uses_exceeded"
    last = scripted.rounds()[-1]
    assert last.tool_choice.mode == ToolChoice.MODE_NONE
    assert "cannot be used any more" in last.messages[-1].blocks[0].text


async def test_the_callers_tools_may_be_called_in_the_last_round():
    scripted = SearchingEngine()
    scripts = [calling(call())] * (MAX_ROUNDS - 1)
    scripted.p.plays("a", *scripts, calling(call(name="own")))
    response = await scripted.tell(True, wanted(tools=[Tool(name="own")]))
    assert [tool.name for tool in scripted.rounds()[-1].tools] == ["own"]
    assert kinds(response)[-1] == "tool_use"
    assert reason(response) == CALLS_TOOLS


@STREAMED
async def test_more_calls_at_once_than_are_run(stream):
    scripted = SearchingEngine()
    calls = [call(index) for index in range(MAX_CALLS + 2)]
    scripted.p.plays("a", calling(*calls), answer("Found."))
    response = await scripted.tell(stream, wanted())
    results = [
        block.server_tool_result.error_code
        for block in response.choices[0].blocks
        if block.HasField("server_tool_result")
    ]
    assert results == [""] * MAX_CALLS + ["too_many_requests"] * 2
    assert len(scripted.web.queries) == MAX_CALLS


@STREAMED
async def test_calls_run_beside_each_other_and_are_reported_in_order(stream):
    scripted = SearchingEngine()
    barrier = asyncio.Barrier(2)
    search = scripted.web.search

    async def both(query, **bounds):
        await barrier.wait()
        return await search(query, **bounds)

    scripted.web.search = both
    scripted.p.plays("a", calling(call(0), call(1)), answer("Found."))
    async with asyncio.timeout(60):
        response = await scripted.tell(stream, wanted())
    blocks = response.choices[0].blocks
    called = [block.server_tool_use.id for block in blocks[:2]]
    assert [block.server_tool_result.tool_use_id for block in blocks[2:4]] == called


@STREAMED
async def test_calls_are_run_whatever_the_reason_says(stream):
    scripted = SearchingEngine()
    scripted.p.plays("a", calling(call(), reason=c.FINISH_REASON_END_TURN), answer("Found."))
    assert kinds(await scripted.tell(stream, wanted()))[-1] == "text"


@STREAMED
async def test_a_call_that_was_cut_off_is_not_run(stream):
    scripted = SearchingEngine()
    cut = call(arguments='{"que')
    scripted.p.plays("a", calling(cut, reason=c.FINISH_REASON_MAX_TOKENS))
    response = await scripted.tell(stream, wanted())
    assert kinds(response) == ["server_tool_use"]
    assert reason(response) == c.FINISH_REASON_MAX_TOKENS
    assert scripted.web.queries == []


@STREAMED
@pytest.mark.parametrize("tokens", [5, None])
async def test_each_round_may_write_what_is_left(stream, tokens):
    scripted = SearchingEngine()
    arguments = '{"query":"some words of a query"}'
    scripted.p.plays("a", calling(call(arguments=arguments), tokens=tokens))
    response = await scripted.tell(stream, wanted(max_tokens=12))
    assert reason(response) == c.FINISH_REASON_MAX_TOKENS
    bounds = [request.max_tokens for request in scripted.rounds()]
    assert bounds[0] == 12
    assert bounds == sorted(set(bounds), reverse=True)
    assert len(bounds) < MAX_ROUNDS


async def test_a_bound_on_thinking_stays_below_what_is_left():
    scripted = SearchingEngine()
    request = wanted(max_tokens=3000)
    request.thinking.mode = request.thinking.MODE_ENABLED
    request.thinking.budget_tokens = 2500
    scripted.p.plays("a", calling(call(), tokens=1000), calling(call(), tokens=1500), answer("x"))
    await scripted.tell(True, request)
    bounds = [(one.max_tokens, one.thinking.budget_tokens) for one in scripted.rounds()]
    assert bounds == [(3000, 2500), (2000, 1999), (500, 0)]


async def test_a_forced_call_is_made_once():
    scripted = SearchingEngine()
    scripted.p.plays("a", calling(call()), answer("Found."))
    choice = ToolChoice(mode=ToolChoice.MODE_ANY)
    await scripted.tell(True, wanted(tools=[Tool(name="own")], tool_choice=choice))
    modes = [request.tool_choice.mode for request in scripted.rounds()]
    assert modes == [ToolChoice.MODE_ANY, ToolChoice.MODE_AUTO]


async def test_what_has_no_name_passes_through():
    """As the blocks of a tool that runs at the provider, beside a call of the gateway's."""
    scripted = SearchingEngine()
    native = Opaque(dialect=c.DIALECT_OPENAI, json=b'{"type":"native"}')
    own = [
        Event(block=0, block_start=Block(opaque=native)),
        Event(block=0, block_stop=BlockStop()),
    ]
    scripted.p.plays("a", calling(call()), calling(own, reason=c.FINISH_REASON_END_TURN))
    response = await scripted.tell(True, wanted(dialect=c.DIALECT_OPENAI))
    assert kinds(response) == ["server_tool_use", "server_tool_result", "opaque"]


async def test_leaving_between_results_stops_all_calls():
    scripted = SearchingEngine()
    never = asyncio.Event()
    search, ended = scripted.web.search, []

    async def second_hangs(query, **bounds):
        if query == "hang":
            try:
                await never.wait()
            finally:
                ended.append(query)
        return await search(query, **bounds)

    scripted.web.search = second_hangs
    scripted.p.plays("a", calling(call(0), call(1, arguments='{"query":"hang"}')))
    async with aclosing(await scripted.engine.stream(wanted())) as batches:
        async for batch in batches:
            if batch[0].block_start.HasField("server_tool_result"):
                break
    assert ended == ["hang"]
    assert scripted.is_quiet()


@STREAMED
async def test_a_request_without_tools_is_asked_once(stream):
    scripted = SearchingEngine()
    request = wanted()
    request.use_built_in_tools = False
    response = await scripted.tell(stream, request)
    assert kinds(response) == ["text"]
    assert not scripted.rounds()[0].tools
    assert scripted.registry.get_sample_value("gateway_tool_rounds_count") == 0


@STREAMED
@in_no_time
async def test_the_bounds_of_a_chain_hold_for_all_rounds_together(stream):
    scripted = SearchingEngine()
    opened, ended = calling(call())
    scripted.p.plays("a", [3.0, opened, ended])
    request = chain("a", config={"global_timeout_ms": 10_000}, use_built_in_tools=True)
    with pytest.raises(GatewayError) as failure:
        await scripted.tell(stream, request)
    assert failure.value.reason == errors_pb2.REASON_TIMEOUT
    assert [at for at, _ in scripted.asked()] == [0, 3, 6, 9]


@STREAMED
@in_no_time
async def test_the_retries_of_a_chain_are_those_of_all_rounds(stream):
    scripted = SearchingEngine()
    scripted.p.plays("a", [failing(500)], calling(call()), [failing(500)])
    step = {"model": "a", "retry_policy": RetryPolicy(max_retries=5)}
    request = chain(step, config={"max_total_retries": 1}, use_built_in_tools=True)
    with pytest.raises(UpstreamError):
        await scripted.tell(stream, request)
    assert len(scripted.rounds()) == 3


@STREAMED
@in_no_time
async def test_a_round_is_retried_and_moves_on_like_any_request(stream):
    scripted = SearchingEngine()
    scripted.p.plays("a", calling(call()), [failing(500)])
    scripted.p.plays("b", answer("Found."))
    request = chain("a", "b", use_built_in_tools=True)
    response = await scripted.tell(stream, request)
    assert kinds(response) == ["server_tool_use", "server_tool_result", "text"]
    assert [name for _, name in scripted.asked()] == ["a", "a", "b"]
    # The next model reads what the first one had looked for.
    assert scripted.rounds()[-1].messages[1].blocks[0].HasField("tool_use")


@STREAMED
@in_no_time
async def test_a_model_that_falls_silent_between_rounds_is_raced(stream):
    scripted = SearchingEngine(fallbacks=("b",))
    scripted.p.plays("a", calling(call()), [FOREVER])
    scripted.p.plays("b", answer("Found."))
    response = await scripted.tell(stream, wanted())
    assert kinds(response) == ["server_tool_use", "server_tool_result", "text"]
    assert [name for _, name in scripted.asked()] == ["a", "a", "b"]
    assert scripted.is_quiet()


async def test_a_paused_answer_that_is_sent_back_continues():
    scripted = SearchingEngine()
    scripted.p.plays("a", calling(call()))
    paused = await scripted.tell(False, wanted())
    request = wanted()
    paused_message = Message(role=c.ROLE_ASSISTANT, blocks=paused.choices[0].blocks)
    request.messages.append(paused_message)
    scripted.p.plays("a", answer("Found."))
    response = await scripted.tell(False, request)
    assert kinds(response) == ["text"]
    last = scripted.rounds()[-1].messages
    assert len(last) == 1 + 2 * MAX_ROUNDS
    assert last[-1].blocks[0].HasField("tool_result")


async def test_a_gateway_without_a_web_says_so():
    scripted = ScriptedEngine()
    with pytest.raises(GatewayError) as refused:
        await scripted.engine.generate(wanted())
    assert refused.value.param == "use_built_in_tools"
    assert refused.value.http_status == 400
    assert not scripted.p.calls


@in_no_time
async def test_a_call_that_broke_off_in_its_arguments_is_gone_on_with():
    scripted = SearchingEngine()
    begun = [start(), *call()[:1], Event(block=0, input='{"que')]
    scripted.p.plays("a", [begun, cut()], calling(call()), answer("Found."))
    response = await scripted.tell(True, wanted())
    assert kinds(response) == ["server_tool_use", "server_tool_result", "text"]
    assert response.choices[0].blocks[0].server_tool_use.input == '{"query":"q"}'
    assert len(scripted.web.queries) == 1
