from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from gateway.inference.v1.inference_pb2 import Event, Tool
from tests.grid import each_row
from tests.services.inference.providers.openai_answers import (
    Json,
    answer,
    calls,
    data,
    failure_of,
    read,
    reader_of,
    reason_of,
    says,
    told,
    whole,
)


def test_a_call_of_a_tool_streams_its_arguments() -> None:
    events = read(
        says(**calls(0, id="c1", type="function", name="f")),
        says(**calls(0, '{"a"')),
        says(**calls(0, ":1}")),
        says("tool_calls"),
    )
    assert told(events)[1:] == [
        ("block_start", "tool_use"),
        ("input", '{"a"'),
        ("input", ":1}"),
        ("block_stop", None),
        ("finish", "TOOL_USE"),
    ]
    use = events[1].block_start.tool_use
    assert (use.id, use.name, use.input, use.freeform) == ("c1", "f", "", False)


def test_calls_one_after_the_other_stream_each_as_it_comes() -> None:
    reader, events = reader_of(), list[Event]()
    reader.feed(data(says(**calls(0, "{}", id="c1", name="f"))), events)
    reader.feed(data(says(**calls(1, '{"b', id="c2", name="g"))), events)
    assert told(events)[1:] == [
        ("block_start", "tool_use"),
        ("input", "{}"),
        ("block_stop", None),
        ("block_start", "tool_use"),
        ("input", '{"b'),
    ]


def test_interleaved_calls_come_whole_and_in_order() -> None:
    events = read(
        says(**calls(0, '{"a', id="c1", name="f")),
        says(**calls(1, '{"b', id="c2", name="g")),
        says(**calls(0, '":1}')),
        says(content="so"),
        says(**calls(1, '":2}')),
        says("tool_calls"),
    )
    blocks = answer(events).choices[0].blocks
    assert [(b.tool_use.id, b.tool_use.input, b.text) for b in blocks] == [
        ("c1", '{"a":1}', ""),
        ("c2", '{"b":2}', ""),
        ("", "", "so"),
    ]


def test_text_behind_a_call_that_is_not_done_is_one_block() -> None:
    events = read(
        says(**calls(0, "{", id="c1", name="f")),
        says(content="a"),
        says(content="b"),
        says(**calls(0, "}")),
        says("tool_calls"),
    )
    blocks = answer(events).choices[0].blocks
    assert [(b.tool_use.input, b.text) for b in blocks] == [("{}", ""), ("", "ab")]


def test_a_call_whose_name_comes_late_waits_for_it() -> None:
    events = read(
        says(**calls(0, '{"a"', id="c1")), says(**calls(0, ":1}", name="f")), says("tool_calls")
    )
    use = answer(events).choices[0].blocks[0].tool_use
    assert (use.name, use.input) == ("f", '{"a":1}')


def test_text_continues_while_a_call_has_no_name() -> None:
    events = read(
        says(**calls(0, "{", id="c1")),
        says(content="a"),
        says(**calls(0, "}", name="f")),
        says("tool_calls"),
    )
    blocks = answer(events).choices[0].blocks
    assert (blocks[0].text, blocks[1].tool_use.input) == ("a", "{}")


def test_a_call_without_a_name_is_a_failure() -> None:
    assert reason_of(failure_of(says(**calls(0, "{}", id="c1")), says("stop"))) == "UPSTREAM_ERROR"


def test_a_call_without_an_id_gets_one() -> None:
    events = read(says(**calls(0, "{}", name="f")), says("tool_calls"))
    assert events[1].block_start.tool_use.id == "call_new"


def test_calls_without_an_index_are_split_by_their_ids() -> None:
    given: list[Json] = [
        {"id": "c1", "function": {"name": "f", "arguments": '{"a"'}},
        {"function": {"arguments": ":1}"}},
        {"id": "c2", "function": {"name": "f", "arguments": "{}"}},
    ]
    events = read(*(says(tool_calls=[one]) for one in given), says("tool_calls"))
    blocks = answer(events).choices[0].blocks
    assert [(b.tool_use.id, b.tool_use.input) for b in blocks] == [("c1", '{"a":1}'), ("c2", "{}")]


