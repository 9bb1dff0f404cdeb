"""Joining: each rule by example, and all of them against a search that tries everything."""

from collections.abc import Sequence
from itertools import takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.conversation.v1.conversation_pb2 import Message
from services.memory.storage.messages import has_results, normalize
from services.memory.turns import transcript_merge
from services.memory.turns.transcript_merge import (
    MergePoint,
    StoredTranscript,
    find_merge_point,
    needs_keys,
)
from tests.services.memory.conversations import (
    ASSISTANT,
    USER,
    call,
    in_common,
    keys,
    model,
    result,
    text,
    user,
)
from tests.thoroughness import examples

NONE: frozenset[str] = frozenset()


def talk(*words: str) -> list[Message]:
    """Return messages that user and model say in turn."""
    return [
        model(words_of_one) if place % 2 else user(words_of_one)
        for place, words_of_one in enumerate(words)
    ]


def joined(
    stored: Sequence[Message], sent: Sequence[Message], awaited: frozenset[str] = NONE
) -> MergePoint:
    return find_merge_point(sent, StoredTranscript(len(stored), awaited, b"".join(keys(stored))))


def kept(stored: Sequence[Message], sent: Sequence[Message]) -> tuple[int, int]:
    merge = joined(stored, sent)
    return merge.keep, merge.known


def results(letters: str) -> list[Message]:
    """Return results of tools, which may repeat in any pattern and stay messages of their own."""
    return [user(result("1", letter)) for letter in letters]


STORED = talk("Hello", "Hi.", "How are you?", "Well.", "Good.", "Yes.")


def test_empty_memory_takes_everything_as_new() -> None:
    assert kept([], talk("a", "b", "c")) == (0, 0)


def test_results_that_the_open_turn_waits_for_go_behind_it() -> None:
    stored = [*talk("Hello", "Hi.", "Weather?"), model(call("c1"), call("c2"))]
    replies = [user(result("c1", "sunny")), user(result("c2", "rain"))]
    assert joined(stored, replies, frozenset({"c1", "c2"})) == MergePoint(4, 0)
    assert joined(stored, [*replies, user("And?")], frozenset({"c1", "c2"})) == MergePoint(4, 0)


def test_pending_results_are_appended_even_if_seen_before() -> None:
    asked = [user("Weather?"), model(call("c1")), user(result("c1", "sunny")), model("Sunny.")]
    stored = [*asked, user("Now?"), model(call("c2"))]
    assert joined(stored, [user(result("c2", "sunny"))], frozenset({"c2"})) == MergePoint(6, 0)


def test_results_that_were_stored_before_mean_a_new_answer() -> None:
    stored = [
        user("Weather?"),
        model(call("c1")),
        user(result("c1", "sunny")),
        model("It is sunny."),
    ]
    assert kept(stored, [user(result("c1", "sunny"))]) == (3, 1)


def test_user_messages_alone_are_new_even_if_said_before() -> None:
    assert kept(STORED, [user("Good.")]) == (6, 0)
    assert kept(STORED, [user("Hello")]) == (6, 0)
    assert kept(STORED, [user("Hello"), user("How are you?")]) == (6, 0)


def test_conversation_of_empty_answers_is_recognised() -> None:
    unanswered = [user("Hello"), user("Hello?")]
    assert kept(unanswered, [*unanswered, user("Still there?")]) == (2, 2)
    assert kept(unanswered, unanswered) == (2, 0)
    assert kept(unanswered, [user("Hello"), user("Other"), user("More")]) == (2, 0)


def test_a_full_transcript_continues_the_stored_one() -> None:
    assert kept(STORED, [*STORED, user("Bye")]) == (6, 6)
    assert kept(STORED[:2], [*STORED[:2], user("Bye")]) == (2, 2)
    assert kept(STORED[:1], [*STORED[:2], user("Bye")]) == (1, 1)


