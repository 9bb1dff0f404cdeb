"""Turns: where they begin and end, what is written of them, and what a provider sees."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.conversation.v1.conversation_pb2 import Message
from services.memory.storage.messages import normalize
from services.memory.storage.stored_turns import (
    StoredTurn,
    append_answer,
    complete_turns,
    conversation_text,
    extend_turns,
    pending_call_ids,
    to_model_messages,
    user_text,
)
from tests.services.memory.conversations import (
    ASSISTANT,
    Memory,
    call,
    check_memory,
    check_valid,
    image,
    model,
    result,
    thought,
    user,
)


def turn(number: int, first: int, *messages: Message, is_open: bool = False) -> StoredTurn:
    return StoredTurn(number, messages, 7, is_open, first)


def texts(memory: Memory) -> list[list[str]]:
    return [["".join(b.text for b in m.blocks) for m in t.messages] for t in memory.turns]


def is_incomplete(closed: StoredTurn) -> bool:
    """Return whether calls were left unanswered when the user went on."""
    return not closed.open and bool(pending_call_ids(closed.messages))


HELLO = turn(1, 0, user("Hello"), model("Hi."))
CALLING = turn(2, 2, user("Weather?"), model(call("1"), call("2")), is_open=True)


def test_user_message_starts_a_turn_and_keeps_the_last_one() -> None:
    assert extend_turns(HELLO, 2, [user("So?")], now_ms=9) == [
        StoredTurn(2, (user("So?"),), 9, False, 2)
    ]


def test_user_messages_one_after_the_other_are_one_turn() -> None:
    made = extend_turns(None, 0, [user("a"), user("b"), model("c"), user("d")], now_ms=9)
    assert [t.messages for t in made] == [(user("a"), user("b"), model("c")), (user("d"),)]
    assert [(t.number, t.first_message) for t in made] == [(1, 0), (2, 3)]


def test_messages_before_the_first_user_join_the_first_turn() -> None:
    made = extend_turns(
        None, 0, [model("Welcome!"), user("Hello"), model("Hi."), user("b")], now_ms=9
    )
    assert [len(t.messages) for t in made] == [3, 1]


def test_results_of_tools_go_on_with_the_open_turn() -> None:
    (made,) = extend_turns(CALLING, 4, [user(result("1")), user(result("2"))], now_ms=9)
    assert (made.number, made.first_message, made.created_at_ms, made.open) == (2, 2, 7, False)
    assert made.messages == (*CALLING.messages, user(result("1")), user(result("2")))


def test_a_turn_stays_open_until_all_of_its_calls_are_answered() -> None:
    (made,) = extend_turns(CALLING, 4, [user(result("1"))], now_ms=9)
    assert made.open and pending_call_ids(made.messages) == {"2"}
    (answered,) = complete_turns([made], model())
    assert answered.open
    (answered,) = complete_turns([made], model("Sunny."))
    assert not answered.open


def test_a_user_message_on_an_open_turn_closes_it_incomplete() -> None:
    closed, begun = extend_turns(CALLING, 4, [user(result("1")), user("Never mind")], now_ms=9)
    assert (closed.number, closed.open, is_incomplete(closed)) == (2, False, True)
    assert (begun.number, begun.first_message, is_incomplete(begun)) == (3, 5, False)
    assert to_model_messages(closed.messages) == [
        user("Weather?"),
        model(call("1")),
        user(result("1")),
    ]
    closed, begun = extend_turns(CALLING, 4, [user("Never mind")], now_ms=9)
    assert closed.messages == CALLING.messages
    assert (closed.open, is_incomplete(closed), begun.number) == (False, True, 3)
    assert to_model_messages(closed.messages) == [user("Weather?")]


def test_a_rewound_turn_is_cut_and_keeps_its_number() -> None:
    assert extend_turns(HELLO, 1, [], now_ms=9) == [turn(1, 0, user("Hello"))]
    assert extend_turns(HELLO, 1, [user("there")], now_ms=9) == [
        turn(1, 0, user("Hello"), user("there"))
    ]
    assert extend_turns(HELLO, 1, [model("Other."), user("So?")], now_ms=9) == [
        turn(1, 0, user("Hello"), model("Other.")),
        StoredTurn(2, (user("So?"),), 9, False, 2),
    ]


def test_after_an_empty_answer_the_user_continues_the_turn() -> None:
    memory = Memory()
    memory.take([user("Hello")], model())
    memory.take([user("Anybody?")], model("Yes."))
    assert texts(memory) == [["Hello", "Anybody?", "Yes."]]
    check_memory(memory)


def test_without_any_message_there_is_no_turn() -> None:
    assert extend_turns(None, 0, [], now_ms=9) == []


def test_a_prefill_and_its_continuation_are_one_message() -> None:
    memory = Memory()
    memory.take([user("Go"), model("Sure, ")], model(thought("Hm."), "here it is."))
    assert memory.messages == [user("Go"), model("Sure, here it is.")]
    memory.take([user("Go"), model("Sure, "), model("here it is."), user("More")], model("No."))
    memory.take([*memory.messages, user("Why?")], model("So."))
    assert texts(memory) == [["Go", "Sure, here it is."], ["More", "No."], ["Why?", "So."]]


def test_a_continued_stored_answer_stays_one_message() -> None:
    memory = Memory()
    memory.take([user("Go")], model("One, "))
    memory.take([user("Go"), model("One, ")], model("two, "))
    memory.take([user("Go"), model("One, "), model("two, ")], model("three."))
    assert texts(memory) == [["Go", "One, two, three."]]


def test_prefill_behind_a_stored_answer_is_merged_with_it() -> None:
    memory = Memory()
    memory.take([user("Go")], model("One, "))
    memory.take([model("two, ")], model("three."))
    assert texts(memory) == [["Go", "One, two, three."]]
    check_memory(memory)


def test_another_continuation_takes_the_place_of_the_first() -> None:
    memory = Memory()
    memory.take([user("Hello")], model("Hi."))
    memory.take([user("Go")], model("One, "))
    before = memory.messages
    memory.take(before, model("two."))
    memory.take(before, model("three."))
    assert texts(memory) == [["Hello", "Hi."], ["Go", "One, three."]]


def test_an_answer_that_says_nothing_adds_nothing() -> None:
    assert append_answer([user("a")], model(thought("Hm."))) == (user("a"),)
    assert append_answer([user("a"), model("b")], model(" ")) == (user("a"), model("b"))


def test_only_what_may_be_kept_is_written() -> None:
    memory = Memory()
    memory.take([user("See", image(b"png"))], model(thought("Hm."), "A cat."))
    assert not any(
        b.media.data or b.HasField("thinking") for m in memory.messages for b in m.blocks
    )


def test_stored_text_wins_over_its_echo() -> None:
    memory = Memory()
    memory.take([user("Hello")], model("Hi."))
    memory.take([user("  Hello\n"), model("Hi. ", thought("Hm.")), user("So?")], model("Yes."))
    assert texts(memory) == [["Hello", "Hi."], ["So?", "Yes."]]


def test_an_edit_replaces_the_turns_behind_it() -> None:
    memory = Memory()
    for words in ("a", "b", "c"):
        memory.take([user(words)], model(words.upper()))
    memory.take([*memory.messages[:2], user("x")], model("X"))
    assert texts(memory) == [["a", "A"], ["x", "X"]]
    check_memory(memory)


def test_a_call_is_shown_with_its_result_alone() -> None:
    exchange = [
        user("Weather?"),
        model(thought("Hm."), "Let me see.", call("1"), call("2")),
        user(result("2", "rain"), result("2", "twice"), result("9", "stray")),
    ]
    assert to_model_messages(exchange) == [
        user("Weather?"),
        model("Let me see.", call("2")),
        user(result("2", "rain")),
        user("[Result of a tool]", "twice", "[Result of a tool]", "stray"),
    ]


def test_of_two_calls_with_one_id_one_is_shown() -> None:
    exchange = [user("a"), model(call("1", "x"), call("1", "y")), user(result("1"))]
    assert to_model_messages(exchange) == [user("a"), model(call("1", "x")), user(result("1"))]


def test_call_is_left_out_when_another_assistant_follows() -> None:
    ann, bob = model("b", call("1"), name="Ann"), model("c", name="Bob")
    shown = to_model_messages([user("a"), ann, bob, user(result("1", "d"))])
    assert shown == [user("a"), model("b", name="Ann"), bob, user("[Result of a tool]", "d")]


def test_a_result_without_its_call_is_said_as_text() -> None:
    assert to_model_messages([user(result("1", "sunny", image())), model("So.")]) == [
        user("[Result of a tool]", "sunny", image()),
        model("So."),
    ]


def test_a_late_result_stays_the_newest_thing_said() -> None:
    memory = Memory()
    memory.take([user("Weather?")], model(call("1"), call("2")))
    memory.take([user(result("1", "sunny"))], model("Sunny there."))
    begun = memory.begin([user(result("2", "rain"))])
    shown = memory.shown(begun)
    check_valid(shown)
    assert shown[-1] == user("[Result of a tool]", "rain")


def test_valid_messages_are_shown_unchanged() -> None:
    exchange = [user("a", image()), model("b", call("1")), user(result("1", "c")), model("d")]
    assert to_model_messages(exchange) == exchange


MESSAGES = st.builds(
    lambda role, blocks: user(*blocks) if role else model(*blocks),
    st.booleans(),
    st.lists(
        st.sampled_from(
            [*[call(i) for i in "123"], *[result(i, "r") for i in "123"], thought("Hm."), image()]
        )
        | st.sampled_from(["a", " "]),
        max_size=4,
    ),
)


@given(st.lists(MESSAGES, max_size=10), st.booleans())
def test_shown_conversation_is_valid_for_any_input(
    messages: list[Message], is_normal: bool
) -> None:
    """Wrong roles for calls and results aside, which the facade refuses."""
    fitting = [
        Message(
            role=m.role,
            blocks=[
                b
                for b in m.blocks
                if not b.HasField("tool_result" if m.role == ASSISTANT else "tool_use")
            ],
        )
        for m in messages
    ]
    conversation = [user("Begin"), *fitting, user("End")]
    shown = to_model_messages(normalize(conversation) if is_normal else conversation)
    check_valid(shown)
    assert to_model_messages(shown) == shown


def test_earlier_messages_are_written_as_text() -> None:
    exchange = [
        user("What is this?", image(description="a cat")),
        model(thought("Hm."), "Let me look. ", call("1", "look")),
        user(result("1", "a tabby")),
        model("A cat."),
    ]
    assert conversation_text(exchange) == (
        "User: What is this? [image, image/png: a cat]\n"
        "Assistant: Let me look. [used look]\n"
        "Assistant: A cat."
    )
    assert user_text(exchange) == "What is this?"
    assert conversation_text([]) == user_text([model("Hi.")]) == ""