def test_calls_that_share_an_index_are_split_by_their_ids() -> None:
    events = read(
        says(**calls(0, "{}", id="c1", name="f")),
        says(**calls(0, "{}", id="c2", name="f")),
        says("tool_calls"),
    )
    assert [b.tool_use.id for b in answer(events).choices[0].blocks] == ["c1", "c2"]


def test_a_repeated_id_and_name_begin_no_block() -> None:
    again = {"id": "c1", "name": "f"}
    events = read(
        says(**calls(0, '{"a"', **again)), says(**calls(0, ":1}", **again)), says("tool_calls")
    )
    assert answer(events).choices[0].blocks[0].tool_use.input == '{"a":1}'


def test_arguments_that_a_server_parsed_are_written_as_json() -> None:
    given = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": {"a": 1}}}
    use = whole({"tool_calls": [given]}).choices[0].blocks[0].tool_use
    assert use.input == '{"a":1}'


def test_arguments_after_their_end_are_a_failure() -> None:
    chunks = (
        says(**calls(0, "{}", id="c1", name="f")),
        says(**calls(1, "{}", id="c2", name="g")),
    )
    assert reason_of(failure_of(*chunks, says(**calls(0, "{}")))) == "UPSTREAM_ERROR"
    assert read(*chunks, says(**calls(0, " \n")), says("tool_calls"))


def test_a_custom_tools_input_is_free_text() -> None:
    custom = {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "f", "input": "a "}}
    more = {"index": 0, "custom": {"input": "b"}}
    events = read(says(tool_calls=[custom]), says(tool_calls=[more]), says("tool_calls"))
    use = answer(events).choices[0].blocks[0].tool_use
    assert (use.name, use.input, use.freeform) == ("f", "a b", True)


arguments = st.one_of(
    st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=2).map(
        lambda value: orjson.dumps(value).decode()
    ),
    # Text behind `{}` replaces it, as some servers begin with that.
    st.text(max_size=6).filter(lambda text: text[:1] != "}").map(lambda broken: "{" + broken),
)


@given(
    st.lists(st.tuples(st.text(max_size=2).map("f".__add__), arguments), min_size=1, max_size=4),
    st.data(),
)
def test_calls_interleaved_in_any_way_come_out_right(
    wanted: list[tuple[str, str]], draw: st.DataObject
) -> None:
    left = {index: list(text) for index, (_, text) in enumerate(wanted)}
    chunks = [
        says(**calls(index, id=f"c{index}", name=name)) for index, (name, _) in enumerate(wanted)
    ]
    while left:
        index = draw.draw(st.sampled_from(sorted(left)))
        count = draw.draw(st.integers(1, 3))
        piece, left[index] = "".join(left[index][:count]), left[index][count:]
        chunks.append(says(**calls(index, piece)))
        if not left[index]:
            del left[index]
    blocks = answer(read(*chunks, says("tool_calls"))).choices[0].blocks
    found = [(b.tool_use.id, b.tool_use.name, b.tool_use.input) for b in blocks]
    assert found == [(f"c{i}", name, text) for i, (name, text) in enumerate(wanted)]


def piece(name: str = "", arguments: str = "", **fields: Any) -> Json:
    """Return a piece of a call, without an index unless it is given."""
    return {"function": {"name": name, "arguments": arguments}, **fields}


TWO_CALLS = [("f", '{"a":1}'), ("g", '{"b":2}')]


