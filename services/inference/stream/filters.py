"""The interface of stream filters, and their state per choice."""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from gateway.inference.v1.inference_pb2 import Event

Batch = Sequence[Event]
T = TypeVar("T")


class StreamFilter(Protocol):
    """Transforms the events of one answer on their way to the caller.

    Batches are fed in order. A batch is never modified; a filter that changes nothing in it may
    return it as it is.

    Attributes:
        is_done: whether the rest of the provider's answer is not needed.
    """

    is_done: bool

    def feed(self, batch: Batch) -> Batch:
        """Return the resulting events of a batch, possibly none.

        Raises:
            UpstreamError: the provider's answer cannot be continued.
        """


class ChoiceStates(Generic[T]):
    """A state for each choice of an answer, created at its first event."""

    def __init__(self, make: Callable[[], T]) -> None:
        """Initialize without states; `make` returns the state of a new choice."""
        self._make = make
        self._states: dict[int, T] = {}

    def of(self, kind: str | None, event: Event) -> T | None:
        """Return the state of an event's choice; None for events of the answer as a whole."""
        if kind == "usage" or kind == "start":
            return None
        state = self._states.get(event.choice)
        if state is None:
            state = self._states[event.choice] = self._make()
        return state
