"""Prefill: what it is in a request, and that an answer does not repeat it."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Message,
    Opaque,
    Thinking,
    ToolUse,
    Usage,
)
from gateway.inference.v1.inference_pb2 import BlockStop, Event, Finish, GenerateRequest, Start
from services.inference.stream.prefill import EchoFilter, prefill_of
from tests.grid import each_row

END = Finish(reason=conversation.FINISH_REASON_END_TURN)


def begin(block: int = 0, choice: int = 0, text: str = "") -> Event:
    return Event(choice=choice, block=block, block_start=Block(text=text))


def text(piece: str, block: int = 0, choice: int = 0) -> Event:
    return Event(choice=choice, block=block, text=piece)


def stop(block: int = 0, choice: int = 0) -> Event:
    return Event(choice=choice, block=block, block_stop=BlockStop())


def finish(choice: int = 0) -> Event:
    return Event(choice=choice, finish=END)


def said(events: list[Event], choice: int = 0) -> str:
    return "".join(event.text for event in events if event.choice == choice)


def run(prefill: str, events: list[Event], choices: int = 1) -> list[Event]:
    """Feed each event as a batch of its own."""
    transformer = EchoFilter(prefill, choices)
    return [passed for event in events for passed in transformer.feed([event])]


def answer(*pieces: str) -> list[Event]:
    return [begin(), *(text(piece) for piece in pieces), stop(), finish()]


@each_row(
    ("prefill", "pieces", "left"),
    [
        ("Sure, ", ["Sure, here"], "here"),
        ("Sure, ", ["Su", "re", ", he", "re"], "here"),
        ("Sure", ["\n ", " Su", "re it is"], " it is"),
        ("  Sure", ["Sure it is"], " it is"),
        ("Sure", ["Sur", "feit"], "Surfeit"),
        ("Sure", ["Sur", "ely"], "ly"),
        ("Sure", ["  Surf"], "  Surf"),
        ("Sure", ["Not sure"], "Not sure"),
        ("Sure", ["Su"], "Su"),
        ("Sure", ["  "], "  "),
        ("Sure", ["Sure"], ""),
        ("Sure", ["SureSure"], "Sure"),
        (" ", [" x"], " x"),
        ("Sure", ["", "Su", "", "re."], "."),
    ],
)
def test_only_a_repeated_prefill_is_removed(prefill: str, pieces: list[str], left: str) -> None:
    events = run(prefill, answer(*pieces))
    assert said(events) == left
    assert [event for event in events if event.WhichOneof("kind") != "text"] == answer()


def test_text_is_held_back_only_while_it_starts_the_prefill() -> None:
    transformer = EchoFilter("Sure")
    assert transformer.feed([begin(), text("Su")]) == [begin()]
    assert transformer.feed([text("rp")]) == [text("Su"), text("rp")]


def test_once_decided_batches_pass_as_they_are() -> None:
    transformer = EchoFilter("Sure")
    transformer.feed([begin(), text("Sure, "), text("x")])
    batch = [text("Sure"), stop(), finish()]
    assert transformer.feed(batch) is batch


def test_text_that_the_block_begins_with_counts() -> None:
    begun = Event(block_start=Block(text="Su", cache_control=b"{}"))
    assert run("Sure", [begun, text("re, yes"), stop(), finish()]) == [
        Event(block_start=Block(text="", cache_control=b"{}")),
        text(", yes"),
        stop(),
        finish(),
    ]


def test_what_is_held_goes_out_when_its_block_ends() -> None:
    batch = [begin(), text("Su"), stop()]
    assert EchoFilter("Sure").feed(batch) == batch


def test_thinking_comes_before_and_passes() -> None:
    thinking = [
        Event(block_start=Block(thinking=Thinking())),
        Event(thinking="Sure"),
        stop(),
    ]
    events = [*thinking, begin(1), text("Sure, yes", 1), stop(1), finish()]
    assert run("Sure", events) == [*thinking, begin(1), text(", yes", 1), stop(1), finish()]


def test_only_the_first_text_block_is_looked_at() -> None:
    events = [begin(), text("No"), stop(), begin(1), text("Sure", 1), stop(1), finish()]
    assert run("Sure", events) == events


def test_each_choice_is_looked_at_by_itself() -> None:
    events = [begin(), begin(choice=1), text("Su"), text("No", choice=1), text("re!")]
    passed = run("Sure", events, choices=2)
    assert (said(passed, 0), said(passed, 1)) == ("!", "No")


def test_other_choices_are_looked_at_after_one_is_decided() -> None:
    events = [begin(), text("No"), begin(choice=1), text("Sure!", choice=1)]
    assert said(run("Sure", events, choices=2), 1) == "!"


def test_a_choice_without_text_decides_nothing_for_the_others() -> None:
    events = [finish(0), begin(choice=1), text("Sure!", choice=1)]
    assert said(run("Sure", events, choices=2), 1) == "!"


def test_start_and_usage_are_not_held_back() -> None:
    usage = Event(usage=Usage(output_tokens=1))
    begun = Event(start=Start(id="a"))
    assert run("Sure", [begun, begin(), text("Su"), usage]) == [begun, begin(), usage]


def test_other_deltas_keep_their_place_among_held_text() -> None:
    citation = Event(opaque=Opaque(json=b"{}"))
    surf = [begin(), text("Su"), citation, text("rf"), stop()]
    assert run("Sure", surf) == surf
    assert run("Sure", [begin(), text("Su"), citation, text("re!")]) == [
        begin(),
        citation,
        text("!"),
    ]


def test_log_probabilities_stay_with_what_is_left_of_a_delta() -> None:
    events = run("Sure", [begin(), Event(text="Sure!", logprobs=b"{}")])
    assert events == [begin(), Event(text="!", logprobs=b"{}")]


@given(st.text("ab ", max_size=6), st.lists(st.text("ab ", max_size=4), max_size=6), st.booleans())
def test_any_cut_gives_what_the_whole_text_gives(
    prefill: str, pieces: list[str], echoes: bool
) -> None:
    whole = (prefill if echoes else "") + "".join(pieces)
    cut = [prefill[:2], prefill[2:], *pieces] if echoes else pieces
    echo = prefill.lstrip()
    repeats = echo and whole.lstrip().startswith(echo)
    left = whole.lstrip()[len(echo) :] if repeats else whole
    events = run(prefill, answer(*cut))
    assert said(events) == left
    assert EchoFilter(prefill).feed(answer(whole))[-2:] == [stop(), finish()]
    assert said(list(EchoFilter(prefill).feed(answer(whole)))) == left


def message(role: conversation.Role.ValueType, *blocks: Block) -> Message:
    return Message(role=role, blocks=blocks)


USER = conversation.ROLE_USER
ASSISTANT = conversation.ROLE_ASSISTANT
ASKED = message(USER, Block(text="Hi"))
CALL = Block(tool_use=ToolUse(id="t", name="f"))
THOUGHT = Block(thinking=Thinking(text="hm"))


@each_row(
    ("messages", "prefill"),
    [
        ([ASKED], None),
        ([ASKED, message(ASSISTANT, Block(text="A"))], "A"),
        ([ASKED, message(ASSISTANT, THOUGHT, Block(text="A"), Block(text="B"))], "AB"),
        ([message(ASSISTANT, Block(text="A")), message(ASSISTANT, Block(text="B"))], "AB"),
        ([message(ASSISTANT, Block(text="A")), ASKED], None),
        ([message(ASSISTANT, Block(text="A")), ASKED, message(ASSISTANT, Block(text="B"))], "B"),
        ([ASKED, message(ASSISTANT, Block(text="A"), CALL)], None),
        ([ASKED, message(ASSISTANT, THOUGHT)], None),
        ([], None),
    ],
)
def test_a_prefill_is_the_text_of_the_assistant_at_the_end(
    messages: list[Message], prefill: str | None
) -> None:
    assert prefill_of(GenerateRequest(messages=messages)) == prefill
