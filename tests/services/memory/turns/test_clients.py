"""A conversation is stored alike, whichever part of it a client sends."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import event, given, reject, settings

from gateway.conversation.v1.conversation_pb2 import Message
from services.memory.storage import stored_turns
from services.memory.storage.messages import has_results, is_user_turn_start, normalize
from tests.services.memory.conversations import (
    ASSISTANT,
    HABITS,
    Exchange,
    Habits,
    Memory,
    Step,
    check_memory,
    check_valid,
    in_common,
    keys,
    model,
    scripts,
    sent,
    transcript,
    user,
)

EXAMPLES = settings(max_examples=50)


def full(before: Sequence[Exchange], step: Step, habits: Habits) -> list[Message]:
    if not step.exchange.sent:
        # Whoever lets an answer go on sends it as it came.
        habits = replace(habits, white_space=False, decomposed=False, arguments_read=False)
    return transcript(before, habits) + sent(step.exchange, habits)


def newest(before: Sequence[Exchange], step: Step, habits: Habits) -> list[Message]:
    """Return the new messages; where there are none the answer that is to go on."""
    return sent(step.exchange, habits) or normalize(full(before, step, habits))[-1:]


def looks_whole(messages: Sequence[Message], memory: Memory) -> bool:
    """Return whether newest messages repeat the beginning, so that they cannot be told from all."""
    stored = memory.messages
    same = in_common(keys(stored), keys(messages))
    if any(message.role == ASSISTANT or has_results(message) for message in messages):
        return bool(stored) and (same >= 2 or same == len(stored))
    return bool(stored) and same == len(stored) < len(messages)


def can_be_placed(part: list[Message], whole: list[Message], memory: Memory) -> bool:
    """Return whether a transcript without its head can be told to be the end of the whole one."""
    stored, sent_keys, all_keys = keys(memory.messages), keys(part), keys(whole)
    head = len(whole) - len(part)
    if all_keys[head:] != sent_keys:
        return False  # the cut went through what is one message
    in_both = in_common(stored, all_keys) - head
    if in_both < 1 or not any(m.role == ASSISTANT or has_results(m) for m in part[:in_both]):
        return False
    begun = in_common(stored, sent_keys)
    if begun >= 2 or begun == len(stored):
        return False  # it looks whole
    if has_results(part[0]) and memory.turns[-1].open:
        return False  # it may look like the newest results
    runs = [(in_common(stored[place:], sent_keys), place) for place in range(len(stored))]
    return max(runs)[1] == head


def trimmed(
    before: Sequence[Exchange], step: Step, habits: Habits, memory: Memory
) -> list[Message]:
    """Leave out as much of a transcript as the step says, of the cuts that can be understood."""
    whole = full(before, step, habits)
    starts = [place for place, message in enumerate(whole) if is_user_turn_start(message)]
    latest = starts[-2] if len(starts) > 1 else 0
    cuts = [
        cut
        for cut in range(1, latest + 1)
        if can_be_placed(normalize(whole[cut:]), normalize(whole), memory)
    ]
    if not cuts:
        return whole
    event("trimmed")
    return whole[cuts[step.trim % len(cuts)] :]


def play(steps: Sequence[Step], habits: Habits, *, trims: bool = False) -> Memory:
    """Let a client that sends transcripts have the conversation, edits and all."""
    memory = Memory()
    history: list[Exchange] = []
    for step in steps:
        before = history[: step.keep]
        messages = full(before, step, habits)
        if trims:
            messages = trimmed(before, step, habits, memory)
        begun = memory.begin(messages)
        goes_on = messages[-1].role == ASSISTANT
        check_valid(memory.shown(begun), answer_goes_on=goes_on)
        memory.commit(begun, step.exchange.answer)
        check_memory(memory)
        history = [*before, step.exchange]
    return memory


def play_newest(steps: Sequence[Step], habits: Habits) -> Memory:
    """Let a client that sends new messages alone have what the conversation came to."""
    lasting: list[Step] = []
    for step in steps:
        lasting = [*lasting[: step.keep], step]
    memory = Memory()
    for place, step in enumerate(lasting):
        messages = newest([past.exchange for past in lasting[:place]], step, habits)
        if looks_whole(normalize(messages), memory):
            reject()
        memory.take(messages, step.exchange.answer)
        check_memory(memory)
    return memory


def check_all_clients(steps: Sequence[Step], one: Habits, another: Habits, third: Habits) -> None:
    memory = play_newest(steps, one)
    assert play(steps, another).content() == memory.content()
    assert play(steps, third, trims=True).content() == memory.content()


@EXAMPLES
@given(scripts(edits=False), HABITS, HABITS, HABITS)
def test_full_trimmed_and_newest_only_clients_store_the_same(
    steps: list[Step], one: Habits, another: Habits, third: Habits
) -> None:
    check_all_clients(steps, one, another, third)


@EXAMPLES
@given(scripts(edits=True), HABITS, HABITS, HABITS)
def test_edits_leave_no_trace_of_replaced_messages(
    steps: list[Step], one: Habits, another: Habits, third: Habits
) -> None:
    check_all_clients(steps, one, another, third)


@pytest.mark.soak
@settings(max_examples=5000)
@given(scripts(edits=True), HABITS, HABITS, HABITS)
def test_many_random_conversations_are_stored_the_same(
    steps: list[Step], one: Habits, another: Habits, third: Habits
) -> None:
    check_all_clients(steps, one, another, third)


@EXAMPLES
@given(scripts(edits=False), HABITS, HABITS)
def test_clients_of_different_kinds_can_share_a_memory(
    steps: list[Step], one: Habits, another: Habits
) -> None:
    memory = Memory()
    history: list[Exchange] = []
    for step in steps:
        if step.trim % 2 and history:
            messages = full(history, step, another)
        else:
            messages = newest(history, step, one)
            if looks_whole(normalize(messages), memory):
                reject()
        memory.take(messages, step.exchange.answer)
        history.append(step.exchange)
    assert memory.content() == play(steps, one).content()


@EXAMPLES
@given(scripts(edits=False), HABITS)
def test_imported_conversation_has_the_same_turns(steps: list[Step], habits: Habits) -> None:
    memory = play(steps, habits)
    history = [step.exchange for step in steps]
    imported = stored_turns.extend_turns(None, 0, normalize(transcript(history, habits)), now_ms=1)
    assert [keys(turn.messages) for turn in imported] == [
        keys(turn.messages) for turn in memory.turns
    ]
    assert [turn.first_message for turn in imported] == [t.first_message for t in memory.turns]


def test_a_repeated_word_is_a_new_turn_from_every_client() -> None:
    step = Step(0, Exchange((user("continue"),), model("yes")), 0)
    steps = [Step(place, step.exchange, 1) for place in range(8)]
    memory = play_newest(steps, Habits())
    assert len(memory.turns) == 8
    assert play(steps, Habits(thoughts=True)).content() == memory.content()
