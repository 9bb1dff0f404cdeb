"""Answers that break off after some of them went out."""

import pytest

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Message,
    Opaque,
    Thinking,
    ToolUse,
    Usage,
)
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import inference_pb2 as pb
from gateway.inference.v1.inference_pb2 import BlockStop, Event
from services.common.errors import GatewayError, UpstreamError
from services.inference.providers.failures import over_limit
from services.inference.stream.accumulator import Accumulator
from tests.services.inference.fallback.scripted import (
    DISABLED,
    FOREVER,
    House,
    answer,
    broken,
    chain,
    cut,
    ending,
    failing,
    opening,
    request,
    silence,
    start,
    text_of,
)
from tests.services.inference.fallback.virtual_time import in_no_time

OPENAI = conversation.DIALECT_OPENAI
SAID = "One, two,"
REST = " three, four."


def whole(events: list[Event]) -> pb.GenerateResponse:
    """Put the events together, which checks their order too."""
    accumulator = Accumulator()
    accumulator.add(events)
    return accumulator.response()


def blocks(events: list[Event]) -> list[Block]:
    return list(whole(events).choices[0].blocks)


class TestPrefilling:
    @in_no_time
    async def test_a_model_that_prefills_goes_on_with_what_was_sent(self):
        house = House(fallbacks=("pre",))
        house.p.plays("a", broken(SAID, silence()))
        house.q.plays("pre", answer(REST, tokens=5))
        events = await house.stream(request(max_tokens=100))
        assert [block.text for block in blocks(events)] == [SAID + REST]
        assert whole(events).usage.output_tokens == 5
        (_, call), *_ = house.q.calls
        assert call.request.messages[-1] == Message(
            role=conversation.ROLE_ASSISTANT, blocks=[Block(text=SAID)]
        )
        assert call.request.max_tokens == 98
        assert house.is_quiet()

    @in_no_time
    async def test_it_goes_on_without_thinking_which_excludes_prefill(self):
        house = House(fallbacks=("pre",))
        house.p.plays("a", broken(SAID, silence()))
        house.q.plays("pre", answer(REST))
        mode = pb.ThinkingConfig.MODE_ENABLED
        thinking = pb.ThinkingConfig(mode=mode, budget_tokens=2000)
        await house.stream(request(max_tokens=9000, thinking=thinking))
        (_, call), *_ = house.q.calls
        assert not call.request.HasField("thinking")

    @in_no_time
    async def test_a_step_has_its_time_anew_when_it_goes_on(self):
        house = House(step_timeout_s=60)
        first, failure = broken(SAID)
        house.q.plays("pre", [first, 100, failure], answer(REST))
        assert text_of(await house.stream(request("pre"))) == SAID + REST
        assert len(house.q.calls) == 2

    @in_no_time
    async def test_the_same_model_goes_on_where_retries_are_left(self):
        house = House()
        house.q.plays("pre", broken(SAID), answer(REST))
        events = await house.stream(request("pre"))
        assert text_of(events) == SAID + REST
        assert house.asked(house.q) == [(0, "pre"), (0.75, "pre")]

    @in_no_time
    async def test_it_may_break_off_again_and_again(self):
        house = House()
        house.q.plays("pre", broken("One,"), broken(" two,"), answer(" three."))
        events = await house.stream(request("pre"))
        assert [block.text for block in blocks(events)] == ["One, two, three."]
        assert house.q.calls[-1][1].request.messages[-1].blocks[0].text == "One, two,"

    @pytest.mark.parametrize("rest", ["  three", "three", "\n\n three"])
    @in_no_time
    async def test_white_space_at_the_end_is_not_sent_on_and_not_doubled(self, rest):
        house = House(fallbacks=("pre",))
        house.p.plays("a", broken("Two, ", silence()))
        house.q.plays(
            "pre",
            [
                [start(), *opening(rest[:1])],
                [Event(text=rest[1:])],
                [Event(text=" four")],
                ending(),
            ],
        )
        events = await house.stream(request())
        assert text_of(events) == "Two, three four"
        assert house.q.calls[0][1].request.messages[-1].blocks[0].text == "Two,"

    @in_no_time
    async def test_it_goes_on_behind_the_callers_own_prefill(self):
        house = House(fallbacks=("pre",))
        house.p.plays("a", broken(" two,", silence()))
        house.q.plays("pre", answer(REST))
        said = Message(role=conversation.ROLE_ASSISTANT, blocks=[Block(text="One,")])
        wanted = request()
        wanted.messages.append(said)
        assert text_of(await house.stream(wanted)) == " two," + REST
        last = house.q.calls[0][1].request.messages[-1]
        assert [block.text for block in last.blocks] == [SAID]
        assert wanted.messages[-1] == said

    @in_no_time
    async def test_a_tool_may_follow_and_ends_the_text(self):
        house = House(fallbacks=("pre",))
        house.p.plays("a", broken(SAID, silence()))
        call = Event(block_start=Block(tool_use=ToolUse(id="1", name="f")))
        house.q.plays("pre", [[start(), call, Event(input="{}")], ending()])
        text, tool = blocks(await house.stream(request()))
        assert text.text == SAID
        assert tool.tool_use == ToolUse(id="1", name="f", input="{}")

    @in_no_time
    async def test_nothing_may_follow_and_ends_the_text_too(self):
        house = House(fallbacks=("pre",))
        house.p.plays("a", broken(SAID, silence()))
        house.q.plays("pre", [[start()], ending()[1:]])
        assert [block.text for block in blocks(await house.stream(request()))] == [SAID]

    @in_no_time
    async def test_a_block_that_was_closed_is_followed_by_another(self):
        house = House(fallbacks=("pre",))
        house.p.plays("a", [[start(), *opening(SAID), ending()[0]], silence()])
        house.q.plays("pre", answer(REST))
        assert [block.text for block in blocks(await house.stream(request()))] == [SAID, REST]

    @in_no_time
    async def test_a_refused_prefill_is_not_tried_again_and_hides_nothing(self):
        house = House(fallbacks=("pre",))
        house.p.plays("a", broken(SAID, failing(503)))
        house.q.plays("pre", [failing(400, "prefill is not supported")], answer("Another"))
        for expected in (2, 3):
            house.p.plays("a", broken(SAID, silence()))
            with pytest.raises(UpstreamError) as failed:
                await house.stream(request())
            assert failed.value.reason == errors_pb2.REASON_UPSTREAM_TIMEOUT
            assert len(house.q.calls) == expected
        last = [call.request.messages[-1].role for _, call in house.q.calls]
        user, assistant = conversation.ROLE_USER, conversation.ROLE_ASSISTANT
        assert last == [assistant, user, user]

    @pytest.mark.parametrize(
        "fields",
        [
            {"output_format": pb.OutputFormat(kind=pb.OutputFormat.KIND_JSON_OBJECT)},
            {"tools": [pb.Tool(name="t")], "tool_choice": pb.ToolChoice(mode="MODE_ANY")},
        ],
    )
    @in_no_time
    async def test_where_prefill_is_never_taken_none_is_sent(self, fields):
        house = House(fallbacks=("pre",))
        house.p.plays("a", broken(SAID, silence()))
        house.q.plays("pre", answer(SAID + REST))
        assert text_of(await house.stream(request(**fields))) == SAID + REST
        assert house.q.calls[0][1].request.messages[-1].role == conversation.ROLE_USER


