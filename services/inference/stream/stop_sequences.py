"""Stop sequences found by the gateway, for providers that do not report which one matched.

Generation ends as soon as any stop sequence is complete. The match that ends first
therefore wins; of several that end at the same character the longest, all of which is
removed from the text. A sequence may span deltas but not blocks, and only text blocks
are searched. Text is held back only as far as it may be the beginning of a sequence.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Usage
from gateway.inference.v1.inference_pb2 import BlockStop, Event, Finish
from services.common.errors import unsupported
from services.common.text.tokens import estimate_tokens
from services.inference.stream.filters import Batch, ChoiceStates
from services.inference.stream.pieces import keep
from services.inference.stream.stop_automaton import StopAutomaton

# The automaton has a state for each character, and is built on the event loop.
MAX_CHARACTERS = 16_384
# Maximum events held back per choice. Each has at least one character, except for events that a
# provider sends for no reason; with too many of those, a partial match is released.
_MAX_HELD = 2 * MAX_CHARACTERS


class StopSequenceFilter:
    """Ends each choice of an answer at the first of the caller's stop sequences.

    A choice that ends here gets a `block_stop` and a `finish`, and no further events. A provider
    whose answer is cancelled never reports its usage, so input and output tokens are estimated.

    Args:
        stop_sequences: the strings, none empty.
        choices: the number of choices, the request's `n`.
        input_tokens: estimates the input tokens of the request; None to estimate no usage.

    Attributes:
        is_done: whether all choices have ended, so that the rest of the answer is not needed.

    Raises:
        GatewayError: unsupported, if the strings have more than `MAX_CHARACTERS` in all.
    """

    def __init__(
        self,
        stop_sequences: Sequence[str],
        choices: int = 1,
        input_tokens: Callable[[], int] | None = None,
    ) -> None:
        if sum(map(len, stop_sequences)) > MAX_CHARACTERS:
            raise unsupported(
                "stop_sequences",
                f"stop_sequences: must have at most {MAX_CHARACTERS:,} characters in total, "
                "because this model's provider does not report which one ended an answer",
            )
        self.is_done = False
        self._choices = ChoiceStates(partial(_SearchState, StopAutomaton(stop_sequences)))
        self._running = choices
        # Choices that ended here and that the provider has not finished.
        self._cut = 0
        self._input_tokens = input_tokens
        self._written: list[str] = []
        self._has_usage = False

    def feed(self, batch: Batch) -> Batch:
        """Return the resulting events, possibly none; see `StreamFilter.feed`."""
        passed: list[Event] = []
        for event in batch:
            self._take(event, passed)
        self.is_done = self._cut > 0 and self._running <= 0
        for event in passed:
            keep(self._written, event.text or event.thinking)
            self._has_usage = self._has_usage or event.HasField("usage")
        if self.is_done and not self._has_usage and self._input_tokens is not None:
            usage = Usage(
                input_tokens=self._input_tokens(),
                output_tokens=estimate_tokens("".join(self._written)),
            )
            passed.append(Event(usage=usage))
        return passed

    def _take(self, event: Event, out: list[Event]) -> None:
        kind = event.WhichOneof("kind")
        choice = self._choices.of(kind, event)
        if choice is None:
            out.append(event)
        elif choice.ended:
            self._cut -= kind == "finish"
        elif kind == "text":
            self._count(choice.text(event, out))
        elif kind == "block_start" and event.block_start.WhichOneof("kind") == "text":
            self._count(choice.open(event, out))
        else:
            choice.other(kind, event, out)
            self._running -= kind == "finish"

    def _count(self, has_ended: bool) -> None:
        self._running -= has_ended
        self._cut += has_ended


class _SearchState:
    """The state of the search in one choice, and the events held back."""

    __slots__ = ("_automaton", "_held", "_length", "_state", "ended")

    def __init__(self, automaton: StopAutomaton) -> None:
        self._automaton = automaton
        self._state = 0
        # Held events with their numbers of characters, and the sum.
        self._held: deque[tuple[Event, int]] = deque()
        self._length = 0
        self.ended = False

    def open(self, event: Event, out: list[Event]) -> bool:
        """Begin a text block; return whether the choice ends in its initial text."""
        text = event.block_start.text
        if not text:
            out.append(event)
            return False
        block = Block()
        block.CopyFrom(event.block_start)
        block.text = ""
        out.append(Event(choice=event.choice, block=event.block, block_start=block))
        return self.text(_text_event(event, text), out)

    def text(self, event: Event, out: list[Event]) -> bool:
        """Process a text event; return whether the choice ends in it."""
        text = event.text
        automaton = self._automaton
        state = self._state
        # The initial state is the only one in which no text is held.
        if state == 0 and automaton.beginnings.isdisjoint(text):
            out.append(event)
            return False
        state, end, stop = automaton.search(state, text)
        self._state = state
        if state == 0 and not self._held:
            out.append(event)
            return False
        self._held.append((event, len(text)))
        if not stop:
            self._length += len(text)
            if len(self._held) > _MAX_HELD:
                self._state = 0
            self._release(self._length - automaton.depths[self._state], out)
            return False
        self._release(self._length + end - len(stop), out)
        self.ended = True
        reason = conversation_pb2.FINISH_REASON_STOP_SEQUENCE
        out.append(Event(choice=event.choice, block=event.block, block_stop=BlockStop()))
        out.append(Event(choice=event.choice, finish=Finish(reason=reason, stop_sequence=stop)))
        return True

    def other(self, kind: str | None, event: Event, out: list[Event]) -> None:
        """Process an event without text, in order with the held events."""
        if self._held:
            if kind != "block_stop" and len(self._held) <= _MAX_HELD:
                self._held.append((event, 0))
                return
            self._release(self._length, out)
            self._state = 0
        out.append(event)

    def _release(self, count: int, out: list[Event]) -> None:
        """Release the first `count` held characters."""
        held = self._held
        self._length -= count
        while held and held[0][1] <= count:
            event, length = held.popleft()
            out.append(event)
            count -= length
        if count:
            event, length = held.popleft()
            head = _text_event(event, event.text[:count])
            # The log probabilities of a split delta go with its first part.
            head.logprobs = event.logprobs
            out.append(head)
            held.appendleft((_text_event(event, event.text[count:]), length - count))


def _text_event(like: Event, text: str) -> Event:
    return Event(choice=like.choice, block=like.block, text=text)
