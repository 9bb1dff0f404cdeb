"""Signing of thinking for providers that do not; see `services.inference.request.thinking`."""

from collections.abc import Sequence

from gateway.conversation.v1.conversation_pb2 import Block, Thinking
from gateway.inference.v1.inference_pb2 import Event
from services.inference.request.thinking import KINDS, Signer
from services.inference.stream.filters import Batch
from services.inference.stream.pieces import keep


class _Thought:
    """An open thinking block: its text and the provider's signature so far."""

    __slots__ = ("signature", "text")

    def __init__(self, thinking: Thinking) -> None:
        self.text = [thinking.text]
        self.signature = thinking.signature


class ThinkingSigner:
    """Signs the thinking of an answer whose own signatures its caller cannot be sent.

    They are not verifiable, or the caller's dialect has no place for them. A signature or redacted
    thinking of the provider is state that it needs back: the gateway's signature contains it.
    """

    is_done = False

    def __init__(self, signer: Signer, model: str, prefix: str = "") -> None:
        """Initialize a filter of an answer.

        Args:
            signer: makes the signatures.
            model: the model that thinks.
            prefix: what the provider's state begins with, so that `thinking` knows its kind.
        """
        self._prefix = prefix
        self._signer = signer
        self._model = model
        # The open thinking blocks by choice.
        self._open: dict[int, _Thought] = {}

    def feed(self, batch: Batch) -> Batch:
        """Return the events with a `signature` before the end of each thinking block."""
        if not self._open:
            # Fast path for nearly all batches.
            for event in batch:
                if event.HasField("block_start") and event.block_start.WhichOneof("kind") in KINDS:
                    break
            else:
                return batch
        changed: list[Event] | None = None
        for position, event in enumerate(batch):
            others = self._follow(event)
            if others is not None and changed is None:
                changed = list(batch[:position])
            if changed is not None:
                changed += (event,) if others is None else others
        return batch if changed is None else changed

    def _follow(self, event: Event) -> Sequence[Event] | None:
        """Process an event; return the events that replace it, or None to keep it."""
        kind = event.WhichOneof("kind")
        if kind == "block_start":
            return self._begin(event)
        thought = self._open.get(event.choice)
        if thought is None:
            return None
        if kind == "thinking":
            keep(thought.text, event.thinking)
        elif kind == "signature":
            thought.signature += event.signature
            return ()
        elif kind == "block_stop":
            del self._open[event.choice]
            carried = self._prefix + thought.signature if thought.signature else ""
            signature = self._signer.sign("".join(thought.text), self._model, carried)
            return Event(choice=event.choice, block=event.block, signature=signature), event
        return None

    def _begin(self, event: Event) -> Sequence[Event] | None:
        if event.block_start.WhichOneof("kind") not in KINDS:
            return None
        block = Block()
        block.CopyFrom(event.block_start)
        if block.HasField("redacted_thinking"):
            carried = self._prefix + block.redacted_thinking
            block.redacted_thinking = self._signer.sign("", self._model, carried)
        else:
            self._open[event.choice] = _Thought(block.thinking)
            if not block.thinking.signature:
                return None
            block.thinking.signature = ""
        return (Event(choice=event.choice, block=event.block, block_start=block),)
