"""Requests with memory through the engine."""

import asyncio

import pytest

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Opaque, Thinking
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import inference_pb2 as pb
from gateway.inference.v1.inference_pb2 import Event, Finish, GenerateRequest, Memory
from gateway.memory.v1.memory_pb2 import BeginTurn, Turn, TurnContext
from services.common.errors import GatewayError
from services.inference.memory import turn_client
from tests.services.inference.fallback.scripted_engine import (
    DISABLED,
    STRICT,
    ScriptedEngine,
    answer,
    broken,
    ending,
    failing,
    opening,
    start,
    text_of,
)
from tests.services.inference.fallback.virtual_time import in_no_time
from tests.services.inference.memory.builders import (
    assistant,
    call,
    image,
    request,
    result,
    system,
    texts,
    user,
)

THINKING = pb.ThinkingConfig(mode="MODE_ENABLED", budget_tokens=1024)


BOTH = pytest.mark.parametrize("stream", [False, True])


def committed(scripted: ScriptedEngine) -> list[list[str]]:
    """Return what was committed of each turn; none of them is held any more."""
    assert not any(turn.is_held for turn in scripted.memories.turns)
    return [texts(turn.answers) for turn in scripted.memories.turns]


@in_no_time
async def test_turn_is_dropped_when_the_conversation_cannot_be_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(turn_client, "Conversation", failing)
    scripted = ScriptedEngine()
    with pytest.raises(ZeroDivisionError):
        await scripted.ask(False, request(user("Hi")))
    assert committed(scripted) == [[]]


@BOTH
@in_no_time
async def test_answer_is_committed(stream: bool) -> None:
    scripted = ScriptedEngine()
    text, route, _ = await scripted.ask(stream, request(system("Be"), user("Hi")))
    assert text == "I am a"
    assert route.memory_truncated == 0
    assert committed(scripted) == [["I am a"]]
    (turn,) = scripted.memories.turns
    assert texts(turn.begin.messages) == ["Hi"]
    assert turn.answers[0].role == conversation.ROLE_ASSISTANT
    assert texts(scripted.p.calls[0][1].request.messages) == ["Be", "Hi"]


@BOTH
@in_no_time
async def test_a_request_without_memory_asks_for_none(stream: bool) -> None:
    scripted = ScriptedEngine()
    await scripted.ask(stream, GenerateRequest(model="a", messages=[user("Hi")]))
    assert scripted.memories.turns == []


@BOTH
@in_no_time
async def test_read_only_turn_is_not_committed(stream: bool) -> None:
    scripted = ScriptedEngine()
    asked = request(user("Hi"))
    asked.memory.mode = Memory.MODE_READ_ONLY
    await scripted.ask(stream, asked)
    assert committed(scripted) == [[]]
    assert scripted.memories.turns[0].begin.mode == BeginTurn.MODE_READ_ONLY


@BOTH
@in_no_time
async def test_the_end_waits_for_the_commit(stream: bool) -> None:
    scripted = ScriptedEngine()
    scripted.memories.may_commit.clear()
    heard: list[Event] = []

    async def listen() -> None:
        if not stream:
            await scripted.engine.generate(request(user("Hi")))
            return
        async for batch in await scripted.engine.stream(request(user("Hi"))):
            heard.extend(batch)

    listening = asyncio.create_task(listen())
    await scripted.memories.committing.wait()
    # All that is ready now has its turn before the commit does.
    await asyncio.sleep(1)
    assert not listening.done()
    assert not any(event.HasField("finish") for event in heard)
    assert text_of(heard) == ("I am a" if stream else "")
    scripted.memories.may_commit.set()
    await listening
    assert [event.WhichOneof("kind") for event in heard[-2:]] == ["finish", "usage"] * stream


@BOTH
@in_no_time
async def test_failed_commit_withholds_the_end(stream: bool) -> None:
    scripted = ScriptedEngine()
    scripted.memories.refusal = GatewayError(errors_pb2.REASON_CONFLICT, "it was deleted")
    with pytest.raises(GatewayError) as failed:
        await scripted.ask(stream, request(user("Hi")))
    assert failed.value.code == "conflict"
    assert committed(scripted) == [[]]


@pytest.mark.parametrize("script", [broken("I", failing(500)), [failing(500)]])
@BOTH
@in_no_time
async def test_a_failure_leaves_the_memory_as_it_was(stream: bool, script: list) -> None:
    scripted = ScriptedEngine()
    scripted.p.plays("a", script)
    with pytest.raises(GatewayError):
        await scripted.ask(stream, request(user("Hi"), fallback=DISABLED))
    assert committed(scripted) == [[]]
    assert scripted.is_quiet()