class TestRepeating:
    @pytest.mark.parametrize("size", [1, 2, 5, 100])
    @in_no_time
    async def test_an_answer_that_begins_with_what_was_sent_is_spliced(self, size):
        house = House(fallbacks=("b",))
        house.p.plays("a", broken(SAID, silence()))
        text = SAID + REST
        pieces = [Event(text=text[at : at + size]) for at in range(0, len(text), size)]
        opened = Event(block_start=Block(text=""))
        house.p.plays("b", [[start(), opened], *([piece] for piece in pieces), ending()])
        events = await house.stream(request())
        assert [block.text for block in blocks(events)] == [text]

    @pytest.mark.parametrize("other", ["One, zwei,", "One,", "Two", ""])
    @in_no_time
    async def test_any_other_answer_is_given_up_and_the_failure_told(self, other):
        house = House(fallbacks=("b",))
        house.p.plays("a", broken(SAID, silence()))
        house.p.plays("b", answer(other))
        with pytest.raises(UpstreamError) as failed:
            await house.stream(request())
        assert failed.value.reason == errors_pb2.REASON_UPSTREAM_TIMEOUT
        assert [one.model for one in failed.value.attempts] == ["p/a", "p/b"]
        assert house.is_quiet()

    @in_no_time
    async def test_each_diverging_model_is_asked_once(self):
        house = House()
        house.p.plays("a", broken(SAID, silence()))
        house.p.plays("b", answer("Another"))
        house.p.plays("c", answer(SAID + REST))
        assert text_of(await house.stream(request())) == SAID + REST
        assert [name for _, name in house.asked()] == ["a", "b", "c"]

    @in_no_time
    async def test_what_was_sent_may_be_all(self):
        house = House(fallbacks=("b",))
        house.p.plays("a", broken(SAID, silence()))
        house.p.plays("b", answer(SAID))
        assert [block.text for block in blocks(await house.stream(request()))] == [SAID]

    @in_no_time
    async def test_thoughts_and_tool_calls_are_compared_too(self):
        def thinks(text: str, signature: str) -> list[Event]:
            return [
                Event(block_start=Block(thinking=Thinking())),
                Event(thinking=text),
                Event(signature=signature),
                Event(block_stop=BlockStop()),
            ]

        def calls(call_id: str, *inputs: str, name: str = "f") -> list[Event]:
            call = Block(tool_use=ToolUse(id=call_id, name=name))
            return [
                Event(block=1, block_start=call),
                *(Event(block=1, input=piece) for piece in inputs),
            ]

        house = House(fallbacks=("b", "c"))
        house.p.signs_thinking = house.p.checks_signatures = True
        sent = [start(), *thinks("hmm", "s1"), *calls("id1", '{"a')]
        house.p.plays("a", [sent, silence()])
        house.p.plays("b", [[start(), *thinks("hmm", "s2"), *calls("id2", '{"', name="g")]])
        other = [start(), *thinks("hmm", "s2"), *calls("id2", '{"', 'a":1', "}")]
        house.p.plays("c", [other, ending(block=1)])
        thought, call = blocks(await house.stream(request()))
        assert thought.thinking == Thinking(text="hmm", signature="s1")
        assert call.tool_use == ToolUse(id="id1", name="f", input='{"a":1}')

    @in_no_time
    async def test_fields_that_came_with_thoughts_are_not_told_twice(self):
        def details(text: str) -> Event:
            json = b'{"reasoning_details":[{"index":0,"text":"%b"}]}' % text.encode()
            return Event(further=pb.Further(message=Opaque(dialect=OPENAI, json=json)))

        begun = Event(block_start=Block(thinking=Thinking()))
        first = [start(), details("hm"), begun, Event(thinking="hm"), ending()[0]]
        house = House(fallbacks=("b",))
        house.p.plays("a", [[*first, *opening("so", 1)], silence()])
        again = [start(), begun, details("h"), Event(thinking="h"), details("m")]
        again += [Event(thinking="m"), ending()[0], *opening("so it is", 1)]
        house.p.plays("b", [again, ending(block=1)])
        told = whole(await house.stream(request())).choices[0]
        assert [block.text for block in told.blocks] == ["", "so it is"]
        assert told.extra.json == b'{"reasoning_details":[{"index":0,"text":"hm"}]}'

    @in_no_time
    async def test_events_without_a_name_are_read_past(self):
        unknown = Event(unknown=Opaque(dialect=OPENAI, json=b'{"type":"x"}'))
        house = House(fallbacks=("b",))
        house.p.plays("a", [[start(), *opening("so"), unknown], silence()])
        house.p.plays("b", [[start(), unknown, *opening("so it is")], ending()])
        events = await house.stream(request())
        assert text_of(events) == "so it is"

    @in_no_time
    async def test_half_of_what_has_no_name_is_not_gone_on_with(self):
        json = b'{"audio":{"data":"AA"}}'
        further = Event(further=pb.Further(message=Opaque(dialect=OPENAI, json=json)))
        house = House(fallbacks=("b",))
        house.p.plays("a", [[start(), further], silence()])
        with pytest.raises(UpstreamError):
            await house.stream(request())

    @in_no_time
    async def test_half_a_thought_gets_the_signature_of_the_whole(self):
        house = House(fallbacks=("b",))
        house.p.signs_thinking = house.p.checks_signatures = True
        begun = Event(block_start=Block(thinking=Thinking()))
        house.p.plays("a", [[start(), begun, Event(thinking="hm")], silence()])
        thought = [begun, Event(thinking="hmm"), Event(signature="s2"), ending()[0]]
        said = [*opening("so", 1), *ending(block=1)]
        house.p.plays("b", [[start(), *thought, *said]])
        thought, text = blocks(await house.stream(request()))
        assert thought.thinking == Thinking(text="hmm", signature="s2")
        assert text.text == "so"

    @in_no_time
    async def test_what_cannot_be_compared_is_not_gone_on_with(self):
        house = House(fallbacks=("b",))
        opaque = Event(block_start=Block(opaque=conversation.Opaque(json=b"{}")))
        house.p.plays("a", [[start(), opaque], silence()])
        with pytest.raises(UpstreamError):
            await house.stream(request())
        assert house.asked() == [(0, "a")]


