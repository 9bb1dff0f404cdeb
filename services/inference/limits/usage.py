"""What an answer has used, also one that broke off before its provider said so."""

from collections.abc import Callable, Iterable
from enum import Enum, auto

from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.inference.v1.inference_pb2 import (
    CACHE_STATUS_HIT,
    Event,
    GenerateResponse,
    RouteInfo,
    Start,
)
from services.common.tokens import estimate_tokens

# Returns the price of an answer in 10^-12 US dollars by its usage, provider and model, or None
# when no price is known.
Price = Callable[[Usage, str, str], int | None]


class End(Enum):
    """How an answer ended."""

    COMPLETE = auto()
    FAILED = auto()
    LEFT = auto()  # its caller has left


def tokens_of(usage: Usage) -> int:
    """Return the tokens of an answer: read and written, of all models that took part in it."""
    total = usage.input_tokens + usage.output_tokens
    total += usage.cache_creation_input_tokens + usage.cache_read_input_tokens
    return total + sum(one.input_tokens + one.output_tokens for one in usage.helpers)


class UsageMeter:
    """Reads the usage of one answer from its events.

    Attributes:
        provider: what serves the answer, or "" so far.
        model: the model, as callers name it.
    """

    def __init__(self) -> None:
        self.provider = ""
        self.model = ""
        self._usage: Usage | None = None
        self._is_cached = False
        self._written = 0

    def add_answer(self, answer: GenerateResponse) -> None:
        """Take a whole answer."""
        self._note_route(answer.route)
        if self._usage is None:
            self._usage = answer.usage

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
                case "usage" if not self._is_cached:
                    # Whoever is handed the events may change them.
                    self._usage = Usage()
                    self._usage.CopyFrom(event.usage)
                case _:
                    continue
        return start

    def _note_route(self, route: RouteInfo) -> None:
        if route.cache == CACHE_STATUS_HIT:
            # Nobody was asked, whatever the answer says of what it took.
            self._is_cached, self._usage = True, Usage()
        else:
            self.provider, self.model = route.provider, route.model

    def usage(self, input_tokens: int, end: End) -> Usage:
        """Return the usage of the answer.

        Args:
            input_tokens: about how many the request has; they count where no usage came, unless
                nothing was answered at all.
            end: how it ended. What was written counts where its provider could not say so.
        """
        usage = Usage()
        if self._usage is not None:
            usage.CopyFrom(self._usage)
        elif self.provider or end is End.LEFT:
            usage.input_tokens = input_tokens
        if not self._is_cached and (end is not End.COMPLETE or self._usage is None):
            usage.output_tokens = max(usage.output_tokens, self._written)
        return usage
