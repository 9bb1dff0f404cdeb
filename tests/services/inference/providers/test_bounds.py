import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import UpstreamError
from services.common.settings import Limits
from services.inference.providers.anthropic.events import StreamReader as MessageReader
from services.inference.providers.anthropic.events import events_from_whole
from services.inference.providers.bounds import Bounds, dump, name_of, parse, tokens
from services.inference.providers.openai.events import StreamReader as ChatReader
from tests.grid import each_row
from tests.services.inference.providers import anthropic_answers, openai_answers
from tests.services.inference.providers.openai_answers import calls, data, delta, says
from tests.services.inference.providers.openai_calls import call_of

FEW = Limits.model_validate({"max_answer_parts": 16, "max_answer_values": 1024})


def limit_of(raised: pytest.ExceptionInfo[UpstreamError]) -> str:
    assert raised.value.http_status == 502
    return raised.value.limit


def read_chat(*chunks: bytes) -> None:
    reader = ChatReader(call_of(), openai_answers.Provider(FEW), lambda kind: kind)
    for one in chunks:
        reader.feed(one, [])


CHATS = {
    "calls": [data(says(**calls(index, "{}", id=f"c{index}", name="f"))) for index in range(17)],
    "calls that each have the same index": [
        data(says(**calls(0, "{}", id=f"c{index}", name="f"))) for index in range(17)
    ],
    "calls without a name": [data(says(**calls(index, "x"))) for index in range(17)],
    "kinds of text in turn": [data(says(content="a"), says(reasoning="b"))] * 9,
    "kinds of text behind a call": [
        data(says(**calls(0, "{", id="c", name="f"))),
        *[data(says(content="a"), says(refusal="b"))] * 9,
    ],
    "log probabilities behind a call": [
        data(says(**calls(0, "{", id="c", name="f"))),
        *[
            data(openai_answers.chunk({**delta(content="a"), "logprobs": {"content": [index]}}))
            for index in range(17)
        ],
    ],
}


@pytest.mark.parametrize("chunks", CHATS.values(), ids=CHATS)
def test_a_chat_has_so_many_parts(chunks: list[bytes]) -> None:
    with pytest.raises(UpstreamError) as raised:
        read_chat(*chunks)
    assert limit_of(raised) == "limits.max_answer_parts"
    read_chat(*chunks[:4])


def test_fields_without_a_name_have_so_many_values_in_all() -> None:
    detail = data(says(reasoning_details=[{"type": "reasoning.text", "text": "a", "index": 0}]))
    read_chat(*[detail] * 100)
    with pytest.raises(UpstreamError) as raised:
        read_chat(*[detail] * 300)
    assert limit_of(raised) == "limits.max_answer_values"
    growing = [data({**says(content="a"), f"n{number}": 1}) for number in range(1000)]
    with pytest.raises(UpstreamError) as raised:
        read_chat(*growing)
    assert limit_of(raised) == "limits.max_answer_values"


def test_text_behind_a_call_is_one_part_however_it_comes() -> None:
    read_chat(
        data(says(**calls(0, "{", id="c", name="f"))),
        *[data(says(content="a", id=str(index))) for index in range(500)],
        *[data(says(**calls(1, "1"))) for _ in range(500)],
    )


def read_message(*events: dict[str, object]) -> None:
    reader = MessageReader(anthropic_answers.Provider(FEW))
    reader.feed(anthropic_answers.wire([anthropic_answers.BEGIN, *events]), [])


BLOCKS = [anthropic_answers.started(index, {"type": "text", "text": "a"}) for index in range(17)]
UNKNOWN_FIELDS = [
    anthropic_answers.TEXT,
    *[anthropic_answers.delta(0, "x", y=index) for index in range(16)],
]


@pytest.mark.parametrize("events", [BLOCKS, UNKNOWN_FIELDS])
def test_a_message_has_so_many_parts(events: list[dict[str, object]]) -> None:
    with pytest.raises(UpstreamError) as raised:
        read_message(*events)
    assert limit_of(raised) == "limits.max_answer_parts"
    read_message(*events[:-1])


def test_a_whole_message_has_so_many_parts() -> None:
    whole = {**anthropic_answers.WHOLE, "content": [{"type": "text", "text": "a"}] * 17}
    with pytest.raises(UpstreamError) as raised:
        events_from_whole(whole, anthropic_answers.Provider(FEW))
    assert limit_of(raised) == "limits.max_answer_parts"


def test_deltas_without_a_name_hold_so_many_values_together() -> None:
    event = anthropic_answers.delta(0, "x", y=[0] * 500)
    read_message(anthropic_answers.TEXT, event, event)
    with pytest.raises(UpstreamError) as raised:
        read_message(anthropic_answers.TEXT, *[event] * 3)
    assert limit_of(raised) == "limits.max_answer_values"


def test_usage_that_grows_is_malformed() -> None:
    grown = [
        anthropic_answers.ended(None, usage={f"kind_{index}": "x" * 1000}) for index in range(17)
    ]
    read_message(*grown[:10])
    with pytest.raises(UpstreamError, match="usage"):
        read_message(*grown)


MANY = {
    "numbers": b"[" + b"0," * 2000 + b"0]",
    "lists": b"[" + b"[]," * 1000 + b"0]",
    "objects": b"[" + b"{}," * 1000 + b"0]",
    "keys": orjson.dumps({str(index): 0 for index in range(2000)}),
    "texts": orjson.dumps(["[,{"] * 2000),
    "after a text that looks unended": orjson.dumps(['a\\"b', [0] * 2000]),
}


@pytest.mark.parametrize("json", MANY.values(), ids=MANY)
def test_so_many_values_are_read(json: bytes) -> None:
    with pytest.raises(UpstreamError) as raised:
        parse(json, "acme", 1024)
    assert limit_of(raised) == "limits.max_answer_values"
    assert parse(json, "acme", 5000) == orjson.loads(json)


def test_text_that_looks_like_values_is_read() -> None:
    for text in ("[,{" * 5000, "\\" * 5000, '\\"' * 5000 + ",", '"' * 5000):
        assert parse(orjson.dumps([text]), "acme", 1024) == [text]


@given(st.recursive(st.none() | st.text('a,[{"\\'), lambda inner: st.lists(inner, max_size=9)))
def test_no_more_values_are_found_than_there_are_and_a_few(value: object) -> None:
    def count(of: object) -> int:
        return 1 + sum(map(count, of)) if isinstance(of, list) else 1

    json = orjson.dumps(value) + b" " * 100
    assert parse(json, "acme", 2 * count(value)) == value


def test_what_is_kept_can_be_put_into_an_answer() -> None:
    deep: object = 0
    for _ in range(246):
        deep = [deep]
    kept = orjson.loads(dump(deep))
    for _ in range(8):
        kept = {"a": kept}
    assert orjson.dumps(kept)
    with pytest.raises(ValueError, match="deep"):
        dump([[deep]])


@each_row("value", [None, -1, 2**53, 1.5, 1e300, "1", [], {}])
def test_no_number_of_tokens(value: object) -> None:
    with pytest.raises(ValueError, match="tokens"):
        tokens(value)


def test_a_name_is_a_short_text() -> None:
    assert name_of("x" * 256) == "x" * 256
    for value in ("x" * 257, 5, None, ["x"]):
        with pytest.raises(ValueError, match="name"):
            name_of(value)


def test_parts_are_counted_for_all_choices_together() -> None:
    bounds = Bounds("acme", FEW)
    for _ in range(16):
        bounds.part()
    with pytest.raises(UpstreamError):
        bounds.part()
