"""When a provider may give an answer as it wrote it, and what becomes of one that it gave."""

import pytest

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Message, Usage
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import (
    Event,
    GenerateRequest,
    GenerateResponse,
    Memory,
    RouteInfo,
)
from services.common.errors import UpstreamError
from services.inference.providers.base import AnswerForm, MissingEndpointError
from tests.grid import each_row
from tests.services.inference.fallback.scripted_engine import (
    DISABLED,
    STRICT,
    Line,
    ScriptedEngine,
    answer,
    broken,
    chain,
    cut,
    failing,
    request,
)
from tests.services.inference.fallback.virtual_time import in_no_time

OPENAI = conversation.DIALECT_OPENAI  # what the providers speak
RESPONSES = conversation.DIALECT_RESPONSES
ANTHROPIC = conversation.DIALECT_ANTHROPIC
JSON = b'{"id": "1"} '
PREFILL = Message(role=conversation.ROLE_ASSISTANT, blocks=[Block(text="Once")])
PLAIN = request(takes_passthrough=True, dialect=OPENAI, fallback=DISABLED)


def passthrough() -> list[Line]:
    return [[Event(whole=GenerateResponse(passthrough=JSON, usage=Usage(input_tokens=3)))]]


def but(original: GenerateRequest = PLAIN, **fields: object) -> GenerateRequest:
    """Return a request that differs in some fields."""
    other = GenerateRequest()
    other.CopyFrom(original)
    for name in fields:
        other.ClearField(name)
    other.MergeFrom(GenerateRequest(**fields))
    return other


def allowed(scripted: ScriptedEngine) -> list[bool]:
    """Return for each call whether its answer may be given passthrough."""
    return [call.accepts is AnswerForm.PASSTHROUGH for _, call in scripted.p.calls]


@each_row(
    ("wanted", "goes"),
    [
        pytest.param(PLAIN, True, id="a caller who takes it"),
        pytest.param(but(stop_sequences=["x"]), True, id="strings that the provider finds"),
        pytest.param(but(n=2), True, id="several answers"),
        pytest.param(but(takes_passthrough=False), False, id="a caller who does not take it"),
        pytest.param(but(dialect=ANTHROPIC), False, id="another dialect"),
        pytest.param(but(dialect=0), False, id="a caller without a dialect"),
        pytest.param(but(memory=Memory(memory_id="m")), False, id="to be remembered"),
        pytest.param(
            but(memory=Memory(personal_memory=True)), False, id="facts are to be found in it"
        ),
        pytest.param(
            but(messages=[PLAIN.messages[0], PREFILL]), False, id="a prefill may be repeated"
        ),
    ],
)
@in_no_time
async def test_an_answer_may_go_verbatim_if_nothing_is_done_to_it(
    wanted: GenerateRequest, goes: bool
) -> None:
    scripted = ScriptedEngine()
    await scripted.engine.generate(wanted)
    assert allowed(scripted) == [goes]


@in_no_time
async def test_no_stream_is_given_verbatim() -> None:
    scripted = ScriptedEngine()
    await scripted.stream(PLAIN)
    assert allowed(scripted) == [False]


@in_no_time
async def test_no_answer_comes_verbatim_by_way_of_a_stream() -> None:
    # A model is listened to as it speaks where another would be asked if it were silent.
    scripted = ScriptedEngine()
    await scripted.engine.generate(but(fallback=0))
    assert allowed(scripted) == [False]


def of_responses(*, native: bool) -> ScriptedEngine:
    """Return an engine whose provider breaks off a streamed response, and goes on once asked."""
    scripted = ScriptedEngine(fallbacks=())
    scripted.p.dialect = RESPONSES
    scripted.p.checks_signatures = True
    first, *later = broken("Once ")
    if native:
        for event in first:
            event.native = b"{}"
    scripted.p.plays("a", [first, *later], answer("Once upon"))
    return scripted


