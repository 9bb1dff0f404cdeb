"""Stop sequences found in text, however it is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Opaque, Thinking, ToolUse, Usage
from gateway.inference.v1.inference_pb2 import BlockStop, Event, Finish, Start
from services.common.errors import GatewayError
from services.inference.stream.stop_sequences import MAX_CHARACTERS, StopSequenceFilter

END = Finish(reason=conversation.FINISH_REASON_END_TURN)


def begin(choice: int = 0, block: int = 0, text: str = "") -> Event:
    return Event(choice=choice, block=block, block_start=Block(text=text))


def text(piece: str, choice: int = 0, block: int = 0) -> Event:
    return Event(choice=choice, block=block, text=piece)


def stop(choice: int = 0, block: int = 0) -> Event:
    return Event(choice=choice, block=block, block_stop=BlockStop())


def finish(choice: int = 0) -> Event:
    return Event(choice=choice, finish=END)


def stopped(sequence: str, choice: int = 0) -> Event:
    reason = conversation.FINISH_REASON_STOP_SEQUENCE
    return Event(choice=choice, finish=Finish(reason=reason, stop_sequence=sequence))


def feed(matcher: StopSequenceFilter, batch: list[Event]) -> tuple[list[Event], bool]:
    return list(matcher.feed(batch)), matcher.is_done


def run(matcher: StopSequenceFilter, *batches: list[Event]) -> tuple[list[Event], bool]:
    """Feed batches until the matcher says that it is done."""
    out: list[Event] = []
    for batch in batches:
        events, done = feed(matcher, batch)
        out += events
        if done:
            return out, True
    return out, False


def said(events: list[Event], choice: int = 0) -> str:
    return "".join(event.text for event in events if event.choice == choice)


def test_text_before_the_match_passes_and_the_choice_ends_there() -> None:
    events, done = run(StopSequenceFilter(["END"]), [begin(), text("one E")], [text("ND two")])
    assert done
    assert events == [begin(), text("one "), stop(), stopped("END")]


def test_only_what_may_begin_a_stop_string_is_held_back() -> None:
    matcher = StopSequenceFilter(["</end>", "END"])
    assert feed(matcher, [begin(), text("a<")]) == ([begin(), text("a")], False)
    assert feed(matcher, [text("/en")]) == ([], False)
    assert feed(matcher, [text("dE")]) == ([text("<"), text("/en"), text("d")], False)
    assert feed(matcher, [text("x")]) == ([text("E"), text("x")], False)


def test_deltas_that_hold_nothing_back_pass_as_the_same_objects() -> None:
    batch = [begin(), text("abc"), text("xEy"), stop(), finish()]
    events, done = feed(StopSequenceFilter(["END"]), batch)
    assert not done
    assert all(original is passed for original, passed in zip(batch, events, strict=True))


def test_held_text_goes_out_when_its_block_ends() -> None:
    events, done = run(StopSequenceFilter(["END"]), [begin(), text("EN"), stop(), finish()])
    assert (events, done) == ([begin(), text("EN"), stop(), finish()], False)


def test_a_stop_string_does_not_span_blocks() -> None:
    batch = [begin(), text("EN"), stop(), begin(block=1), text("D", block=1), stop(block=1)]
    events, done = run(StopSequenceFilter(["END"]), batch)
    assert (events, done) == (batch, False)


def test_the_match_that_ends_first_wins() -> None:
    events, _ = run(StopSequenceFilter(["abcdef", "cd"]), [begin(), text("xabcdef")])
    assert events == [begin(), text("xab"), stop(), stopped("cd")]


def test_of_matches_that_end_together_the_longest_wins() -> None:
    for sequences in (["ab", "b"], ["b", "ab"]):
        events, _ = run(StopSequenceFilter(sequences), [begin(), text("xab")])
        assert events == [begin(), text("x"), stop(), stopped("ab")]


def test_text_that_a_block_begins_with_is_searched_too() -> None:
    for batches in ([[begin(text="aE")], [text("ND")]], [[begin(text="aEND b")]]):
        events, done = run(StopSequenceFilter(["END"]), *batches)
        assert done
        assert events == [begin(), text("a"), stop(), stopped("END")]


def test_a_block_that_begins_with_text_keeps_what_else_it_holds() -> None:
    block = Block(text="a", cache_control=b"{}")
    events, _ = run(StopSequenceFilter(["END"]), [Event(block_start=block)])
    assert events == [Event(block_start=Block(text="", cache_control=b"{}")), text("a")]


def test_thinking_and_arguments_of_tools_are_left_alone() -> None:
    batch = [
        Event(block=0, block_start=Block(thinking=Thinking())),
        Event(block=0, thinking="END"),
        stop(block=0),
        Event(block=1, block_start=Block(tool_use=ToolUse(id="t", name="f"))),
        Event(block=1, input="END"),
        stop(block=1),
        finish(),
    ]
    assert run(StopSequenceFilter(["END"]), batch) == (batch, False)


def test_usage_passes_after_the_match_and_nothing_else_does() -> None:
    usage = Event(usage=Usage(output_tokens=9))
    matcher = StopSequenceFilter(["END"])
    batch = [Event(start=Start(id="a")), begin(), text("xEND"), text("y"), stop(), usage]
    events, done = feed(matcher, batch)
    assert done
    assert events == [batch[0], begin(), text("x"), stop(), stopped("END"), usage]
    assert feed(matcher, [text("z"), usage]) == ([usage], True)


def test_a_provider_that_has_finished_need_not_be_cancelled() -> None:
    usage = Event(usage=Usage(output_tokens=9))
    batch = [begin(), text("xEND y"), stop(), finish(), usage]
    events, done = run(StopSequenceFilter(["END"]), batch)
    assert not done
    assert events == [begin(), text("x"), stop(), stopped("END"), usage]


def test_the_stream_continues_until_every_choice_has_ended() -> None:
    matcher = StopSequenceFilter(["END"], choices=2)
    _, done = feed(matcher, [begin(0), begin(1), text("aEND", 0), text("b", 1)])
    assert not done
    events, done = feed(matcher, [text("more", 0), text("cEND", 1)])
    assert done
    assert events == [text("c", 1), stop(1), stopped("END", 1)]


def test_a_choice_that_ended_by_itself_is_not_waited_for() -> None:
    matcher = StopSequenceFilter(["END"], choices=2)
    _, done = feed(matcher, [begin(0), stop(0), finish(0), begin(1), text("a", 1)])
    assert not done
    assert feed(matcher, [text("END", 1)])[1]


def test_choices_are_searched_separately() -> None:
    matcher = StopSequenceFilter(["END"], choices=2)
    events, done = run(matcher, [begin(0), begin(1), text("E", 0), text("ND", 1), text("N", 0)])
    assert not done
    assert said(events, 1) == "ND"


def test_deltas_without_text_keep_their_place_among_held_ones() -> None:
    citation = Event(opaque=Opaque(json=b"{}"))
    matcher = StopSequenceFilter(["END"])
    assert feed(matcher, [begin(), text("aE"), citation]) == ([begin(), text("a")], False)
    assert feed(matcher, [text("x")]) == ([text("E"), citation, text("x")], False)


def test_log_probabilities_stay_with_the_first_part() -> None:
    event = Event(text="abE", logprobs=b"{}")
    events, _ = run(StopSequenceFilter(["END"]), [begin(), event], [text("ND")])
    assert events[1] == Event(text="ab", logprobs=b"{}")


def test_more_stop_text_than_fits_is_refused_by_name() -> None:
    StopSequenceFilter(["a" * MAX_CHARACTERS])
    with pytest.raises(GatewayError) as caught:
        StopSequenceFilter(["a" * MAX_CHARACTERS, "b"])
    assert (caught.value.param, caught.value.code) == ("stop_sequences", "unsupported")


def test_near_matches_of_a_long_stop_string_cost_no_more() -> None:
    # Searching again from the start of what is held would take minutes here.
    length = MAX_CHARACTERS - 1
    matcher = StopSequenceFilter(["a" * length + "b"])
    batch = [text("a")] * 100_000
    feed(matcher, [begin()])
    events, done = feed(matcher, batch)
    assert not done
    assert len(events) == len(batch) - length


def naive(whole: str, sequences: list[str]) -> tuple[str, str]:
    """Search the whole text at once: the text before the match, and the match or ""."""
    for end in range(len(whole) + 1):
        ending = [sequence for sequence in sequences if whole[:end].endswith(sequence)]
        if ending:
            longest = max(ending, key=len)
            return whole[: end - len(longest)], longest
    return whole, ""


letters = st.text("ab", max_size=24)


@given(
    st.lists(letters, max_size=8),
    st.lists(st.text("ab", min_size=1, max_size=5), min_size=1, max_size=4),
    st.booleans(),
)
def test_any_cut_gives_what_a_search_of_the_whole_text_gives(
    pieces: list[str], sequences: list[str], one_batch: bool
) -> None:
    events = [begin(), *(text(piece) for piece in pieces), stop(), finish()]
    batches = [events] if one_batch else [[event] for event in events]
    out, _ = run(StopSequenceFilter(sequences), *batches)
    before, match = naive("".join(pieces), sequences)
    assert said(out) == before
    assert out[-2:] == ([stop(), stopped(match)] if match else [stop(), finish()])


@given(st.lists(letters, max_size=8), st.text("ab", min_size=1, max_size=5))
def test_no_more_is_held_back_than_may_begin_a_stop_string(
    pieces: list[str], sequence: str
) -> None:
    matcher = StopSequenceFilter([sequence])
    given_text = shown = ""
    feed(matcher, [begin()])
    for piece in pieces:
        given_text += piece
        if sequence in given_text:
            return
        events, _ = feed(matcher, [text(piece)])
        shown += said(list(events))
        held = next(
            size
            for size in range(min(len(sequence) - 1, len(given_text)), -1, -1)
            if given_text.endswith(sequence[:size])
        )
        assert len(shown) == len(given_text) - held
