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
from tests.services.inference.fallback.scripted_engine import (
    DISABLED,
    FOREVER,
    ScriptedEngine,
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
    async def test_a_prefilling_model_continues_the_delivered_text(self):
        scripted = ScriptedEngine(fallbacks=("pre",))
        scripted.p.plays("a", broken(SAID, silence()))
        scripted.q.plays("pre", answer(REST, tokens=5))
        events = await scripted.stream(request(max_tokens=100))
        assert [block.text for block in blocks(events)] == [SAID + REST]
        assert whole(events).usage.output_tokens == 5
        (_, call), *_ = scripted.q.calls
        assert call.request.messages[-1] == Message(
            role=conversation.ROLE_ASSISTANT, blocks=[Block(text=SAID)]
        )
        assert call.request.max_tokens == 98
        assert scripted.is_quiet()

    @in_no_time
    async def test_a_retry_with_prefill_has_no_thinking(self):
        scripted = ScriptedEngine(fallbacks=("pre",))
        scripted.p.plays("a", broken(SAID, silence()))
        scripted.q.plays("pre", answer(REST))
        mode = pb.ThinkingConfig.MODE_ENABLED
        thinking = pb.ThinkingConfig(mode=mode, budget_tokens=2000)
        await scripted.stream(request(max_tokens=9000, thinking=thinking))
        (_, call), *_ = scripted.q.calls
        assert not call.request.HasField("thinking")

    @in_no_time
    async def test_a_continuing_step_has_its_whole_timeout_again(self):
        scripted = ScriptedEngine(step_timeout_s=60)
        first, failure = broken(SAID)
        scripted.q.plays("pre", [first, 100, failure], answer(REST))
        assert text_of(await scripted.stream(request("pre"))) == SAID + REST
        assert len(scripted.q.calls) == 2

    @in_no_time
    async def test_the_same_model_continues_while_retries_are_left(self):
        scripted = ScriptedEngine()
        scripted.q.plays("pre", broken(SAID), answer(REST))
        events = await scripted.stream(request("pre"))
        assert text_of(events) == SAID + REST
        assert scripted.asked(scripted.q) == [(0, "pre"), (0.75, "pre")]

    @in_no_time
    async def test_it_may_break_off_again_and_again(self):
        scripted = ScriptedEngine()
        scripted.q.plays("pre", broken("One,"), broken(" two,"), answer(" three."))
        events = await scripted.stream(request("pre"))
        assert [block.text for block in blocks(events)] == ["One, two, three."]
        assert scripted.q.calls[-1][1].request.messages[-1].blocks[0].text == "One, two,"

    @pytest.mark.parametrize("rest", ["  three", "three", "\n\n three"])
    @in_no_time
    async def test_white_space_at_the_end_is_not_sent_on_and_not_doubled(self, rest):
        scripted = ScriptedEngine(fallbacks=("pre",))
        scripted.p.plays("a", broken("Two, ", silence()))
        scripted.q.plays(
            "pre",
            [
                [start(), *opening(rest[:1])],
                [Event(text=rest[1:])],
                [Event(text=" four")],
                ending(),
            ],
        )
        events = await scripted.stream(request())
        assert text_of(events) == "Two, three four"
        assert scripted.q.calls[0][1].request.messages[-1].blocks[0].text == "Two,"

    @in_no_time
    async def test_a_retry_continues_after_the_caller_s_prefill(self):
        scripted = ScriptedEngine(fallbacks=("pre",))
        scripted.p.plays("a", broken(" two,", silence()))
        scripted.q.plays("pre", answer(REST))
        prefill = Message(role=conversation.ROLE_ASSISTANT, blocks=[Block(text="One,")])
        prefilled = request()
        prefilled.messages.append(prefill)
        assert text_of(await scripted.stream(prefilled)) == " two," + REST
        last = scripted.q.calls[0][1].request.messages[-1]
        assert [block.text for block in last.blocks] == [SAID]
        assert prefilled.messages[-1] == prefill

    @in_no_time
    async def test_a_tool_may_follow_and_ends_the_text(self):
        scripted = ScriptedEngine(fallbacks=("pre",))
        scripted.p.plays("a", broken(SAID, silence()))
        call = Event(block_start=Block(tool_use=ToolUse(id="1", name="f")))
        scripted.q.plays("pre", [[start(), call, Event(input="{}")], ending()])
        text, tool = blocks(await scripted.stream(request()))
        assert text.text == SAID
        assert tool.tool_use == ToolUse(id="1", name="f", input="{}")

    @in_no_time
    async def test_nothing_may_follow_and_ends_the_text_too(self):
        scripted = ScriptedEngine(fallbacks=("pre",))
        scripted.p.plays("a", broken(SAID, silence()))
        scripted.q.plays("pre", [[start()], ending()[1:]])
        assert [block.text for block in blocks(await scripted.stream(request()))] == [SAID]

    @in_no_time
    async def test_a_block_that_was_closed_is_followed_by_another(self):
        scripted = ScriptedEngine(fallbacks=("pre",))
        scripted.p.plays("a", [[start(), *opening(SAID), ending()[0]], silence()])
        scripted.q.plays("pre", answer(REST))
        assert [block.text for block in blocks(await scripted.stream(request()))] == [SAID, REST]

    @in_no_time
    async def test_a_refused_prefill_is_not_tried_again_and_hides_nothing(self):
        scripted = ScriptedEngine(fallbacks=("pre",))
        scripted.p.plays("a", broken(SAID, failing(503)))
        scripted.q.plays("pre", [failing(400, "prefill is not supported")], answer("Another"))
        for expected in (2, 3):
            scripted.p.plays("a", broken(SAID, silence()))
            with pytest.raises(UpstreamError) as failed:
                await scripted.stream(request())
            assert failed.value.reason == errors_pb2.REASON_UPSTREAM_TIMEOUT
            assert len(scripted.q.calls) == expected
        last = [call.request.messages[-1].role for _, call in scripted.q.calls]
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
        scripted = ScriptedEngine(fallbacks=("pre",))
        scripted.p.plays("a", broken(SAID, silence()))
        scripted.q.plays("pre", answer(SAID + REST))
        assert text_of(await scripted.stream(request(**fields))) == SAID + REST
        assert scripted.q.calls[0][1].request.messages[-1].role == conversation.ROLE_USER


class TestRepeating:
    @pytest.mark.parametrize("size", [1, 2, 5, 100])
    @in_no_time
    async def test_an_answer_that_begins_with_what_was_sent_is_spliced(self, size):
        scripted = ScriptedEngine(fallbacks=("b",))
        scripted.p.plays("a", broken(SAID, silence()))
        text = SAID + REST
        pieces = [Event(text=text[at : at + size]) for at in range(0, len(text), size)]
        opened = Event(block_start=Block(text=""))
        scripted.p.plays("b", [[start(), opened], *([piece] for piece in pieces), ending()])
        events = await scripted.stream(request())
        assert [block.text for block in blocks(events)] == [text]

    @pytest.mark.parametrize("other", ["One, zwei,", "One,", "Two", ""])
    @in_no_time
    async def test_any_other_answer_is_dropped_and_reported_as_failed(self, other):
        scripted = ScriptedEngine(fallbacks=("b",))
        scripted.p.plays("a", broken(SAID, silence()))
        scripted.p.plays("b", answer(other))
        with pytest.raises(UpstreamError) as failed:
            await scripted.stream(request())
        assert failed.value.reason == errors_pb2.REASON_UPSTREAM_TIMEOUT
        assert [one.model for one in failed.value.attempts] == ["p/a", "p/b"]
        assert scripted.is_quiet()

    @in_no_time
    async def test_each_diverging_model_is_asked_once(self):
        scripted = ScriptedEngine()
        scripted.p.plays("a", broken(SAID, silence()))
        scripted.p.plays("b", answer("Another"))
        scripted.p.plays("c", answer(SAID + REST))
        assert text_of(await scripted.stream(request())) == SAID + REST
        assert [name for _, name in scripted.asked()] == ["a", "b", "c"]

    @in_no_time
    async def test_what_was_sent_may_be_all(self):
        scripted = ScriptedEngine(fallbacks=("b",))
        scripted.p.plays("a", broken(SAID, silence()))
        scripted.p.plays("b", answer(SAID))
        assert [block.text for block in blocks(await scripted.stream(request()))] == [SAID]

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

        scripted = ScriptedEngine(fallbacks=("b", "c"))
        scripted.p.signs_thinking = scripted.p.checks_signatures = True
        sent = [start(), *thinks("hmm", "s1"), *calls("id1", '{"a')]
        scripted.p.plays("a", [sent, silence()])
        scripted.p.plays("b", [[start(), *thinks("hmm", "s2"), *calls("id2", '{"', name="g")]])
        other = [start(), *thinks("hmm", "s2"), *calls("id2", '{"', 'a":1', "}")]
        scripted.p.plays("c", [other, ending(block=1)])
        thought, call = blocks(await scripted.stream(request()))
        assert thought.thinking == Thinking(text="hmm", signature="s1")
        assert call.tool_use == ToolUse(id="id1", name="f", input='{"a":1}')

    @in_no_time
    async def test_fields_that_came_with_thoughts_are_not_sent_twice(self):
        def details(text: str) -> Event:
            json = b'{"reasoning_details":[{"index":0,"text":"%b"}]}' % text.encode()
            return Event(extra_fields=pb.ExtraFields(message=Opaque(dialect=OPENAI, json=json)))

        begun = Event(block_start=Block(thinking=Thinking()))
        first = [start(), details("hm"), begun, Event(thinking="hm"), ending()[0]]
        scripted = ScriptedEngine(fallbacks=("b",))
        scripted.p.plays("a", [[*first, *opening("so", 1)], silence()])
        again = [start(), begun, details("h"), Event(thinking="h"), details("m")]
        again += [Event(thinking="m"), ending()[0], *opening("so it is", 1)]
        scripted.p.plays("b", [again, ending(block=1)])
        choice = whole(await scripted.stream(request())).choices[0]
        assert [block.text for block in choice.blocks] == ["", "so it is"]
        assert choice.extra.json == b'{"reasoning_details":[{"index":0,"text":"hm"}]}'

    @in_no_time
    async def test_events_without_a_name_are_read_past(self):
        unknown = Event(unknown=Opaque(dialect=OPENAI, json=b'{"type":"x"}'))
        scripted = ScriptedEngine(fallbacks=("b",))
        scripted.p.plays("a", [[start(), *opening("so"), unknown], silence()])
        scripted.p.plays("b", [[start(), unknown, *opening("so it is")], ending()])
        events = await scripted.stream(request())
        assert text_of(events) == "so it is"

    @in_no_time
    async def test_half_of_what_has_no_name_is_not_gone_on_with(self):
        json = b'{"audio":{"data":"AA"}}'
        extra_fields = Event(extra_fields=pb.ExtraFields(message=Opaque(dialect=OPENAI, json=json)))
        scripted = ScriptedEngine(fallbacks=("b",))
        scripted.p.plays("a", [[start(), extra_fields], silence()])
        with pytest.raises(UpstreamError):
            await scripted.stream(request())

    @in_no_time
    async def test_half_a_thought_gets_the_signature_of_the_whole(self):
        scripted = ScriptedEngine(fallbacks=("b",))
        scripted.p.signs_thinking = scripted.p.checks_signatures = True
        begun = Event(block_start=Block(thinking=Thinking()))
        scripted.p.plays("a", [[start(), begun, Event(thinking="hm")], silence()])
        thought = [begun, Event(thinking="hmm"), Event(signature="s2"), ending()[0]]
        text_events = [*opening("so", 1), *ending(block=1)]
        scripted.p.plays("b", [[start(), *thought, *text_events]])
        thought, text = blocks(await scripted.stream(request()))
        assert thought.thinking == Thinking(text="hmm", signature="s2")
        assert text.text == "so"

    @in_no_time
    async def test_what_cannot_be_compared_is_not_gone_on_with(self):
        scripted = ScriptedEngine(fallbacks=("b",))
        opaque = Event(block_start=Block(opaque=conversation.Opaque(json=b"{}")))
        scripted.p.plays("a", [[start(), opaque], silence()])
        with pytest.raises(UpstreamError):
            await scripted.stream(request())
        assert scripted.asked() == [(0, "a")]


class TestBounds:
    @in_no_time
    async def test_an_oversized_answer_is_not_continued(self):
        scripted = ScriptedEngine()
        scripted.p.plays(
            "a", broken(SAID, over_limit("p", "said too much", "limits.max_answer_bytes"))
        )
        with pytest.raises(UpstreamError) as raised:
            await scripted.stream(request())
        assert raised.value.limit == "limits.max_answer_bytes"
        assert len(scripted.asked()) == 1

    @in_no_time
    async def test_an_oversized_preamble_moves_to_the_next_model(self):
        scripted = ScriptedEngine()
        scripted.p.plays("a", [over_limit("p", "said too much", "limits.max_answer_bytes")])
        assert text_of(await scripted.stream(request())) == "I am b"
        assert [model for _, model in scripted.asked()] == ["a", "b"]

    @pytest.mark.parametrize(("most", "asked"), [(len(SAID), 2), (len(SAID) - 1, 1)])
    @in_no_time
    async def test_so_long_an_answer_is_gone_on_with(self, most: int, asked: int):
        scripted = ScriptedEngine(max_recovered_characters=most)
        scripted.p.plays("a", broken(SAID, silence()))
        scripted.p.plays("b", answer(SAID + REST))
        try:
            assert text_of(await scripted.stream(request())) == SAID + REST
        except UpstreamError:
            assert asked == 1
        assert len(scripted.asked()) == asked

    @in_no_time
    async def test_the_last_count_before_the_content_is_reported(self):
        scripted = ScriptedEngine()
        counts = [[Event(usage=Usage(input_tokens=count))] * 2 for count in range(50)]
        scripted.p.plays("a", [[start()], *counts, *answer("x")[0:1]])
        batches = await scripted.batches(request())
        reported = [
            event.usage.input_tokens
            for batch in batches
            for event in batch
            if event.HasField("usage")
        ]
        assert reported[0] == 49

    @in_no_time
    async def test_disabled_fallback_reports_the_failure(self):
        scripted = ScriptedEngine()
        scripted.p.plays("a", broken(SAID))
        with pytest.raises(UpstreamError):
            await scripted.stream(request(fallback=DISABLED))
        assert scripted.asked() == [(0, "a")]

    @in_no_time
    async def test_a_failure_that_ends_the_chain_ends_the_answer(self):
        scripted = ScriptedEngine()
        scripted.p.plays("a", broken(SAID, failing(400)))
        with pytest.raises(UpstreamError) as failed:
            await scripted.stream(request())
        assert failed.value.status == 400
        assert scripted.asked() == [(0, "a")]

    @in_no_time
    async def test_several_answers_at_once_are_not_gone_on_with(self):
        scripted = ScriptedEngine()
        scripted.p.plays("a", broken(SAID))
        with pytest.raises(UpstreamError):
            await scripted.stream(request(n=2))
        assert scripted.asked() == [(0, "a")]

    @in_no_time
    async def test_an_answer_with_a_stop_reason_is_whole(self):
        scripted = ScriptedEngine()
        scripted.p.plays("a", [[start(), *opening(SAID)], ending()[:2], cut()])
        assert text_of(await scripted.stream(request())) == SAID
        assert scripted.asked() == [(0, "a")]
        assert scripted.counted("served") == 1

    @in_no_time
    async def test_the_time_for_everything_bounds_recovery(self):
        scripted = ScriptedEngine()
        scripted.p.plays("a", broken(SAID))
        scripted.p.plays("b", [FOREVER])
        with pytest.raises(GatewayError) as failed:
            await scripted.stream(chain("a", "b", config={"global_timeout_ms": 3000}))
        assert failed.value.reason == errors_pb2.REASON_TIMEOUT
        assert scripted.is_quiet()

    @in_no_time
    async def test_a_silent_model_is_hedged_in_recovery_too(self):
        scripted = ScriptedEngine()
        scripted.p.plays("a", broken(SAID, silence()))
        scripted.p.plays("b", [FOREVER])
        scripted.p.plays("c", answer(SAID + REST))
        assert text_of(await scripted.stream(request())) == SAID + REST
        assert scripted.asked() == [(0, "a"), (0, "b"), (10, "c")]
        assert scripted.is_quiet()

    @in_no_time
    async def test_outcomes_are_counted(self):
        scripted = ScriptedEngine()
        scripted.p.plays("a", broken(SAID))

        def counted(outcome: str) -> float | None:
            name = "gateway_stream_recoveries_total"
            return scripted.registry.get_sample_value(name, {"outcome": outcome})

        scripted.p.plays("b", answer(SAID + REST))
        await scripted.stream(request())
        assert (counted("recovered"), counted("failed")) == (1, None)
        for name in ("b", "c"):
            scripted.p.plays(name, answer("Another"))
        with pytest.raises(UpstreamError):
            await scripted.stream(request())
        assert counted("failed") == 1
