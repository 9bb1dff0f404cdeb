"""A whole answer in the words that all dialects have, as plain Python values.

Texts, why they end, and token counts. A provider reads one from its own JSON for a caller of
another dialect in the same process, whose facade writes it by the rules of messages: what would
come of the message in between is the same.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gateway.conversation.v1.conversation_pb2 import FinishReason, Usage
from gateway.inference.v1.inference_pb2 import GenerateResponse
from services.common.passed_answer import PassedAnswer, TokenCounts


class PlainChoice(NamedTuple):
    """A choice that is one text.

    Attributes:
        text: not empty.
        reason: as in `Finish`.
        stop_sequence: as in `Finish`.
    """

    text: str
    reason: FinishReason.ValueType
    stop_sequence: str = ""


class PlainAnswer(PassedAnswer):
    """A whole answer without anything that only one dialect has words for.

    Attributes:
        id: as in `GenerateResponse`.
        model: as in `GenerateResponse`.
        choices: at least one.
    """

    __slots__ = ("choices", "id", "model")

    def __init__(
        self, id: str, model: str, choices: Sequence[PlainChoice], usage: TokenCounts | Usage
    ) -> None:
        super().__init__(b"", usage)
        self.id = id
        self.model = model
        self.choices = choices

    def response(self) -> GenerateResponse:
        """Return it as a message."""
        response = super().response()
        response.id, response.model = self.id, self.model
        for choice in self.choices:
            added = response.choices.add()
            added.blocks.add(text=choice.text)
            added.finish.reason = choice.reason
            added.finish.stop_sequence = choice.stop_sequence
        return response

    def ByteSize(self) -> int:
        """Return about as many bytes as the message would have."""
        return sum(len(choice.text) for choice in self.choices)