class TestBounds:
    @in_no_time
    async def test_an_oversized_answer_is_not_continued(self):
        house = House()
        house.p.plays("a", broken(SAID, over_limit("p", "said too much", "limits.max_answer")))
        with pytest.raises(UpstreamError) as raised:
            await house.stream(request())
        assert raised.value.limit == "limits.max_answer"
        assert len(house.asked()) == 1

    @in_no_time
    async def test_an_oversized_preamble_moves_to_the_next_model(self):
        house = House()
        house.p.plays("a", [over_limit("p", "said too much", "limits.max_answer")])
        assert text_of(await house.stream(request())) == "I am b"
        assert [model for _, model in house.asked()] == ["a", "b"]

    @pytest.mark.parametrize(("most", "asked"), [(len(SAID), 2), (len(SAID) - 1, 1)])
    @in_no_time
    async def test_so_long_an_answer_is_gone_on_with(self, most: int, asked: int):
        house = House(max_recovered=most)
        house.p.plays("a", broken(SAID, silence()))
        house.p.plays("b", answer(SAID + REST))
        try:
            assert text_of(await house.stream(request())) == SAID + REST
        except UpstreamError:
            assert asked == 1
        assert len(house.asked()) == asked

    @in_no_time
    async def test_of_counts_before_the_content_the_last_is_told(self):
        house = House()
        counts = [[Event(usage=Usage(input_tokens=count))] * 2 for count in range(50)]
        house.p.plays("a", [[start()], *counts, *answer("x")[0:1]])
        batches = await house.batches(request())
        told = [
            event.usage.input_tokens
            for batch in batches
            for event in batch
            if event.HasField("usage")
        ]
        assert told[0] == 49

    @in_no_time
    async def test_disabled_tells_the_failure(self):
        house = House()
        house.p.plays("a", broken(SAID))
        with pytest.raises(UpstreamError):
            await house.stream(request(fallback=DISABLED))
        assert house.asked() == [(0, "a")]

    @in_no_time
    async def test_a_failure_that_ends_the_chain_ends_the_answer(self):
        house = House()
        house.p.plays("a", broken(SAID, failing(400)))
        with pytest.raises(UpstreamError) as failed:
            await house.stream(request())
        assert failed.value.status == 400
        assert house.asked() == [(0, "a")]

    @in_no_time
    async def test_several_answers_at_once_are_not_gone_on_with(self):
        house = House()
        house.p.plays("a", broken(SAID))
        with pytest.raises(UpstreamError):
            await house.stream(request(n=2))
        assert house.asked() == [(0, "a")]

    @in_no_time
    async def test_an_answer_whose_end_was_told_is_whole(self):
        house = House()
        house.p.plays("a", [[start(), *opening(SAID)], ending()[:2], cut()])
        assert text_of(await house.stream(request())) == SAID
        assert house.asked() == [(0, "a")]
        assert house.counted("served") == 1

    @in_no_time
    async def test_the_time_for_everything_bounds_recovery(self):
        house = House()
        house.p.plays("a", broken(SAID))
        house.p.plays("b", [FOREVER])
        with pytest.raises(GatewayError) as failed:
            await house.stream(chain("a", "b", config={"global_timeout_ms": 3000}))
        assert failed.value.reason == errors_pb2.REASON_TIMEOUT
        assert house.is_quiet()

    @in_no_time
    async def test_a_silent_model_is_hedged_in_recovery_too(self):
        house = House()
        house.p.plays("a", broken(SAID, silence()))
        house.p.plays("b", [FOREVER])
        house.p.plays("c", answer(SAID + REST))
        assert text_of(await house.stream(request())) == SAID + REST
        assert house.asked() == [(0, "a"), (0, "b"), (10, "c")]
        assert house.is_quiet()

    @in_no_time
    async def test_outcomes_are_counted(self):
        house = House()
        house.p.plays("a", broken(SAID))

        def counted(outcome: str) -> float | None:
            name = "gateway_stream_recoveries_total"
            return house.registry.get_sample_value(name, {"outcome": outcome})

        house.p.plays("b", answer(SAID + REST))
        await house.stream(request())
        assert (counted("recovered"), counted("failed")) == (1, None)
        for name in ("b", "c"):
            house.p.plays(name, answer("Another"))
        with pytest.raises(UpstreamError):
            await house.stream(request())
        assert counted("failed") == 1