def test_an_edit_rewinds_to_where_the_transcripts_part() -> None:
    assert kept(STORED, [*STORED[:4], user("Bad."), model("Oh."), user("So?")]) == (4, 4)
    assert kept(STORED, [*STORED[:2], user("Other")]) == (2, 2)
    assert kept(STORED, [*STORED[:3], model("Changed."), user("Good.")]) == (3, 3)


def test_a_regenerated_answer_rewinds_to_the_question() -> None:
    assert joined(STORED, STORED[:5]) == MergePoint(5, 5)
    assert joined(STORED, STORED[:3]) == MergePoint(3, 3)


def test_one_message_in_common_is_not_enough_for_a_transcript() -> None:
    assert kept(STORED, [user("Hello"), model("Other."), user("So?")]) == (6, 0)


@pytest.mark.parametrize("head", [1, 2, 3, 4])
def test_trimmed_transcript_continues_at_the_stored_end(head: int) -> None:
    assert kept(STORED, [*STORED[head:], user("Bye")]) == (6, 6 - head)


def test_an_edit_in_a_transcript_without_its_head_rewinds() -> None:
    assert kept(STORED, [*STORED[2:4], user("Bad.")]) == (4, 2)


def test_latest_of_the_longest_prefix_matches_counts() -> None:
    stored = talk("x", "y", "go", "on", "go", "on", "why", "so", "go", "on", "stop", "no")
    assert kept(stored, talk("go", "on", "why", "so", "hm")) == (8, 4)
    assert kept(stored, talk("go", "on", "hm")) == (10, 2)
    assert kept(stored, talk("go", "on", "go", "on", "hm")) == (6, 4)


@pytest.mark.parametrize(
    ("old", "new", "end", "length"),
    [("ababac", "abac", 6, 4), ("aabaaabaaa", "aabaaa", 10, 6), ("aaab", "aab", 4, 3)],
)
def test_a_run_is_found_behind_a_shorter_one_that_it_overlaps(
    old: str, new: str, end: int, length: int
) -> None:
    stored = [user("begin"), model("it"), *results(old)]
    assert kept(stored, [*results(new), model("so")]) == (2 + end, length)


def test_a_run_of_user_messages_alone_says_nothing() -> None:
    stored = [user("a"), model("b"), user("c"), user("d"), model("e")]
    assert kept(stored, [user("c"), user("d"), model("other"), user("f")]) == (5, 0)


def test_a_run_with_a_result_of_a_tool_counts() -> None:
    stored = [user("a"), model(call("1")), user(result("1", "r")), model("b")]
    assert kept(stored, [user(result("1", "r")), model("c"), user("d")]) == (3, 1)


def test_what_has_nothing_in_common_is_appended() -> None:
    assert kept(STORED, talk("x", "y", "z")) == (6, 0)


def test_calls_are_known_again_under_other_ids() -> None:
    stored = [user("Weather?"), model(call("c1")), user(result("c1", "sunny"))]
    sent = [user("Weather?"), model(call("x9")), user(result("x9", "sunny"))]
    assert kept(stored, sent) == (3, 3)


def test_a_prefill_is_continued_in_every_position() -> None:
    assert joined(STORED, [*STORED, user("Go"), model("Sure, ")]) == MergePoint(6, 6)
    assert joined(STORED, [user("Go"), model("Sure, ")]) == MergePoint(6, 0)
    assert joined(STORED, [*STORED[:4], user("Good."), model("Sure, ")]) == MergePoint(5, 5)


def test_a_stored_answer_can_go_on() -> None:
    assert joined(STORED, STORED) == MergePoint(6, 6)
    assert joined(STORED, STORED[2:]) == MergePoint(6, 4)
    assert joined(STORED, STORED[:4]) == MergePoint(4, 4)