@BOTH
@in_no_time
async def test_the_step_that_won_is_remembered(stream: bool) -> None:
    scripted = ScriptedEngine()
    scripted.p.plays("a", [failing(400)])
    config = pb.FallbackConfig(
        strategy_mode="sequential",
        steps=[
            pb.FallbackStep(step_id="1", model="a", fail_on=pb.FailOn(status_code=[400])),
            pb.FallbackStep(step_id="2", model="b"),
        ],
    )
    await scripted.ask(stream, request(user("Hi"), fallback=STRICT, fallback_config=config))
    assert committed(scripted) == [["I am b"]]


@in_no_time
async def test_an_answer_that_was_gone_on_with_is_remembered_whole() -> None:
    scripted = ScriptedEngine()
    scripted.p.plays("a", broken("I was"))
    scripted.q.plays("pre", answer("I am pre"))
    scripted.p.plays("b", answer("I was here"))
    text, _, _ = await scripted.ask(True, request(user("Hi")))
    assert committed(scripted) == [[text]] == [["I was here"]]


@BOTH
@in_no_time
async def test_an_answer_that_was_cut_at_its_bound_is_whole(stream: bool) -> None:
    scripted = ScriptedEngine()
    cut = [Event(block_stop=pb.BlockStop())]
    cut.append(Event(finish=Finish(reason=conversation.FINISH_REASON_MAX_TOKENS)))
    cut.append(ending()[-1])
    scripted.p.plays("a", [[start(), *opening("I am")], cut])
    await scripted.ask(stream, request(user("Hi")))
    assert committed(scripted) == [["I am"]]


@BOTH
@in_no_time
async def test_of_several_answers_the_first_is_remembered(stream: bool) -> None:
    def choice(number: int, text: str) -> list[Event]:
        events = [*opening(text), *ending()[:-1]]
        for event in events:
            event.choice = number
        return events

    scripted = ScriptedEngine()
    # The second ends before the first, whose text must not wait for that.
    scripted.p.plays("a", [[start(), *choice(1, "two")], choice(0, "one"), ending()[-1:]])
    asked = request(user("Hi"), n=2)
    if stream:
        *_, first, end = await scripted.batches(asked)
        assert text_of(first) == "one"
        assert [event.WhichOneof("kind") for event in end] == ["finish", "finish", "usage"]
    else:
        await scripted.engine.generate(asked)
    assert committed(scripted) == [["one"]]


@BOTH
@in_no_time
async def test_of_a_recording_the_transcript_is_remembered(stream: bool) -> None:
    def extra_fields(transcript: str) -> Event:
        json = b'{"audio":{"id":"a1","transcript":"%b"}}' % transcript.encode()
        opaque = Opaque(dialect=conversation.DIALECT_OPENAI, json=json)
        return Event(extra_fields=pb.ExtraFields(message=opaque))

    scripted = ScriptedEngine()
    scripted.p.plays("a", [[start(), extra_fields("I "), extra_fields("am a")], ending()[1:]])
    if stream:
        await scripted.stream(request(user("Hi")))
    else:
        await scripted.engine.generate(request(user("Hi")))
    assert committed(scripted) == [["I am a"]]
    assert not scripted.memories.turns[0].answers[0].HasField("extra")


@BOTH
@in_no_time
async def test_a_prefill_is_sent_and_its_continuation_remembered(stream: bool) -> None:
    scripted = ScriptedEngine()
    scripted.p.plays("a", answer("Once upon a time"))
    await scripted.ask(stream, request(user("Hi"), assistant("Once upon")))
    assert committed(scripted) == [[" a time"]]
    assert texts(scripted.memories.turns[0].begin.messages) == ["Hi", "Once upon"]


@in_no_time
async def test_counting_sees_what_would_be_sent_and_writes_nothing() -> None:
    scripted = ScriptedEngine()

    def remembered(opened: BeginTurn) -> TurnContext:
        return TurnContext(
            messages=opened.messages, turns=[Turn(number=1, messages=[user("Earlier")])]
        )

    scripted.memories.context = remembered
    asked = request(user("Hi"))
    asked.memory.mode = Memory.MODE_READ_WRITE
    seen = []

    async def count(call) -> int:
        seen.extend(texts(call.request.messages))
        return 7

    scripted.p.count_tokens = count
    assert (await scripted.engine.count_tokens(asked)).input_tokens == 7
    assert seen == ["Earlier", "Hi"]
    assert committed(scripted) == [[]]
    assert scripted.memories.turns[0].begin.mode == BeginTurn.MODE_READ_ONLY


def many_turns(opened: BeginTurn) -> TurnContext:
    turns = [Turn(number=n, messages=[user("word " * 100)]) for n in range(1, 51)]
    return TurnContext(messages=opened.messages, turns=turns)


