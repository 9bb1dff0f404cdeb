"""The usage of a running request, for code that needs it before the usage record.

The figures are those of the usage records: of all attempts, rounds of tools, and helpers.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from services.inference.usage.lines import UsedModel

# Reserves tokens and money for the input tokens of a call, and the output tokens of earlier ones.
Extend = Callable[[int, int], Awaitable[None]]
# Reserves as much again, for a second model that is called beside a silent one.
ReserveRival = Callable[[], Awaitable[None]]


class RequestUsage:
    """The usage of one request by model.

    Args:
        extend: called when the request turns out to need more than its caller sent, such as the
            turns of a memory, or another round of tools; None if nothing is reserved.
        reserve_rival: called before a second model is called beside a silent one; None as `extend`.

    Attributes:
        extend, reserve_rival: as the arguments.
        answer: the usage of the attempts, with the model that answered first; () until the answer
            has ended, and if no model was called for one.
        parts: the usage of helpers, which describe or transcribe media.
    """

    def __init__(
        self, extend: Extend | None = None, reserve_rival: ReserveRival | None = None
    ) -> None:
        self.extend = extend
        self.reserve_rival = reserve_rival
        self.answer: Sequence[UsedModel] = ()
        self.parts: list[UsedModel] = []
        self._open = 0
        self._on_end: Callable[[], None] | None = None

    @property
    def all(self) -> Sequence[UsedModel]:
        """The usage of all models."""
        return [*self.answer, *self.parts] if self.parts else self.answer

    def add(self, used: Iterable[Sequence[Any]], *, is_helper: bool) -> None:
        """Add values of `UsedModel`s: of helpers, or of the answer's attempts."""
        models = [UsedModel(*model_usage) for model_usage in used]
        if is_helper:
            self.parts += models
        else:
            self.answer = models

    def begin(self) -> None:
        """Record that a model is called, whose usage is added before `end`."""
        self._open += 1

    def end(self) -> None:
        """Record that the usage of a model has been added."""
        self._open -= 1
        if not self._open and self._on_end is not None:
            self._on_end()

    def when_ended(self, on_end: Callable[[], None]) -> None:
        """Call a function once all usage has been added: now, if no model is being called."""
        self._on_end = on_end
        if not self._open:
            on_end()


# The usage of the request whose handler is running; unset if it is not needed.
current_usage: ContextVar[RequestUsage] = ContextVar("current_usage")
