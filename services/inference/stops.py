"""Stop sequences found by the gateway, where the provider does not tell which one matched.

Generation would have ended at the moment any stop sequence was complete. So the
match that ends first wins, and of several that end at the same character the
longest, which takes all of itself out of the text. A sequence may span deltas,
never blocks; only text blocks are looked at.

The search is an Aho-Corasick automaton: one step a character, whatever the
sequences are and however the text is cut (Aho, Corasick: Efficient string matching,
CACM 18/6, 1975). Text is held back only as far as it may begin a sequence.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block
from gateway.inference.v1.inference_pb2 import BlockStop, Event, Finish
from services.common.errors import unsupported

# The automaton has a state for each character, and is built on the event loop.
MAX_CHARACTERS = 16_384
# Events of a choice that are held back: each has a character at least, but for those that a
# provider sends for no reason. Those let the beginning of a string go.
_MAX_HELD = 2 * MAX_CHARACTERS


class StopMatcher:
    """Ends each choice of an answer where one of the caller's strings comes up.

    Args:
        stop_sequences: the strings, none empty.
        choices: how many answers come, the request's `n`.

    Raises:
        GatewayError: unsupported, when the strings are longer than `MAX_CHARACTERS` in all.
    """

    def __init__(self, stop_sequences: Sequence[str], choices: int = 1) -> None:
        if sum(map(len, stop_sequences)) > MAX_CHARACTERS:
            raise unsupported(
                "stop_sequences",
                "stop_sequences: this model's provider does not tell which one ended an answer,"
                f" so they may hold at most {MAX_CHARACTERS:,} characters in all",
            )
        self._automaton = _Automaton(stop_sequences)
        self._choices: dict[int, _Choice] = {}
        self._running = choices
        # Choices that ended here and are still being written at the provider.
        self._cut = 0

    def feed(self, events: Iterable[Event]) -> tuple[Sequence[Event], bool]:
        """Return the events that may pass, and whether the provider need not go on.

        The events may be none. What was ended here gets its `block_stop` and `finish`
        and nothing more; usage passes even then, and counts what was cut off.
        """
        out: list[Event] = []
        for event in events:
            kind = event.WhichOneof("kind")
            if kind == "usage" or kind == "start":
                out.append(event)
                continue
            choice = self._choices.get(event.choice)
            if choice is None:
                choice = self._choices[event.choice] = _Choice(self._automaton)
            if choice.ended:
                self._cut -= kind == "finish"
            elif kind == "text":
                if choice.text(event, out):
                    self._running -= 1
                    self._cut += 1
            elif kind == "block_start" and event.block_start.WhichOneof("kind") == "text":
                if choice.open(event, out):
                    self._running -= 1
                    self._cut += 1
            else:
                choice.other(kind, event, out)
                self._running -= kind == "finish"
        return out, self._cut > 0 and self._running <= 0


class _Choice:
    """Where the search stands in one choice, and the events held back for it."""

    __slots__ = ("_automaton", "_held", "_length", "_state", "ended")

    def __init__(self, automaton: "_Automaton") -> None:
        self._automaton = automaton
        self._state = 0
        # Held events with the number of characters each one brings, and their sum.
        self._held: deque[tuple[Event, int]] = deque()
        self._length = 0
        self.ended = False

    def open(self, event: Event, out: list[Event]) -> bool:
        """Begin a text block; return whether the choice ends in what it holds already."""
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
        """Take text; return whether the choice ends in it."""
        text = event.text
        automaton = self._automaton
        state = self._state
        # Nothing is held in the automaton's first state, and only in that one.
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
        """Take an event that brings no text, and keep it in its place."""
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
            # The log probabilities of a delta go with its first part that goes out.
            head.logprobs = event.logprobs
            out.append(head)
            held.appendleft((_text_event(event, event.text[count:]), length - count))


def _text_event(like: Event, text: str) -> Event:
    return Event(choice=like.choice, block=like.block, text=text)


class _Automaton:
    """Finds the first end of any of some strings, a character at a time.

    Attributes:
        depths: of each state, how many characters at the end may begin a string.
        beginnings: the first characters of the strings.
    """

    __slots__ = ("_fallbacks", "_matches", "_steps", "beginnings", "depths")

    def __init__(self, strings: Sequence[str]) -> None:
        self.beginnings = frozenset(string[0] for string in strings)
        self._steps: list[dict[str, int]] = [{}]
        self._matches = [""]
        self.depths = [0]
        for string in strings:
            self._add(string)
        self._fallbacks = [0] * len(self._steps)
        self._link()

    def _add(self, string: str) -> None:
        state = 0
        for depth, character in enumerate(string, 1):
            step = self._steps[state].get(character)
            if step is None:
                step = self._steps[state][character] = len(self._steps)
                self._steps.append({})
                self._matches.append("")
                self.depths.append(depth)
            state = step
        self._matches[state] = string

    def _link(self) -> None:
        steps, fallbacks, matches = self._steps, self._fallbacks, self._matches
        waiting = deque(steps[0].values())
        while waiting:
            state = waiting.popleft()
            for character, step in steps[state].items():
                fallback = fallbacks[state]
                while fallback and character not in steps[fallback]:
                    fallback = fallbacks[fallback]
                fallbacks[step] = steps[fallback].get(character, 0)
                waiting.append(step)
            # The state's own string is longer than any that ends inside of it.
            matches[state] = matches[state] or matches[fallbacks[state]]

    def search(self, state: int, text: str) -> tuple[int, int, str]:
        """Return the state after `text`, and the end and the string of the first match.

        Without a match the string is "", and the end means nothing.
        """
        steps, fallbacks, matches = self._steps, self._fallbacks, self._matches
        for position, character in enumerate(text, 1):
            step = steps[state].get(character)
            while step is None and state:
                state = fallbacks[state]
                step = steps[state].get(character)
            state = step or 0
            if matches[state]:
                return state, position, matches[state]
        return state, len(text), ""