@in_no_time
async def test_turns_that_a_model_has_no_room_for_are_reported() -> None:
    scripted = ScriptedEngine()
    scripted.memories.context = many_turns
    asked = [request(user("Hi"), model="tiny") for _ in range(3)]
    _, whole, _ = await scripted.ask(False, asked[0])
    _, streamed, _ = await scripted.ask(True, asked[1])
    counted = (await scripted.engine.count_tokens(asked[2])).route
    sent = len(scripted.p.calls[0][1].request.messages) - 1
    assert 0 < sent < 20
    assert [one.memory_truncated for one in (whole, streamed, counted)] == [50 - sent] * 3


@BOTH
@in_no_time
async def test_each_model_of_a_chain_sees_what_it_has_room_for(stream: bool) -> None:
    scripted = ScriptedEngine()
    scripted.memories.context = many_turns
    scripted.p.plays("tiny", [failing(500)])
    config = pb.FallbackConfig(
        strategy_mode="sequential",
        steps=[pb.FallbackStep(step_id=name, model=name) for name in ("tiny", "b")],
    )
    asked = request(user("Hi"), fallback=STRICT, fallback_config=config)
    _, route, _ = await scripted.ask(stream, asked)
    tiny, large = (len(call.request.messages) for _, call in scripted.p.calls)
    assert tiny < large == 51
    assert route.memory_truncated == 0


@BOTH
@in_no_time
async def test_a_step_with_another_conversation_is_refused(stream: bool) -> None:
    scripted = ScriptedEngine()
    step = pb.FallbackStep(step_id="1", model="b")
    step.parameters.messages.append(user("Bye"))
    config = pb.FallbackConfig(strategy_mode="sequential", steps=[step])
    with pytest.raises(GatewayError) as refused:
        await scripted.ask(stream, request(user("Hi"), fallback=STRICT, fallback_config=config))
    assert refused.value.param == "fallback_config.steps[0].parameters.messages"
    assert scripted.memories.turns == []


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("thoughtful", [False, True])
@in_no_time
async def test_a_model_that_would_miss_its_thoughts_does_not_think(
    signs: bool, thoughtful: bool
) -> None:
    scripted = ScriptedEngine()
    scripted.p.signs_thinking = scripted.p.checks_signatures = signs
    scripted.p.dialect = conversation.DIALECT_ANTHROPIC
    asked = request(user(result("1")))
    asked.thinking.CopyFrom(THINKING)
    called = [Block(thinking=Thinking(text="hm", signature="c2ln"))] if thoughtful else []
    present = [user("Look"), assistant(*called, call("1")), user(result("1"))]
    scripted.memories.context = lambda opened: TurnContext(messages=present)
    _, route, _ = await scripted.ask(True, asked)
    thinks = scripted.p.calls[0][1].request.HasField("thinking")
    assert thinks == (thoughtful or not signs)
    assert list(route.dropped) == ([] if thinks else ["thinking"])
    # Where the user has spoken again nothing is missed.
    scripted.memories.context = lambda opened: TurnContext(messages=[user("Hi")])
    other = request(user("Hi"))
    other.thinking.CopyFrom(THINKING)
    await scripted.ask(True, other)
    assert scripted.p.calls[1][1].request.HasField("thinking")


@BOTH
@in_no_time
async def test_a_request_that_cannot_be_answered_holds_nothing(stream: bool) -> None:
    scripted = ScriptedEngine()
    with pytest.raises(GatewayError) as refused:
        await scripted.ask(stream, request(user(image(file_id="file-1"))))
    assert refused.value.code == "not_found"
    assert committed(scripted) == [[]]
    for wrong in (request(user("Hi"), model="none"), request(system("Be"))):
        with pytest.raises(GatewayError):
            await scripted.ask(stream, wrong)
    assert len(scripted.memories.turns) == 1


@BOTH
@in_no_time
async def test_remembered_files_are_fetched_as_far_as_they_are_there(stream: bool) -> None:
    scripted = ScriptedEngine(inputs={"a": ["image"]})
    scripted.files.files = {"file-1": ("a.png", "image/png", b"PNG")}

    def remembered(opened: BeginTurn) -> TurnContext:
        message = user("See", image(file_id="file-1"), image(file_id="file-2"))
        return TurnContext(messages=opened.messages, turns=[Turn(number=1, messages=[message])])

    scripted.memories.context = remembered
    await scripted.ask(stream, request(user("Hi")))
    blocks = scripted.p.calls[0][1].request.messages[0].blocks
    assert blocks[1].media.data == b"PNG"
    assert blocks[2] == Block(text="[image: no longer kept]")
