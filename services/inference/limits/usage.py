"""What a request has used, from the figures of its usage record and what its answer said.

The record has what providers reported. A provider that reported nothing, because the answer broke
off or because it never does, has billed all the same: then the tokens are estimated here, while the
record has none, and a cost that is not known.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from typing import Final

from gateway.inference.v1.inference_pb2 import (
    CACHE_STATUS_HIT,
    EmbedResponse,
    Event,
    GenerateResponse,
    RouteInfo,
    Start,
)
from services.common.passed_answer import PassedAnswer, Route
from services.common.tokens import estimate_tokens
from services.inference.usage.lines import UsedModel
from services.inference.usage.spent import Spent

# Pieces of a text up to which its tokens are not counted: they matter only where the provider does
# not report them.
_PIECES: Final = 1_000

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
        self._texts: list[str] = []
        self._others: dict[str, list[str]] = {"thinking": [], "input": []}
        self._counted = 0  # tokens of what was in the lists before
        self._answer: GenerateResponse | None = None

    def add_answer(self, answer: GenerateResponse | PassedAnswer | EmbedResponse) -> None:
        """Take a whole answer."""
        self._add_route(answer.route)
        if isinstance(answer, GenerateResponse):
            self._answer = answer

    def add_events(self, events: Iterable[Event]) -> Start | None:
        """Take some events of a streamed answer; return their `start`, if there is one."""
        start = None
        texts = self._texts
        for event in events:
            # Nearly all events are text, and this runs for each.
            if text := event.text:
                texts.append(text)
                continue
            kind = event.WhichOneof("kind")
            if kind == "start":
                start = event.start
                self._add_route(start.route)
            elif kind in self._others:
                self._others[kind].append(getattr(event, kind))
        if len(texts) > _PIECES or any(len(one) > _PIECES for one in self._others.values()):
            self._counted = self._written()
            for pieces in (texts, *self._others.values()):
                pieces.clear()
        return start

    def _add_route(self, route: RouteInfo | Route) -> None:
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
            main = main._replace(wrote=max(main.wrote, self._written()))
        return [main, *others]

    def _all_written(self) -> int:
        if self._answer is None:
            return self._written()
        return sum(
            estimate_tokens(block.text)
            + estimate_tokens(block.thinking.text)
            + estimate_tokens(block.tool_use.input)
            for choice in self._answer.choices
            for block in choice.blocks
        )

    def _written(self) -> int:
        """Return the tokens of the events so far."""
        pieces = (self._texts, *self._others.values())
        return self._counted + sum(estimate_tokens("".join(one)) for one in pieces)
