"""Single messages: their keys, what is kept of them, and the normal form."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message, Opaque
from services.memory.storage.messages import (
    KEY_SIZE,
    is_user_turn_start,
    media_placeholder,
    message_key,
    normalize,
    to_storable,
)
from tests.grid import each_row
from tests.services.memory.conversations import (
    USER,
    call,
    image,
    model,
    result,
    text,
    thought,
    user,
)


def opaque(json: bytes) -> Block:
    return Block(opaque=Opaque(dialect=conversation.DIALECT_ANTHROPIC, json=json))


def media(**source: str | bytes) -> Block:
    return Block(media=Media(kind=conversation.MEDIA_KIND_IMAGE, **source))


REDACTED = Block(redacted_thinking="secret")
REFUSAL = Block(refusal="I cannot.")
FREEFORM = call("1", given="{ }")
FREEFORM.tool_use.freeform = True
HASH = sha256(b"png").digest()

EQUAL = [
    (user("Hello"), user(" \n Hello\t")),
    (user("Hello"), user("Hel", "lo")),
    (user("Hello"), user("Hello", name="Ann")),
    (user("café"), user("cafe\u0301")),
    (model("Well."), model(thought("Hm."), "Well.", REDACTED)),
    (model("Well."), model("We", thought("Hm."), "ll.")),
    (model("One ", call("1"), "two"), model("One two", call("1"))),
    (model("I cannot."), model(REFUSAL)),
    (model(call("1")), model(call("2"))),
    (model(call("1", given='{"a": 1.0, "b": [2]}')), model(call("1", given='{"b":[2],"a":1}'))),
    (model(call("1", given="{}")), model(call("1", given=""))),
    (model(call("1", given='{"a')), model(call("1", given='{"a'))),
    (user(result("1", "sunny")), user(result("2", "sun", "ny "))),
    (user("See", media(data=b"png")), user("See", media(sha256=HASH))),
    (user("See", image(b"png")), user("See", image(b"png", "a cat"))),
    (user(opaque(b'{"a":1,"b":2}')), user(opaque(b'{"b": 2, "a": 1}'))),
]
DIFFERENT = [
    (user("Hello"), model("Hello")),
    (user("Hello"), user("hello")),
    (user("a b"), user("ab")),
    (user("a", image(), "b"), user(image(), "ab")),
    (user("See", image(b"png")), user("See", image(b"gif"))),
    (user("See", image()), user("See")),
    (user(media(file_id="file-1")), user(media(file_id="file-2"))),
    (user(media(url="https://a.example/1")), user(media(url="https://a.example/2"))),
    (model(call("1", "weather")), model(call("1", "time"))),
    (model(call("1", given='{"a": 1}')), model(call("1", given='{"a": 2}'))),
    (model(call("1", given='{"a')), model(call("1", given='{"b'))),
    (model(call("1", given="{ }")), model(FREEFORM)),
    (model(call("1"), call("2", "time")), model(call("2", "time"), call("1"))),
    (user(result("1", "sunny")), user("sunny")),
    (user(result("1", "sunny")), user(result("1", "rain"))),
    (user(result("1", "sunny"), result("2")), user(result("1"), result("2", "sunny"))),
    (user(opaque(b'{"a":1}')), user(opaque(b'{"a":2}'))),
    (user(opaque(b"\xff")), user(opaque(b"\xfe"))),
]


@each_row(("one", "other"), EQUAL)
def test_messages_that_say_the_same_have_one_key(one: Message, other: Message) -> None:
    assert message_key(one) == message_key(other)
    assert len(message_key(one)) == KEY_SIZE


@each_row(("one", "other"), DIFFERENT)
def test_messages_that_say_something_else_have_other_keys(one: Message, other: Message) -> None:
    assert message_key(one) != message_key(other)


def test_the_parts_of_a_message_cannot_pass_for_one_another() -> None:
    calls = model(call("1", "look", "{}"), call("1", "see", "{}"))
    for forged in ("looka{}csee", "looka2:{}c3:see"):
        assert message_key(calls) != message_key(model(call("1", forged, "{}")))
    twice = user(result("1", "a"), result("1", "b"))
    for forged in ("atbrtb", "artb", "ar4:t1:b"):
        assert message_key(twice) != message_key(user(result("1", forged)))


def test_too_deeply_nested_arguments_are_compared_as_text() -> None:
    deep = "[" * 100_000
    assert message_key(model(call("1", given=deep))) == message_key(model(call("2", given=deep)))
    assert message_key(model(call("1", given=deep))) != message_key(model(call("1", given="[")))


def test_numbers_of_any_size_have_a_key() -> None:
    for given_number in ("1e400", "-1e400", "NaN", "9" * 5000, "1.5", "1e300"):
        assert message_key(model(call("1", given=f'{{"n": {given_number}}}')))


def test_thoughts_cache_marks_and_bytes_are_not_stored() -> None:
    marked = text("See")
    marked.cache_control = b'{"type":"ephemeral"}'
    inner = image(b"inner")
    inner.cache_control = b'{"type":"ephemeral"}'
    answer = result("1", inner, "sunny")
    answer.cache_control = b'{"type":"ephemeral"}'
    kept = to_storable(user(marked, image(b"png", "a cat"), answer))
    assert kept is not None
    seen, shown, answered = kept.blocks
    assert (seen.text, seen.cache_control) == ("See", b"")
    assert (shown.media.sha256, shown.media.description) == (HASH, "a cat")
    assert not shown.media.HasField("data")
    assert answered.tool_result.blocks[0].media.sha256 == sha256(b"inner").digest()
    assert not answered.cache_control and not answered.tool_result.blocks[0].cache_control
    assert to_storable(model(thought("Hm."), REDACTED, call("1"))) == model(call("1"))


def test_what_a_model_said_in_pieces_is_kept_as_one_text() -> None:
    assert to_storable(model("The grass ", "is", " ", thought("Hm."), "green")) == model(
        "The grass is green"
    )
    assert to_storable(user("One", "two")) == user("One", "two")


@pytest.mark.parametrize("said", [user(), user(" \n"), model(thought("Hm."), " "), model(REDACTED)])
def test_of_a_message_that_says_nothing_nothing_is_kept(said: Message) -> None:
    assert to_storable(said) is None
    assert normalize([said]) == []


def test_results_alone_open_no_turn() -> None:
    assert is_user_turn_start(user("Hello"))
    assert is_user_turn_start(user(image()))
    assert is_user_turn_start(user(result("1"), "And?"))
    assert not is_user_turn_start(user(result("1"), result("2")))
    assert not is_user_turn_start(model("Hello"))


def test_tool_results_become_messages_before_the_users_text() -> None:
    mixed = user("And?", result("1", "a"), result("2", "b"))
    assert normalize([model(call("1"), call("2")), mixed]) == [
        model(call("1"), call("2")),
        user(result("1", "a")),
        user(result("2", "b")),
        user("And?"),
    ]
    assert normalize([user("And?"), user(result("1"))]) == [user(result("1")), user("And?")]
    assert normalize([user(result("1"), " ")]) == [user(result("1"))]


def test_neighbours_of_one_assistant_become_one_message() -> None:
    assert normalize([user("a"), model("b"), model("c"), user("d"), user("e")]) == [
        user("a"),
        model("b", "c"),
        user("d"),
        user("e"),
    ]
    assert normalize([model("b"), user(" "), model("c")]) == [model("b", "c")]


def test_assistants_of_different_names_stay_separate() -> None:
    ann, bob = model("a", name="Ann"), model("b", name="Bob")
    assert normalize([ann, bob]) == [ann, bob]
    assert normalize([model("x"), ann, model("y"), bob]) == [
        model("x", "a", "y", name="Ann"),
        bob,
    ]


def test_a_medium_is_described_in_words() -> None:
    assert media_placeholder(image(description="a cat").media).text == "[image, image/png: a cat]"
    report = Media(kind=conversation.MEDIA_KIND_DOCUMENT, name="report.pdf", sha256=HASH)
    assert media_placeholder(report).text == "[document, report.pdf: no longer kept]"


BLOCKS = st.one_of(
    st.sampled_from(["a", " ", "\n", "b ", "e\u0301"]).map(text),
    st.sampled_from(
        [
            thought("Hm."),
            REDACTED,
            image(),
            call("1"),
            call("2", given='{"b": 1, "a": 2}'),
            result("1", "a", " ", image()),
            result("2"),
            opaque(b"{}"),
            REFUSAL,
        ]
    ),
)
MESSAGES = st.builds(
    lambda role, blocks, name: Message(role=role, blocks=blocks, name=name),
    st.sampled_from([USER, conversation.ROLE_ASSISTANT]),
    st.lists(BLOCKS, max_size=5),
    st.sampled_from(["", "", "Ann", "Bob"]),
)


@given(MESSAGES)
def test_stored_form_has_the_same_key_and_is_stable(message: Message) -> None:
    kept = to_storable(message)
    if kept is None:
        assert normalize([message]) == []
    else:
        assert message_key(kept) == message_key(message)
        assert to_storable(kept) == kept


@given(st.lists(MESSAGES, max_size=8))
def test_normal_form_is_idempotent_and_never_stored_empty(messages: list[Message]) -> None:
    normal = normalize(messages)
    assert normalize(normal) == normal
    assert all(to_storable(message) is not None for message in normal)


@given(st.lists(MESSAGES, max_size=8))
def test_what_is_kept_of_normal_messages_is_normal(messages: list[Message]) -> None:
    kept = [to_storable(message) for message in normalize(messages)]
    assert normalize([message for message in kept if message is not None]) == kept
