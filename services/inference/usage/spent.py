"""What the models of one request have used so far, for whoever has to know it before the record.

The figures are those of the request's usage records: all attempts, rounds of tools, and helpers.
"""

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from services.inference.usage.lines import UsedModel


class Spent:
    """What the models of one request have used.

    Attributes:
        answer: what the attempts at its answer used, of the model that answered first; None until
            the answer has ended, and where no model was asked for one.
        parts: what was used beside that, by models that describe or transcribe media.
    """

    def __init__(self) -> None:
        self.answer: Sequence[UsedModel] | None = None
        self.parts: list[UsedModel] = []

    @property
    def told(self) -> Sequence[UsedModel] | None:
        """What all models used; None where the one that answered did not tell it."""
        answer = self.answer
        if not answer or answer[0].read is None:
            return None
        return [*answer, *self.parts] if self.parts else answer

    def add(self, used: Iterable[Sequence[Any]], *, is_part: bool) -> None:
        """Add the values of `UsedModel`s; with `is_part` they are of no attempt at the answer."""
        models = [UsedModel(*one) for one in used]
        if is_part:
            self.parts += models
        else:
            self.answer = models


# Of the request whose handler is running; unset where nobody has to know.
spent: ContextVar[Spent] = ContextVar("spent")
