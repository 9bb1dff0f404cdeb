import orjson
from hypothesis import given
from hypothesis import strategies as st

from gateway.inference.v1.inference_pb2 import Event
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
    st.text(max_size=6).map(lambda broken: "{" + broken),
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