def test_whoever_sends_the_newest_messages_alone_needs_no_keys() -> None:
    waiting = frozenset({"c1"})
    assert not needs_keys([user("Go")], 200_000, NONE)
    assert not needs_keys([user("Go"), user("on")], 200_000, NONE)
    assert not needs_keys([user(result("c1", "sunny"))], 200_000, waiting)
    assert not needs_keys([user(result("c1", "sunny")), user("So?")], 200_000, waiting)
    assert not needs_keys(STORED, 0, NONE)
    assert find_merge_point([user("Go")], StoredTranscript(200_000)) == MergePoint(200_000, 0)


def test_a_transcript_needs_keys() -> None:
    waiting = frozenset({"c1"})
    assert needs_keys(STORED, 6, NONE)
    assert needs_keys([user(result("c2", "sunny"))], 200_000, waiting)
    assert needs_keys([user(result("c1", "sunny"))], 200_000, NONE)
    assert needs_keys([user("Go"), user("on")], 1, NONE)


def by_trying_everything(
    stored: Sequence[Message], sent: Sequence[Message], awaited: frozenset[str]
) -> tuple[int, int]:
    """Return what stays and what is known, by the rules as they are told and nothing clever."""
    nothing = (len(stored), 0)
    replies = takewhile(has_results, sent)
    if not stored or any(reply.blocks[0].tool_result.tool_use_id in awaited for reply in replies):
        return nothing
    old, new = keys(stored), keys(sent)
    telling = [m.role == ASSISTANT or has_results(m) for m in sent]
    same = in_common(old, new)
    if not any(telling):
        return (same, same) if same == len(old) < len(new) else nothing
    if same >= 2 or same == len(old):
        return same, same
    runs = [(in_common(old[place:], new), place) for place in range(len(old))]
    longest, place = max(runs)
    return (place + longest, longest) if any(telling[:longest]) else nothing


SAYINGS = st.sampled_from(
    [user("a"), user("b"), model("a"), model("b"), user(result("1", "x")), user(result("2", "y"))]
)


@settings(max_examples=examples(80))
@given(
    st.lists(SAYINGS, max_size=14),
    st.lists(SAYINGS, min_size=1, max_size=8),
    st.sampled_from([NONE, frozenset({"1"})]),
)
def test_joining_finds_what_trying_everything_finds(
    stored: list[Message], sent: list[Message], awaited: frozenset[str]
) -> None:
    old, new = normalize(stored), normalize(sent)
    merge = joined(old, new, awaited)
    assert (merge.keep, merge.known) == by_trying_everything(old, new, awaited)


@settings(max_examples=examples(60))
@given(st.text("aab", min_size=6, max_size=40), st.text("ab", max_size=4), st.data())
def test_runs_in_monotonous_conversations_are_found(
    old: str, more: str, data: st.DataObject
) -> None:
    head = data.draw(st.integers(0, len(old) - 1))
    tail = data.draw(st.integers(head + 1, len(old)))
    stored = [user("begin"), model("it"), *results(old)]
    sent = [*results(old[head:tail] + more), model("so")]
    merge = joined(stored, sent)
    assert (merge.keep, merge.known) == by_trying_everything(stored, sent, NONE)


def test_a_long_monotonous_conversation_costs_no_more_than_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Count what is compared: a search that went back would compare 10^8 keys here."""
    compared = 0

    class Counting(int):
        __hash__ = int.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return int.__eq__(self, other)

        def __ne__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return int.__ne__(self, other)

    numbers = transcript_merge._to_integers
    monkeypatch.setattr(
        transcript_merge, "_to_integers", lambda read: [Counting(key) for key in numbers(read)]
    )
    stored = [user("begin"), model("no"), *talk(*["same"] * 10_000)]
    sent = [*talk(*["same"] * 1_000), user("end")]
    assert kept(stored, sent) == (10_002, 1_000)
    assert compared < 5 * (len(stored) + len(sent))


def test_roles_and_texts_are_distinguished() -> None:
    assert keys([user("a")]) != keys([model("a")])
    assert keys([Message(role=USER, blocks=[text("a"), text("b")])]) == keys([user("ab")])
