"""The usage of a request for its limits, from its usage record and its answer.

The record has the usage that providers reported. A provider that reported none, because the answer
broke off or because it never does, has billed the tokens nevertheless. They are therefore estimated
here, while the record has none, and an unknown cost.
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
from services.common.passthrough_answer import PassthroughAnswer, Route
from services.common.tokens import estimate_tokens
from services.inference.usage.lines import UsedModel
from services.inference.usage.request_usage import RequestUsage

# Maximum pieces of text that are kept before their tokens are counted: counting is avoided, as most
# providers report usage.
_PIECES: Final = 1_000

# Returns the price of a model's usage in 10^-12 US dollars, or None if the price is unknown.
Price = Callable[[UsedModel], int | None]


class End(Enum):
    """How an answer ended."""

    COMPLETE = auto()
    FAILED = auto()
    LEFT = auto()  # its caller has left


def tokens_of(used: UsedModel) -> int:
    """Return the input and output tokens of a model's usage."""
    return (
        (used.input_tokens or 0)
        + used.output_tokens
        + used.cache_read_tokens
        + used.cache_write_tokens
    )


class AnswerMeter:
    """Collects from an answer what is needed to estimate usage that is not reported.

    Attributes:
        provider: the provider of the answer; "" until the route is known.
        model: the model, as callers name it.
    """

    def __init__(self) -> None:
        self.provider = ""
        self.model = ""
        self._is_cached = False
        self._texts: list[str] = []
        self._others: dict[str, list[str]] = {"thinking": [], "input": []}
        self._counted = 0  # tokens of earlier pieces, which were removed from the lists
        self._answer: GenerateResponse | None = None

    def add_answer(self, answer: GenerateResponse | PassthroughAnswer | EmbedResponse) -> None:
        """Set the whole answer."""
        self._add_route(answer.route)
        if isinstance(answer, GenerateResponse):
            self._answer = answer

    def add_events(self, events: Iterable[Event]) -> Start | None:
        """Add events of a streamed answer; return their `start`, if there is one."""
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
            # No provider was called, whatever usage the cached answer has.
            self._is_cached = True
        else:
            self.provider, self.model = route.provider, route.model

    def used(self, recorded: RequestUsage, input_tokens: int, end: End) -> Sequence[UsedModel]:
        """Return the usage of the request by model.

        Args:
            recorded: the recorded usage of the request.
            input_tokens: the estimated input tokens, used if the provider reported none, unless
                there was no answer at all.
            end: how the answer ended. If it is incomplete, the output tokens are at least those
                estimated from its content.
        """
        if self._is_cached:
            return recorded.parts
        if recorded.answer:
            main, *others = recorded.answer
        else:
            # An answer with memory is still read after its caller has left.
            main, others = UsedModel(self.model, self.provider, "", None), []
        others += recorded.parts
        if main.input_tokens is None:
            if not self.provider and end is not End.LEFT:
                return others
            main = main._replace(input_tokens=input_tokens, output_tokens=self._all_written())
        elif end is not End.COMPLETE:
            main = main._replace(output_tokens=max(main.output_tokens, self._written()))
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
        """Return the estimated output tokens of the events so far."""
        pieces = (self._texts, *self._others.values())
        return self._counted + sum(estimate_tokens("".join(one)) for one in pieces)