@each_row(
    ("chunks", "expected"),
    [
        # No index and no id: several in one chunk, or one after the other.
        ([[piece("f", '{"a":1}'), piece("g", '{"b":2}')]], TWO_CALLS),
        ([[piece("f", '{"a":1}')], [piece("g", '{"b":2}')]], TWO_CALLS),
        ([[piece("f"), piece("g")], [piece("", '{"a":1}'), piece("", '{"b":2}')]], TWO_CALLS),
        # Each call has index 0, and its arguments come in pieces without an id.
        (
            [
                [piece("f", "", id="c1", index=0)],
                [piece("", '{"a"', index=0)],
                [piece("", ":1}", index=0)],
                [piece("g", "", id="c2", index=0)],
                [piece("", '{"b":2}', index=0)],
            ],
            TWO_CALLS,
        ),
        # The same index and id for each call.
        (
            [[piece("f", '{"a":1}', id="c", index=0)], [piece("g", '{"b":2}', id="c", index=0)]],
            TWO_CALLS,
        ),
        # Another id with each piece, with and without the name.
        (
            [
                [piece("f", "", id="1", index=0)],
                [piece("", '{"a"', id="2", index=0)],
                [piece("f", ":1}", id="3", index=0)],
            ],
            TWO_CALLS[:1],
        ),
        # The name in each piece, also in a last one without arguments.
        (
            [
                [piece("f", '{"a"', id="c", index=0)],
                [piece("f", ":1}", id="c", index=0)],
                [piece("f", "", id="c", index=0)],
            ],
            TWO_CALLS[:1],
        ),
        # Both forms of a function's name in one piece.
        ([[{**piece("f", '{"a":1}'), "custom": {}, "index": 0, "id": "c"}]], TWO_CALLS[:1]),
    ],
)
def test_pieces_are_joined_to_calls(
    chunks: list[list[Json]], expected: list[tuple[str, str]]
) -> None:
    events = read(*(says(tool_calls=pieces) for pieces in chunks), says("tool_calls"))
    calls = [block.tool_use for block in answer(events).choices[0].blocks]
    assert [(call.name, call.input) for call in calls] == expected
    assert not any(call.freeform for call in calls)


def test_whole_calls_with_empty_ids_are_apart() -> None:
    calls = [piece("f", '{"a":1}', id=""), piece("f", '{"a":1}', id="")]
    blocks = whole({"tool_calls": calls}, "tool_calls").choices[0].blocks
    assert [block.tool_use.input for block in blocks] == ['{"a":1}'] * 2


def test_an_id_that_is_repeated_is_replaced() -> None:
    events = read(
        says(**calls(0, "{}", id="c", name="f")),
        says(**calls(1, "{}", id="c", name="f")),
        says("tool_calls"),
    )
    ids = [block.tool_use.id for block in answer(events).choices[0].blocks]
    assert ids == ["c", "call_new"]


def test_a_name_in_pieces_is_joined() -> None:
    tool = Tool(name="get_weather", input_schema=b"{}")
    events = read(
        says(**calls(0, '{"a"', id="c", name="get_")),
        says(**calls(0, ":1}", id="c", name="weather")),
        says("tool_calls"),
        tools=[tool],
    )
    (block,) = answer(events).choices[0].blocks
    assert (block.tool_use.name, block.tool_use.input) == ("get_weather", '{"a":1}')


def test_a_name_that_no_tool_has_is_passed_on() -> None:
    tool = Tool(name="get_weather", input_schema=b"{}")
    events = read(says(**calls(0, "{}", id="c", name="f")), says("tool_calls"), tools=[tool])
    assert answer(events).choices[0].blocks[0].tool_use.name == "f"


def test_a_repeated_name_is_examined_a_bounded_number_of_times() -> None:
    """Each examination reads all arguments, so that many would take quadratic time."""
    pieces = [piece("f", '{"a"', id="c", index=0)] + [piece("f", "{", id="c", index=0)] * 20_000
    reader = reader_of()
    reader.feed(data(*(says(tool_calls=[one]) for one in pieces)), [])
