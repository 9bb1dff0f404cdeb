"""The fold from events to an answer, its inverse, and the order it insists on."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Citation,
    Media,
    Opaque,
    Thinking,
    ToolUse,
    Usage,
)
from gateway.inference.v1.inference_pb2 import (
    BlockStop,
    Choice,
    Event,
    Finish,
    GenerateResponse,
    RouteInfo,
    Start,
)
from services.inference.stream.accumulator import Accumulator, BrokenStream, events_of
from tests.grid import each_row

ANTHROPIC = conversation.DIALECT_ANTHROPIC
OPENAI = conversation.DIALECT_OPENAI
END = Finish(reason=conversation.FINISH_REASON_END_TURN)


def opaque(value: object, dialect: conversation.Dialect.ValueType = ANTHROPIC) -> Opaque:
    return Opaque(dialect=dialect, json=orjson.dumps(value))


def start() -> Event:
    return Event(start=Start(id="a", model="m"))


def begin(block: Block, number: int = 0, choice: int = 0) -> Event:
    return Event(choice=choice, block=number, block_start=block)


def text(piece: str, number: int = 0, choice: int = 0, logprobs: object = None) -> Event:
    event = Event(choice=choice, block=number, text=piece)
    if logprobs is not None:
        event.logprobs = orjson.dumps(logprobs)
    return event


def stop(number: int = 0, choice: int = 0) -> Event:
    return Event(choice=choice, block=number, block_stop=BlockStop())


def finish(choice: int = 0) -> Event:
    return Event(choice=choice, finish=END)


def fold(*events: Event) -> GenerateResponse:
    accumulator = Accumulator()
    accumulator.add(events)
    return accumulator.response()


def only_block(*between: Event, block: Block) -> Block:
    return fold(start(), begin(block), *between, stop(), finish()).choices[0].blocks[0]


def test_deltas_of_every_kind_are_joined_into_their_blocks() -> None:
    answer = fold(
        start(),
        begin(Block(thinking=Thinking(text="a")), 0),
        Event(block=0, thinking="b"),
        Event(block=0, thinking="c"),
        Event(block=0, signature="s1"),
        Event(block=0, signature="s2"),
        stop(0),
        begin(Block(text="He"), 1),
        text("l", 1),
        text("lo", 1),
        stop(1),
        begin(Block(tool_use=ToolUse(id="t", name="f", input='{"')), 2),
        Event(block=2, input='a":'),
        Event(block=2, input="1}"),
        stop(2),
        begin(Block(refusal=""), 3),
        Event(block=3, refusal="No"),
        Event(block=3, refusal="."),
        stop(3),
        finish(),
    )
    assert list(answer.choices[0].blocks) == [
        Block(thinking=Thinking(text="abc", signature="s1s2")),
        Block(text="Hello"),
        Block(tool_use=ToolUse(id="t", name="f", input='{"a":1}')),
        Block(refusal="No."),
    ]


def test_thinking_that_shows_none_of_itself_keeps_its_signature() -> None:
    block = only_block(
        Event(signature="s1"), Event(signature="s2"), block=Block(thinking=Thinking())
    )
    assert block == Block(thinking=Thinking(signature="s1s2"))


def test_the_answer_has_start_fields_and_the_last_usage() -> None:
    route = RouteInfo(model="fast", provider="p", step="primary", attempts=2)
    answer = fold(
        Event(start=Start(id="i", model="m", route=route, extra=opaque({"k": 1}))),
        Event(usage=Usage(input_tokens=7)),
        finish(),
        Event(usage=Usage(input_tokens=7, output_tokens=3)),
    )
    assert answer == GenerateResponse(
        id="i",
        model="m",
        route=route,
        extra=opaque({"k": 1}),
        usage=Usage(input_tokens=7, output_tokens=3),
        choices=[Choice(finish=END)],
    )


def test_interleaved_choices_come_out_by_index() -> None:
    answer = fold(
        start(),
        begin(Block(text=""), choice=1),
        begin(Block(text=""), choice=0),
        text("one", choice=1),
        text("zero", choice=0),
        stop(choice=0),
        finish(0),
        stop(choice=1),
        finish(1),
    )
    assert [choice.blocks[0].text for choice in answer.choices] == ["zero", "one"]


def test_log_probabilities_of_deltas_are_joined_list_by_list() -> None:
    answer = fold(
        start(),
        begin(Block(text="")),
        text("a", logprobs={"content": [1], "refusal": None}),
        text("b", logprobs={"content": [2, 3], "refusal": [4]}),
        text("c", logprobs={"content": None, "refusal": [5]}),
        stop(),
        finish(),
    )
    merged = orjson.loads(answer.choices[0].logprobs)
    assert merged == {"content": [1, 2, 3], "refusal": [4, 5]}


def test_citations_join_those_the_block_began_with() -> None:
    block = only_block(
        text("x"),
        Event(opaque=opaque({"type": "citations_delta", "citation": {"n": 2}})),
        Event(opaque=opaque({"type": "citations_delta", "citation": {"n": 3}})),
        block=Block(text="", extra=opaque({"citations": [{"n": 1}], "other": True})),
    )
    assert block.text == "x"
    assert block.extra.dialect == ANTHROPIC
    assert orjson.loads(block.extra.json) == {
        "citations": [{"n": 1}, {"n": 2}, {"n": 3}],
        "other": True,
    }


def test_log_probability_pieces_are_joined() -> None:
    first, second = (text(p, logprobs={"content": [p]}) for p in "ab")
    for deltas, merged in (
        ([first], b'{"content":["a"]}'),
        ([first, second], b'{"content":["a","b"]}'),
    ):
        answer = fold(start(), begin(Block(text="")), *deltas, stop(), finish())
        assert answer.choices[0].logprobs == merged


def test_late_citations_have_the_dialect_of_their_deltas() -> None:
    delta = Event(opaque=opaque({"type": "citations_delta", "citation": {"n": 1}}))
    block = only_block(delta, block=Block(text=""))
    assert block.extra == opaque({"citations": [{"n": 1}]})


def test_a_null_list_of_citations_becomes_a_list() -> None:
    block = only_block(
        Event(opaque=opaque({"type": "citations_delta", "citation": {"n": 1}})),
        block=Block(text="", extra=opaque({"citations": None})),
    )
    assert orjson.loads(block.extra.json) == {"citations": [{"n": 1}]}


def test_unknown_deltas_append_texts_and_replace_the_rest() -> None:
    block = only_block(
        Event(opaque=opaque({"type": "x_delta", "content": "b", "list": [2], "n": 1})),
        Event(opaque=opaque({"type": "x_delta", "content": "c", "list": [3], "n": 2})),
        Event(opaque=opaque({"type": "x_delta", "content": None, "n": None})),
        block=Block(opaque=opaque({"type": "x", "content": "a", "list": [1]})),
    )
    assert orjson.loads(block.opaque.json) == {
        "type": "x",
        "content": "abc",
        "list": [1, 2, 3],
        "n": 2,
    }


@pytest.mark.parametrize(
    "deltas",
    [
        [Event(input='{"q":'), Event(input='"x"}')],
        [
            Event(opaque=opaque({"type": "input_json_delta", "partial_json": '{"q":'})),
            Event(opaque=opaque({"type": "input_json_delta", "partial_json": '"x"}'})),
        ],
    ],
)
def test_arguments_of_an_opaque_call_become_its_input(deltas: list[Event]) -> None:
    call = {"type": "server_tool_use", "id": "s", "name": "web_search"}
    block = only_block(*deltas, block=Block(opaque=opaque({**call, "input": {}})))
    assert orjson.loads(block.opaque.json) == {**call, "input": {"q": "x"}}


def test_arguments_that_are_not_json_stay_as_they_were_written() -> None:
    block = only_block(Event(input='{"q'), block=Block(opaque=opaque({"type": "t"})))
    assert orjson.loads(block.opaque.json) == {"type": "t", "input": '{"q'}


def test_an_opaque_block_without_deltas_keeps_its_bytes() -> None:
    spaced = Opaque(dialect=ANTHROPIC, json=b'{ "type" : "x" }')
    assert only_block(block=Block(opaque=spaced)).opaque == spaced


def test_events_that_were_added_are_not_changed() -> None:
    events = [start(), begin(Block(text="a")), text("b"), stop(), finish()]
    before = [event.SerializeToString() for event in events]
    first = fold(*events)
    assert [event.SerializeToString() for event in events] == before
    assert fold(*events) == first


def test_the_answer_can_be_asked_for_twice() -> None:
    accumulator = Accumulator()
    accumulator.add([start(), begin(Block(text="")), text("a"), stop(), finish()])
    assert accumulator.response() == accumulator.response()


@each_row(
    ("events", "reason"),
    [
        ([], "no start"),
        ([finish()], "finish before start"),
        ([Event()], "before start"),
        ([start(), Event()], "without a kind"),
        ([start(), start()], "second start"),
        ([start()], "not numbered from 0"),
        ([start(), finish(1)], "not numbered from 0"),
        ([start(), begin(Block(text="")), stop()], "no finish"),
        ([start(), begin(Block(text="")), finish()], "while a block is open"),
        ([start(), text("a"), finish()], "outside of any block"),
        ([start(), stop(), finish()], "outside of any block"),
        ([start(), Event(opaque=opaque({})), finish()], "outside of any block"),
        ([start(), begin(Block(text=""), 1), stop(1), finish()], "out of its turn"),
        ([start(), begin(Block()), stop(), finish()], "without a kind"),
        ([start(), begin(Block(text="")), begin(Block(text=""), 1)], "while a block is open"),
        ([start(), begin(Block(text="")), text("a", 1)], "while block 0 is open"),
        ([start(), begin(Block(text="")), stop(1)], "while block 0 is open"),
        ([start(), begin(Block(text="")), Event(thinking="a")], "in a block of kind text"),
        ([start(), begin(Block(thinking=Thinking())), text("a")], "in a block of kind thinking"),
        ([start(), begin(Block(text="")), Event(input="a")], "in a block of kind text"),
        ([start(), begin(Block(text="")), stop(), text("a")], "outside of any block"),
        ([start(), finish(), finish()], "after finish"),
        ([start(), finish(), begin(Block(text=""))], "after finish"),
        (
            [start(), begin(Block(text="")), Event(opaque=Opaque(json=b"{")), stop()],
            "not JSON",
        ),
        (
            [start(), begin(Block(text="")), Event(opaque=opaque([1])), stop()],
            "not an object",
        ),
        (
            [
                start(),
                begin(Block(text="", extra=opaque({}))),
                Event(opaque=opaque({}, OPENAI)),
                stop(),
            ],
            "two dialects",
        ),
    ],
)
def test_a_stream_out_of_order_is_not_taken_for_an_answer(events: list[Event], reason: str) -> None:
    with pytest.raises(BrokenStream, match=reason):
        fold(*events)


texts = st.text(max_size=8)
opaques = st.builds(
    opaque,
    st.dictionaries(texts, st.integers(-9, 9) | texts, max_size=2),
    st.sampled_from([OPENAI, ANTHROPIC]),
)
kinds = st.one_of(
    st.builds(lambda value: Block(text=value), texts),
    st.builds(lambda value: Block(refusal=value), texts),
    st.builds(
        lambda value, proof: Block(thinking=Thinking(text=value, signature=proof)), texts, texts
    ),
    st.builds(lambda value: Block(redacted_thinking=value), texts),
    st.builds(
        lambda name, value, free: Block(
            tool_use=ToolUse(id="t", name=name, input=value, freeform=free)
        ),
        texts,
        texts,
        st.booleans(),
    ),
    st.builds(lambda value: Block(media=Media(data=value)), st.binary(max_size=4)),
    st.builds(lambda value: Block(opaque=value), opaques),
)


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    block: Block = draw(kinds)
    block.cache_control = draw(st.binary(max_size=2))
    if extra := draw(st.none() | opaques):
        block.extra.CopyFrom(extra)
    return block


@st.composite
def choices(draw: st.DrawFn) -> Choice:
    reason = draw(st.sampled_from(conversation.FinishReason.values()))
    return Choice(
        blocks=draw(st.lists(blocks(), max_size=4)),
        finish=Finish(reason=reason, stop_sequence=draw(texts), extra=draw(st.none() | opaques)),
        logprobs=draw(st.just(b"") | st.just(b'{ "content": [1] }')),
    )


responses = st.builds(
    GenerateResponse,
    id=texts,
    model=texts,
    choices=st.lists(choices(), min_size=1, max_size=3),
    usage=st.none() | st.builds(Usage, input_tokens=st.integers(0, 9)),
    route=st.none() | st.builds(RouteInfo, model=texts),
    extra=st.none() | opaques,
)


@given(responses)
def test_a_whole_answer_survives_conversion_to_events(response: GenerateResponse) -> None:
    assert fold(*events_of(response)) == response


WHOLE = Event(
    whole=GenerateResponse(
        passthrough=b' {"id": "a"}\n', usage=Usage(input_tokens=7), route=RouteInfo(model="fast")
    )
)


def test_a_whole_answer_stays_as_it_is() -> None:
    assert fold(WHOLE) == GenerateResponse(
        passthrough=b' {"id": "a"}\n', usage=Usage(input_tokens=7), route=RouteInfo(model="fast")
    )


@pytest.mark.parametrize(
    "other",
    [
        start(),
        Event(usage=Usage(input_tokens=7)),
        begin(Block(text="")),
        finish(),
        Event(),
        WHOLE,
    ],
    ids=lambda event: event.WhichOneof("kind") or "nothing",
)
def test_nothing_comes_after_a_whole_answer(other: Event) -> None:
    with pytest.raises(BrokenStream, match="beside"):
        fold(WHOLE, other)


@pytest.mark.parametrize(
    "before",
    [
        [start()],
        [start(), begin(Block(text=""))],
        [start(), begin(Block(opaque=opaque({})))],
        [start(), finish()],
    ],
    ids=["a start", "an open text", "an open block", "an end"],
)
def test_nothing_comes_before_a_whole_answer(before: list[Event]) -> None:
    with pytest.raises(BrokenStream, match="whole"):
        fold(*before, WHOLE)


def test_a_whole_answer_has_the_events_of_a_stream() -> None:
    answer = GenerateResponse(
        id="i",
        usage=Usage(input_tokens=1),
        choices=[Choice(blocks=[Block(text="Hi")], finish=END, logprobs=b'{"content":[]}')],
    )
    assert events_of(answer) == [
        Event(start=Start(id="i")),
        Event(usage=Usage(input_tokens=1)),
        begin(Block(text="")),
        Event(text="Hi", logprobs=b'{"content":[]}'),
        stop(),
        finish(),
    ]


def test_citations_stay_with_their_text() -> None:
    citations = [
        Citation(url=url, end_index=2) for url in ("https://a.example", "https://b.example")
    ]
    events = [
        start(),
        begin(Block(text="")),
        text("He"),
        *(Event(citation=one) for one in citations),
        stop(),
        finish(),
    ]
    answer = fold(*events)
    assert answer.choices[0].blocks[0] == Block(text="He", citations=citations)
    assert events_of(answer) == events
