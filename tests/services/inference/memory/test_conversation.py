"""The part of a remembered conversation that a model receives."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message, Opaque, Thinking
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool
from gateway.memory.v1.memory_pb2 import Snippet, TurnContext
from services.common.text.tokens import estimate_tokens
from services.inference.memory.conversation import Conversation, ModelView
from services.inference.memory.split import split_request
from services.inference.providers.base import Target
from services.inference.request.estimate import estimate_input_tokens
from tests.services.inference.memory.builders import (
    DOCUMENT,
    IMAGE,
    assistant,
    call,
    context,
    developer,
    image,
    request,
    result,
    system,
    texts,
    user,
)

PICTURE = b"a picture"
INJECT = 4000
SEES = Target("sees", "p", "sees", inputs=frozenset({IMAGE, DOCUMENT}))
BLIND = Target("blind", "p", "blind", inputs=frozenset())


def small(window: int) -> Target:
    return Target("small", "p", "small", context_window=window)


def conversation_of(asked: GenerateRequest, remembered: TurnContext) -> Conversation:
    return Conversation(split_request(asked), remembered, asked.memory, INJECT)


def seen(asked: GenerateRequest, remembered: TurnContext, target: Target = BLIND) -> ModelView:
    return conversation_of(asked, remembered).view_for(asked, target)


def said(asked: GenerateRequest, remembered: TurnContext, target: Target = BLIND) -> list[str]:
    return texts(seen(asked, remembered, target).request.messages)


def test_everything_comes_in_its_order() -> None:
    remembered = context(
        user("Old question"),
        assistant("Old answer"),
        user("Newest"),
        turns=[[user("1"), assistant("2")]],
        profile="name: Ada",
        summary="They met.",
        snippets=[Snippet(turn=3, text="User: blue")],
    )
    asked = request(system("Be brief."), user("Newest"), max_tokens=5)
    shown = seen(asked, remembered).request
    first, notes, *turn, quotes, newest = texts(shown.messages)
    assert first == "Be brief."
    assert "> name: Ada" in notes
    assert notes.index("> name: Ada") < notes.index("> They met.")
    assert turn == ["1", "2", "Old question", "Old answer"]
    assert quotes.endswith("> User: blue")
    assert newest == "Newest"
    roles = [one.role for one in shown.messages]
    assert roles[:2] == [conversation.ROLE_SYSTEM, conversation.ROLE_SYSTEM]
    assert roles[-2:] == [conversation.ROLE_USER, conversation.ROLE_USER]
    assert shown.max_tokens == 5
    assert not asked.messages


def test_nothing_is_added_where_nothing_is_remembered() -> None:
    assert said(request(user("Hi")), context(user("Hi"))) == ["Hi"]


def test_notes_have_the_role_of_the_instructions_before_them() -> None:
    asked = request(developer("Be"), user("Hi"))
    shown = seen(asked, context(user("Hi"), summary="They met.")).request
    assert [one.role for one in shown.messages[:2]] == [conversation.ROLE_DEVELOPER] * 2


def test_notes_stay_the_same_whatever_is_quoted() -> None:
    notes = set()
    for text in ("", "User: a", "User: b " * 3000):
        snippets = [Snippet(turn=1, text=text)] if text else []
        remembered = context(
            user("Hi"), summary="They met. " * 900, profile="a: b\n" * 99, snippets=snippets
        )
        notes.add(said(request(user("Hi")), remembered)[0])
    assert len(notes) == 1


def test_long_notes_leave_room_for_quotes() -> None:
    snippets = [Snippet(turn=1, text="User: b " * 3000)]
    remembered = context(user("Hi"), summary="They met. " * 3000, snippets=snippets)
    notes, quotes, _ = said(request(user("Hi")), remembered)
    assert 1500 < estimate_tokens(notes) <= 2000
    assert 1500 < estimate_tokens(quotes) <= 4000 - estimate_tokens(notes)


@pytest.mark.parametrize("memory_id", ["m", ""])
def test_media_of_instructions_are_the_callers_own(memory_id: str) -> None:
    asked = request(
        system("Like this", image(data=PICTURE)),
        user("See", image(url="https://x/y")),
        memory_id=memory_id,
    )
    sent = copy(asked).messages[1]
    shown, media, _ = seen(asked, context(sent), SEES)
    assert shown.messages[0].blocks[1].media.data == PICTURE
    assert [one.block.media.url for one in media] == ["", "https://x/y"]
    assert media[1].path == "messages[1].blocks[1]"


def test_quotes_precede_the_users_text_not_tool_results() -> None:
    present = [user("Look"), assistant(call("1")), user(result("1"))]
    remembered = context(*present, snippets=[Snippet(turn=3, text="User: blue")])
    remembered.newest_user_message_index = 0
    quotes, *texts = said(request(user(result("1"))), remembered)
    assert quotes.endswith("> User: blue")
    assert texts == ["Look", "-", "-"]


def test_thoughts_beside_calls_go_with_them_again() -> None:
    thoughtful = assistant(Block(thinking=Thinking(text="hm", signature="s")), call("1"))
    present = [user("Look"), assistant(call("1")), user(result("1"))]
    shown = seen(request(user("Look"), thoughtful, user(result("1"))), context(*present)).request
    assert shown.messages[1] == thoughtful
    refused_fields = seen(request(user(result("1"))), context(*present)).request
    assert refused_fields.messages[1] == assistant(call("1"))


def test_media_bytes_are_restored_at_every_hash() -> None:
    asked = request(
        user("See", image(data=PICTURE, detail="low")),
        assistant("Yes"),
        user(result("1", image(data=PICTURE))),
    )
    hashed = split_request(copy(asked)).begin.messages
    remembered = context(hashed[2], turns=[[hashed[0], hashed[1]]])
    shown, media, _ = seen(asked, remembered, SEES)
    assert shown.messages[0].blocks[1].media.data == PICTURE
    assert shown.messages[2].blocks[0].tool_result.blocks[0].media.data == PICTURE
    assert [one.path for one in media] == ["messages[0].blocks[1]"] * 2
    assert all(one.block.media.mime_type == "image/png" for one in media)


def copy(asked: GenerateRequest) -> GenerateRequest:
    other = GenerateRequest()
    other.CopyFrom(asked)
    return other


@pytest.mark.parametrize(
    ("media", "told"),
    [
        (Media(kind=IMAGE, sha256=b"x" * 32), "[image: no longer kept]"),
        (
            Media(kind=IMAGE, sha256=b"x" * 32, name="cat.png", description="A cat."),
            "[image, cat.png: A cat.]",
        ),
        (
            Media(kind=DOCUMENT, sha256=b"x" * 32, mime_type="application/pdf"),
            "[document, application/pdf: no longer kept]",
        ),
        (Media(kind=IMAGE, url="https://x/y"), "[image, https://x/y: no longer kept]"),
    ],
)
def test_missing_media_are_replaced_by_words(media: Media, told: str) -> None:
    block = Block(
        media=media, extra=Opaque(dialect=conversation.DIALECT_ANTHROPIC, json=b'{"title":"x"}')
    )
    asked = request(user("Hi"))
    asked.multimodal.enabled = False
    shown = seen(asked, context(user("Hi"), turns=[[user(block)]]), SEES)
    assert shown.request.messages[0] == user(told)
    assert shown.media == []


def test_an_address_that_the_caller_sends_again_is_good() -> None:
    asked = request(user("See", image(url="https://x/y")), assistant("Yes"), user("Again"))
    remembered = context(
        user("Again"), turns=[[user("See", image(url="https://x/y")), assistant("Yes")]]
    )
    assert said(asked, remembered, SEES)[0] == "See -"


def test_an_address_of_the_present_turn_is_good() -> None:
    present = [user(image(url="https://x/y")), assistant(call("1")), user(result("1"))]
    assert said(request(user(result("1"))), context(*present), SEES)[0] == "-"


def test_remembered_files_are_shown_to_models_that_read_them() -> None:
    asked = request(user("Hi"))
    turn = [user("See", image(file_id="file-1"))]
    talk = conversation_of(asked, context(user("Hi"), turns=[turn]))
    ((file_id, (place,)),) = talk.remembered_files.items()
    assert file_id == "file-1"
    assert talk.callers_media == []
    place.block.media.data = PICTURE
    for target in (SEES, BLIND):
        shown = talk.view_for(asked, target)
        assert shown.request.messages[0].blocks[1].media.data == PICTURE
        ((medium),) = shown.media
        assert (medium.path, medium.is_remembered) == ("memory_id", True)
    asked.multimodal.enabled = False
    assert len(talk.view_for(asked, SEES).media) == 1
    assert texts(talk.view_for(asked, BLIND).request.messages)[0] == "See [image: no longer kept]"
    place.block.media.sha256 = b""
    assert texts(talk.view_for(asked, SEES).request.messages)[0] == "See [image: no longer kept]"


def test_remembered_text_is_read_by_every_model() -> None:
    asked = request(user("Hi"))
    file = Block(media=Media(kind=DOCUMENT, file_id="file-1", name="a.txt"))
    talk = conversation_of(asked, context(user("Hi"), turns=[[user(file)]]))
    ((place,),) = talk.remembered_files.values()
    place.block.media.data = b"Hello"
    place.block.media.mime_type = "text/plain"
    asked.multimodal.enabled = False
    for target in (BLIND, SEES):
        (medium,) = talk.view_for(asked, target).media
        assert medium.block.media.data == b"Hello"


def test_a_step_may_have_instructions_of_its_own() -> None:
    asked = request(system("Be"), user("Hi"))
    talk = conversation_of(asked, context(user("Hi"), turns=[[user("1"), assistant("2")]]))
    own = copy(asked)
    own.messages.extend([system("Do"), user("Hi"), system("not")])
    shown = texts(talk.view_for(own, BLIND).request.messages)
    assert shown == ["Do", "not", "1", "2", "Hi"]
    assert texts(talk.view_for(asked, BLIND).request.messages)[0] == "Be"


def test_profile_only_conversation_is_unchanged() -> None:
    asked = request(
        system("Be"),
        user("See", image(data=PICTURE)),
        assistant(Block(thinking=Thinking(text="hm")), "Yes"),
        system("Now"),
        user("Newest"),
        memory_id="",
    )
    before = copy(asked)
    shown, media, left_out = seen(asked, TurnContext(profile="name: Ada"), SEES)
    assert [shown.messages[0], *shown.messages[2:]] == list(before.messages)
    assert "> name: Ada" in texts(shown.messages)[1]
    assert [one.path for one in media] == ["messages[1].blocks[1]"]
    assert left_out == 0


def turns_of(count: int, words: int = 100) -> list[list[Message]]:
    return [[user(f"question {n}"), assistant("word " * words)] for n in range(count)]


def test_the_oldest_turns_are_left_out_where_there_is_no_room() -> None:
    remembered = context(user("Hi"), turns=turns_of(50))
    shown, _, left_out = seen(request(user("Hi"), max_tokens=1000), remembered, small(5000))
    assert 10 < left_out < 40
    assert texts(shown.messages)[0] == f"question {left_out}"
    assert len(shown.messages) == 2 * (50 - left_out) + 1


def test_each_model_sees_as_much_as_it_has_room_for() -> None:
    asked = request(user("Hi"), max_tokens=100)
    talk = conversation_of(asked, context(user("Hi"), turns=turns_of(50)))
    left_out = [
        talk.view_for(asked, target).left_out
        for target in (small(2000), small(4000), small(100_000), BLIND)
    ]
    assert left_out[0] > left_out[1] > 0
    assert left_out[2:] == [0, 0]


def test_what_is_asked_for_takes_its_room() -> None:
    def left_out(**fields: object) -> int:
        remembered = context(user("Hi"), turns=turns_of(50))
        return seen(request(user("Hi"), **fields), remembered, small(8000)).left_out

    tool = Tool(name="t", description="word " * 500)
    numbers = [left_out(max_tokens=n) for n in (10, 2000, 6000, 9000)]
    assert all(fewer < more for fewer, more in pairwise(numbers))
    assert numbers[-1] == 50
    assert left_out(max_tokens=10, tools=[tool]) > numbers[0]
    # Where nobody bounds the answer it is left a quarter.
    assert left_out() == numbers[1]


@given(
    window=st.integers(500, 40_000),
    answer=st.integers(1, 4000),
    profile=st.integers(0, 2000),
    summary=st.integers(0, 4000),
    found=st.lists(st.integers(0, 1500), max_size=8),
    sizes=st.lists(st.integers(0, 800), max_size=30),
)
def test_memory_alone_never_makes_a_request_too_long(
    window: int, answer: int, profile: int, summary: int, found: list[int], sizes: list[int]
) -> None:
    remembered = context(
        user("Hi"),
        turns=[[user("word " * size)] for size in sizes],
        profile="word " * profile,
        summary="word " * summary,
        snippets=[Snippet(turn=n, text="word " * size) for n, size in enumerate(found, 1)],
    )
    asked = request(system("Be brief."), user("Hi"), max_tokens=answer)
    bare = GenerateRequest(messages=asked.messages)
    shown = seen(asked, remembered, small(window)).request
    alone = estimate_input_tokens(bare)
    total = estimate_input_tokens(shown)
    assert total <= max(alone, window - answer)
    told = [
        one
        for one in shown.messages
        if one.blocks[0].text.startswith(("The gateway keeps", "Quoted by"))
    ]
    added = estimate_input_tokens(GenerateRequest(messages=told)) - 10 - 6 * len(told)
    assert added <= min(4000, window // 4)
    assert texts(shown.messages)[-1] == "Hi"
