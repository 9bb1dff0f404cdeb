"""The plain form of a whole answer: the features that all dialects share, as plain Python values.

These are texts, finish reasons and token counts. A provider reads the plain form from its own JSON
for a caller of another dialect in the same process, and the facade renders it like a message. The
result is the same as by way of the canonical message.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gateway.conversation.v1.conversation_pb2 import FinishReason, Usage
from gateway.inference.v1.inference_pb2 import GenerateResponse
from services.common.messages.passthrough_answer import PassthroughAnswer, TokenCounts


class PlainChoice(NamedTuple):
    """A choice that consists of one text.

    Attributes:
        text: the text, not empty.
        reason: as in `Finish`.
        stop_sequence: as in `Finish`.
    """

    text: str
    reason: FinishReason.ValueType
    stop_sequence: str = ""


class PlainAnswer(PassthroughAnswer):
    """A whole answer without features of a single dialect.

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
        """Return the answer as a message."""
        response = super().response()
        response.id, response.model = self.id, self.model
        for choice in self.choices:
            added = response.choices.add()
            added.blocks.add(text=choice.text)
            added.finish.reason = choice.reason
            added.finish.stop_sequence = choice.stop_sequence
        return response

    def ByteSize(self) -> int:
        """Return the approximate size of the message in bytes."""
        return sum(len(choice.text) for choice in self.choices)
