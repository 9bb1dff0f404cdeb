"""The interface of stream filters, and their state for each choice."""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from gateway.inference.v1.inference_pb2 import Event

Batch = Sequence[Event]
T = TypeVar("T")


class StreamFilter(Protocol):
    """Changes the events of one answer on their way to the caller.

    Batches come in order. They are not changed; one of which everything passes may be returned
    itself.

    Attributes:
        is_done: whether the provider need not write any more.
    """

    is_done: bool

    def feed(self, batch: Batch) -> Batch:
        """Return the events that pass, possibly none.

        Raises:
            UpstreamError: the provider's answer cannot go on.
        """


class ChoiceStates(Generic[T]):
    """A state for each choice of an answer, made when its first event comes."""

    def __init__(self, make: Callable[[], T]) -> None:
        """Return no states yet; `make` returns that of a new choice."""
        self._make = make
        self._states: dict[int, T] = {}

    def of(self, kind: str | None, event: Event) -> T | None:
        """Return the state of an event's choice; None where it is of the answer as a whole."""
        if kind == "usage" or kind == "start":
            return None
        state = self._states.get(event.choice)
        if state is None:
            state = self._states[event.choice] = self._make()
        return state
