"""Summaries without a model: what they keep, how long they get, and for how long."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message, ToolResult, ToolUse
from services.common.text.tokens import estimate_tokens
from services.memory.jobs.extractive_summary import MAX_TOKENS, extend_summary
from services.memory.profile.sentences import split_sentences, strip_non_prose
from tests.services.memory.builders import assistant, user
from tests.work import lines_run

CHATTER = [
    user("Thanks! Can you tell me more about how bridges are built?"),
    assistant("Of course. Bridges are built in many ways. Here are some. Let me know!"),
]


def talk(number: int) -> list[Message]:
    return [
        user(f"How does thing {number} work? I need it by {number} May."),
        assistant(
            f"Thing {number} was made by the company Thing {number} in {1900 + number % 100}. " * 5
            + "It is important because people decided to build it in the Great Hall."
        ),
    ]


def test_facts_are_kept_with_who_said_them_and_chatter_is_not() -> None:
    summary = extend_summary(
        "",
        [
            user("Hi! My sister Ada lives in Basel. Could you help me?"),
            assistant("Sure! The museum in Basel opened in 1936. Is there anything else?"),
            *CHATTER,
        ],
    )
    assert summary.splitlines() == [
        "- User: My sister Ada lives in Basel.",
        "- Assistant: The museum in Basel opened in 1936.",
    ]


def test_a_fact_of_the_first_batch_survives_to_the_hundredth() -> None:
    summary = extend_summary("", [user("My sister Ada is allergic to nuts."), *CHATTER])
    for batch in range(100):
        messages = [message for turn in range(5) for message in talk(5 * batch + turn)]
        summary = extend_summary(summary, messages)
        assert estimate_tokens(summary) <= MAX_TOKENS
    assert "- User: My sister Ada is allergic to nuts." in summary.splitlines()


def test_what_is_new_has_a_place_beside_a_full_summary() -> None:
    full = "\n".join(
        f"- User: My house number {number} is in Town {number}." for number in range(500)
    )
    full = extend_summary(full, [])
    summary = extend_summary(full, [user("By the way, my train to Rome leaves on 3 May.")])
    assert summary.splitlines()[-1] == "- User: By the way, my train to Rome leaves on 3 May."
    assert estimate_tokens(summary) <= MAX_TOKENS


def test_what_a_model_summarised_before_is_kept() -> None:
    summary = extend_summary(
        "Ada has a dog called Rex.\nShe wants to move.", [user("I moved to Bern.")]
    )
    assert summary.splitlines() == [
        "- Ada has a dog called Rex.",
        "- She wants to move.",
        "- User: I moved to Bern.",
    ]


def test_the_same_words_again_add_nothing() -> None:
    messages = [user("My sister Ada lives in Basel.")] * 3
    once = extend_summary("", messages)
    assert len(once.splitlines()) == 1
    assert extend_summary(once, messages) == once


def test_there_is_a_summary_of_anything_that_was_said() -> None:
    assert extend_summary("", [user("ok")]) == "- User: ok"
    assert extend_summary("", [user("?!"), assistant("Hello!")])
    image = Media(kind=conversation.MEDIA_KIND_IMAGE, description="a red bike", sha256=b"x" * 32)
    shown = extend_summary("", [Message(role=conversation.ROLE_USER, blocks=[Block(media=image)])])
    assert "a red bike" in shown
    assert extend_summary("", []) == ""


def test_what_tools_answer_is_nobodys_word() -> None:
    call = Message(
        role=conversation.ROLE_ASSISTANT,
        blocks=[Block(tool_use=ToolUse(id="1", name="look", input="{}"))],
    )
    result = ToolResult(tool_use_id="1", blocks=[Block(text="I live in Xanadu since 1999.")])
    answered = Message(role=conversation.ROLE_USER, blocks=[Block(tool_result=result)])
    assert "Xanadu" not in extend_summary("", [user("I live in Basel."), call, answered])


def test_code_tables_and_quoted_lines_are_left_out() -> None:
    text = "I need help by 5 May.\n```py\nMy = 'Secret 123'\n```\n| A | 1 |\n> I said Hello 2 You"
    assert extend_summary("", [user(text)]) == "- User: I need help by 5 May."


def test_long_lines_are_cut() -> None:
    [line] = extend_summary("", [user("I need " + "many very big words " * 50)]).splitlines()
    assert len(line) <= 240
    assert line.endswith("\u2026")


@given(st.lists(st.text(max_size=300), max_size=6), st.text(max_size=300))
def test_extractive_summary_is_bounded_and_deterministic(texts: list[str], before: str) -> None:
    messages = [
        user(text) if place % 2 else assistant(text) for place, text in enumerate(texts) if text
    ]
    summary = extend_summary(before, messages, max_tokens=60)
    assert summary == extend_summary(before, messages, max_tokens=60)
    assert estimate_tokens(summary) <= 60


def test_the_work_grows_with_what_was_said_and_no_faster() -> None:
    few, many = (
        lines_run(lambda n=n: extend_summary("", [one for k in range(n) for one in talk(k)]))  # type: ignore[misc]
        for n in (20, 80)
    )
    assert many < 5 * few


def test_sentences_end_where_people_end_them() -> None:
    text = "Hi! I met Dr. Ada, e.g. in St. Gallen.\n- one\n2) **two**\n# Head\nIt costs 3.5 CHF."
    assert split_sentences(text) == [
        "Hi!",
        "I met Dr. Ada, e.g. in St. Gallen.",
        "one",
        "two",
        "Head",
        "It costs 3.5 CHF.",
    ]
    assert split_sentences("私は学生です。東京に住んでいます。") == [
        "私は学生です。",
        "東京に住んでいます。",
    ]
    assert split_sentences("") == []


def test_of_a_long_text_its_beginning_and_end_are_looked_at() -> None:
    text = strip_non_prose("The beginning. " + "x" * 100_000 + " The end.")
    assert text.startswith("The beginning.")
    assert text.endswith("The end.")
    assert len(text) < 21_000
