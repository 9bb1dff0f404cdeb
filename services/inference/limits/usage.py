"""What a request has used, from the figures of its usage record and what its answer said.

The record has what providers reported. A provider that reported nothing, because the answer broke
off or because it never does, has billed all the same: then the tokens are estimated here, while the
record has none, and a cost that is not known.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto

from gateway.inference.v1.inference_pb2 import (
    CACHE_STATUS_HIT,
    Event,
    GenerateResponse,
    RouteInfo,
    Start,
)
from services.common.tokens import estimate_tokens
from services.inference.usage.lines import UsedModel
from services.inference.usage.spent import Spent

# Returns the price of what a model used in 10^-12 US dollars, or None when no price is known.
Price = Callable[[UsedModel], int | None]


class End(Enum):
    """How an answer ended."""

    COMPLETE = auto()
    FAILED = auto()
    LEFT = auto()  # its caller has left


def tokens_of(used: UsedModel) -> int:
    """Return the tokens that a model read and wrote."""
    return (used.read or 0) + used.wrote + used.cached + used.cached_anew


class AnswerMeter:
    """Reads from the events of one answer what its provider may not report.

    Attributes:
        provider: what serves the answer, or "" so far.
        model: the model, as callers name it.
    """

    def __init__(self) -> None:
        self.provider = ""
        self.model = ""
        self._is_cached = False
        self._written = 0
        self._answer: GenerateResponse | None = None

    def add_answer(self, answer: GenerateResponse) -> None:
        """Take a whole answer."""
        self._note_route(answer.route)
        self._answer = answer

    def add_events(self, events: Iterable[Event]) -> Start | None:
        """Take some events of a streamed answer; return their `start`, if there is one."""
        start = None
        for event in events:
            match event.WhichOneof("kind"):
                case "text":
                    self._written += estimate_tokens(event.text)
                case "thinking":
                    self._written += estimate_tokens(event.thinking)
                case "input":
                    self._written += estimate_tokens(event.input)
                case "start":
                    start = event.start
                    self._note_route(start.route)
                case _:
                    continue
        return start

    def _note_route(self, route: RouteInfo) -> None:
        if route.cache == CACHE_STATUS_HIT:
            # Nobody was asked, whatever the answer says of what it took.
            self._is_cached = True
        else:
            self.provider, self.model = route.provider, route.model

    def used(self, spent: Spent, input_tokens: int, end: End) -> Sequence[UsedModel]:
        """Return what each model used for the request.

        Args:
            spent: what is recorded of it.
            input_tokens: about how many the request has; they count where its provider reported
                none, unless nothing was answered at all.
            end: how the answer ended. What was written counts where its provider could not say so.
        """
        if self._is_cached:
            return spent.parts
        if spent.answer:
            main, *others = spent.answer
        else:
            # An answer that is still to be remembered goes on without its caller.
            main, others = UsedModel(self.model, self.provider, "", None), []
        others += spent.parts
        if main.read is None:
            if not self.provider and end is not End.LEFT:
                return others
            main = main._replace(read=input_tokens, wrote=self._all_written())
        elif end is not End.COMPLETE:
            main = main._replace(wrote=max(main.wrote, self._written))
        return [main, *others]

    def _all_written(self) -> int:
        if self._answer is None:
            return self._written
        return sum(
            estimate_tokens(block.text)
            + estimate_tokens(block.thinking.text)
            + estimate_tokens(block.tool_use.input)
            for choice in self._answer.choices
            for block in choice.blocks
        )
