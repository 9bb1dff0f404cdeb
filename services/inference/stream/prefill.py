"""Prefill: an assistant message at the end of a request, which the answer continues.

A model that cannot continue a message is asked to do so by a user message, and may repeat the
prefill. The caller already has the prefill, so the repetition is removed from the answer.
"""

from functools import partial

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block
from gateway.inference.v1.inference_pb2 import Event, GenerateRequest
from services.inference.stream.filters import Batch, ChoiceStates

# Maximum events held back per choice; a prefill repeated in more events is not removed.
_MAX_HELD = 10_000
# Sent after the prefill to a model that cannot continue a message.
CONTINUE = (
    "Continue your last message from exactly where it breaks off. "
    "Write only what comes next: repeat nothing of it, and say nothing about this."
)


def prefill_of(request: GenerateRequest) -> str | None:
    """Return the prefill of a request, or None.

    It is the text of all assistant messages at the end (consecutive ones count as one
    message). If they call a tool there is no prefill: the model waits for results.
    """
    pieces: list[str] = []
    for message in reversed(request.messages):
        if message.role != conversation_pb2.ROLE_ASSISTANT:
            break
        for block in reversed(message.blocks):
            kind = block.WhichOneof("kind")
            if kind == "tool_use":
                return None
            if kind == "text":
                pieces.append(block.text)
    return "".join(reversed(pieces)) or None


class EchoFilter:
    """Removes a repeated prefill from the first text block of each choice.

    Leading white space of the prefill and of its repetition is ignored. Text is held
    back while it is a prefix of the prefill. Once the whole prefill has arrived it is
    dropped; if the text differs or its block ends before, the held events are released
    unchanged. An answer that begins with the text of a short prefill by chance cannot
    be distinguished from a repetition, and loses it.

    Args:
        prefill: the caller's text.
        choices: the number of choices, the request's `n`.
    """

    is_done = False

    def __init__(self, prefill: str, choices: int = 1) -> None:
        self._prefill = prefill.lstrip()
        self._choices = ChoiceStates(partial(_EchoState, self._prefill))
        self._undecided = choices if self._prefill else 0

    def feed(self, batch: Batch) -> Batch:
        """Return the resulting events; the batch itself once all choices are decided."""
        if self._undecided <= 0:
            return batch
        out: list[Event] = []
        for event in batch:
            kind = event.WhichOneof("kind")
            choice = self._choices.of(kind, event)
            if choice is None or choice.decided:
                out.append(event)
            else:
                choice.feed(kind, event, out)
                self._undecided -= choice.decided
        return out


class _EchoState:
    """The matched length of the prefill in one choice, and the events held back."""

    __slots__ = ("_held", "_inside", "_matched", "_prefill", "decided")

    def __init__(self, prefill: str) -> None:
        self._prefill = prefill
        self._matched = 0
        self._held: list[Event] = []
        self._inside = False
        self.decided = False

    def feed(self, kind: str | None, event: Event, out: list[Event]) -> None:
        """Process the next event of an undecided choice."""
        if kind == "text":
            self._text(event, out)
        elif kind == "block_start":
            self._open(event, out)
        elif kind == "finish" or (kind == "block_stop" and self._inside):
            self._release(event, out)
        elif len(self._held) >= _MAX_HELD:
            self._release(event, out)
        elif self._held:
            self._held.append(event)
        else:
            out.append(event)

    def _open(self, event: Event, out: list[Event]) -> None:
        self._inside = event.block_start.WhichOneof("kind") == "text"
        text = event.block_start.text
        if not text:
            out.append(event)
            return
        block = Block()
        block.CopyFrom(event.block_start)
        block.text = ""
        out.append(Event(choice=event.choice, block=event.block, block_start=block))
        self._text(Event(choice=event.choice, block=event.block, text=text), out)

    def _text(self, event: Event, out: list[Event]) -> None:
        text = event.text if self._matched else event.text.lstrip()
        missing = len(self._prefill) - self._matched
        if len(text) < missing:
            if len(self._held) < _MAX_HELD and self._prefill.startswith(text, self._matched):
                self._matched += len(text)
                self._held.append(event)
            else:
                self._release(event, out)
        elif text.startswith(self._prefill[self._matched :]):
            self._drop(event, text[missing:], out)
        else:
            self._release(event, out)

    def _release(self, event: Event, out: list[Event]) -> None:
        out += self._held
        out.append(event)
        self.decided = True

    def _drop(self, event: Event, remaining_text: str, out: list[Event]) -> None:
        out += [held for held in self._held if held.WhichOneof("kind") != "text"]
        if remaining_text:
            out.append(
                Event(
                    choice=event.choice,
                    block=event.block,
                    text=remaining_text,
                    logprobs=event.logprobs,
                )
            )
        self.decided = True
