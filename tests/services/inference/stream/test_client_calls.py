import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from gateway.conversation.v1.conversation_pb2 import Block, ToolUse
from gateway.inference.v1.inference_pb2 import BlockStop, Event
from services.inference.client_tools.client_tool import ClientTool
from services.inference.stream.client_calls import ClientCallFilter
from services.inference.stream.custom_input import InputDecoder
from tests.grid import each_row

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def decoded(pieces: Sequence[str]) -> str:
    decoder = InputDecoder()
    return "".join([*map(decoder.feed, pieces), decoder.end()])


@given(TEXTS, st.booleans(), st.sampled_from([None, 1]))
def test_a_text_is_the_same_split_anywhere(text: str, is_ascii: bool, indent: int | None) -> None:
    arguments = json.dumps({"input": text}, ensure_ascii=is_ascii, indent=indent)
    assert decoded(list(arguments)) == text
    for place in range(len(arguments)):
        assert decoded([arguments[:place], arguments[place:]]) == text


@given(TEXTS)
def test_a_text_comes_as_it_is_written(text: str) -> None:
    decoder = InputDecoder()
    arguments = json.dumps({"input": text}, ensure_ascii=False)
    come = "".join(map(decoder.feed, arguments.removesuffix('"}')))
    assert come == text


@each_row(
    ("arguments", "text"),
    [
        ('{"why":"w","input":"a\\nb"}', "a\nb"),
        ('{"input":"a","why":"w \\" {"}', "a"),
        ('{"patch":"a"}', '{"patch":"a"}'),
        ('{"input":5}', '{"input":5}'),
        ('"a\\tb"', "a\tb"),
        ("*** Begin Patch", "*** Begin Patch"),
        ("", ""),
        ("{}", ""),
        ('{"input":"cut \\u26', "cut "),
        ('{"input":"cut \\ud83d', "cut \ufffd"),
        ('{"input":"\\ude00\\ud83dx\\ud83d\\n\\q\\uzzzz"}', "\ufffd\ufffdx\ufffd\nq\ufffd"),
        ('{"input":"raw\nline"}', "raw\nline"),
    ],
)
def test_arguments_of_other_forms(arguments: str, text: str) -> None:
    assert decoded([arguments]) == text
    assert decoded(list(arguments)) == text


def test_calls_of_custom_tools_alone_are_changed() -> None:
    batch = [
        start(0, "apply_patch", '{"input":'),
        Event(choice=1, block=0, input='{"a":1}'),
        Event(block=0, input='"one\\n'),
        Event(block=0, input='"}'),
        Event(block=0, block_stop=BlockStop()),
        start(1, "get_weather", '{"input":"x"}'),
        Event(block=1, input='"'),
        Event(block=1, block_stop=BlockStop()),
    ]
    tools = {"apply_patch": ClientTool("apply_patch", is_freeform=True)}
    passed = list(ClientCallFilter(tools).feed(batch))
    begun = Event(block_start=Block(tool_use=ToolUse(id="c", name="apply_patch", freeform=True)))
    assert passed == [begun, batch[1], Event(block=0, input="one\n"), *batch[4:]]


def start(number: int, name: str, arguments: str) -> Event:
    use = ToolUse(id="c", name=name, input=arguments)
    return Event(block=number, block_start=Block(tool_use=use))
