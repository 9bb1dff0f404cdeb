"""The usage of a running request, for code that needs it before the usage record.

The figures are those of the usage records: of all attempts, rounds of tools, and helpers.
"""

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from services.inference.usage.lines import UsedModel


class RequestUsage:
    """The usage of one request by model.

    Attributes:
        answer: the usage of the attempts, with the model that answered first; None until the
            answer has ended, and if no model was called for one.
        parts: the usage of helpers, which describe or transcribe media.
    """

    def __init__(self) -> None:
        self.answer: Sequence[UsedModel] | None = None
        self.parts: list[UsedModel] = []

    @property
    def reported(self) -> Sequence[UsedModel] | None:
        """The usage of all models; None if that of the model that answered was not reported."""
        answer = self.answer
        if not answer or answer[0].input_tokens is None:
            return None
        return [*answer, *self.parts] if self.parts else answer

    def add(self, used: Iterable[Sequence[Any]], *, is_helper: bool) -> None:
        """Add values of `UsedModel`s: of helpers, or of the answer's attempts."""
        models = [UsedModel(*one) for one in used]
        if is_helper:
            self.parts += models
        else:
            self.answer = models


# The usage of the request whose handler is running; unset if it is not needed.
current_usage: ContextVar[RequestUsage] = ContextVar("current_usage")