@pytest.mark.parametrize(
    ("wanted", "fallbacks", "goes"),
    [
        (but(dialect=RESPONSES, fallback=0), (), True),
        (but(dialect=RESPONSES, fallback=0), ("b",), False),
        (but(dialect=RESPONSES, takes_passthrough=False), (), False),
        (but(dialect=OPENAI), (), False),
    ],
)
@in_no_time
async def test_streams_of_responses_may_have_the_providers_events(
    wanted: GenerateRequest, fallbacks: tuple[str, ...], goes: bool
) -> None:
    scripted = ScriptedEngine(fallbacks=fallbacks)
    scripted.p.dialect = wanted.dialect
    scripted.p.checks_signatures = True
    await scripted.stream(wanted)
    assert allowed(scripted) == [goes]


@in_no_time
async def test_a_stream_of_the_providers_events_is_not_continued() -> None:
    without_fallback = but(dialect=RESPONSES, fallback=0)
    continued = of_responses(native=False)
    assert "".join(event.text for event in await continued.stream(without_fallback)) == "Once upon"
    with pytest.raises(UpstreamError):
        await of_responses(native=True).stream(without_fallback)


@in_no_time
async def test_a_missing_endpoint_is_asked_for_once() -> None:
    scripted = ScriptedEngine()
    missing = MissingEndpointError(errors_pb2.REASON_MODEL_NOT_FOUND, "no /responses", status=404)
    scripted.p.plays("a", [missing], answer("I am a"))
    text, route, _ = await scripted.ask(True, but(fallback=0))
    assert (text, route.step, route.attempts) == ("I am a", "primary", 2)


@in_no_time
async def test_the_stop_strings_that_the_gateway_finds_are_found() -> None:
    scripted = ScriptedEngine()
    scripted.p.reports_stop_sequence = False
    scripted.p.dialect = conversation.DIALECT_UNSPECIFIED
    scripted.p.plays("a", answer("one two"))
    whole = await scripted.engine.generate(but(dialect=0, stop_sequences=["two"]))
    assert allowed(scripted) == [False]
    assert whole.choices[0].blocks[0].text == "one "


@in_no_time
async def test_a_passthrough_answer_has_usage_and_route_info() -> None:
    scripted = ScriptedEngine()
    scripted.p.plays("a", passthrough())
    whole = await scripted.engine.generate(PLAIN)
    assert (whole.passthrough, whole.usage) == (JSON, Usage(input_tokens=3))
    assert whole.route == RouteInfo(model="a", provider="p", step="primary", attempts=1)
    assert not whole.choices
    assert scripted.counted("served") == 1


@in_no_time
async def test_a_passthrough_answer_ends_the_chain() -> None:
    scripted = ScriptedEngine(fallbacks=("b",))
    scripted.p.plays("a", [cut()])
    scripted.p.plays("b", passthrough())
    whole = await scripted.engine.generate(but(fallback=0))
    # The last model is not listened to as it speaks: nobody would be asked instead.
    assert allowed(scripted)[-1]
    assert whole.passthrough == JSON
    assert (whole.route.step, whole.route.attempts) == ("fallback-1", len(scripted.p.calls))


@in_no_time
async def test_each_step_of_a_chain_may_answer_verbatim() -> None:
    scripted = ScriptedEngine()
    scripted.p.plays("a", [failing(500)])
    scripted.p.plays("b", passthrough())
    chained = chain("a", "b", mode=STRICT, takes_passthrough=True, dialect=OPENAI)
    whole = await scripted.engine.generate(chained)
    assert allowed(scripted) == [True, True]
    assert (whole.passthrough, whole.route.step, whole.route.attempts) == (JSON, "s2", 2)


@in_no_time
async def test_a_provider_that_may_answer_verbatim_need_not() -> None:
    scripted = ScriptedEngine()
    text, route, usage = await scripted.ask(False, PLAIN)
    assert allowed(scripted) == [True]
    assert (text, route.attempts, usage.output_tokens) == ("I am a", 1, 3)


@in_no_time
async def test_a_remembered_answer_is_read() -> None:
    scripted = ScriptedEngine()
    await scripted.engine.generate(but(memory=Memory(memory_id="m")))
    (turn,) = scripted.memories.turns
    assert [text_of(message) for message in turn.answers] == ["I am a"]


def text_of(message: Message) -> str:
    return "".join(block.text for block in message.blocks)
