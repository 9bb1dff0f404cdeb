"""Parts of a request on their way to Converse. Pure."""

from gateway.conversation.v1.conversation_pb2 import DIALECT_UNSPECIFIED, MediaKind
from services.inference.providers.anthropic.fields import AnthropicFields
from services.inference.providers.base import Call
from services.inference.providers.bedrock.families import (
    Family,
    family_of,
    takes_cache_points,
    takes_medium,
    takes_result_status,
)


class BedrockFields(AnthropicFields):
    """Decides which parts of a call's request Bedrock is sent; see `RequestFields`.

    Converse is of no dialect of callers, but takes schemas as Anthropic does.

    Attributes:
        family: the family of the model.
    """

    dialect = DIALECT_UNSPECIFIED

    def __init__(self, call: Call, *, pass_stateful: bool) -> None:
        super().__init__(call, pass_stateful=pass_stateful, fetches_urls=False, official=True)
        self.family: Family = family_of(call.target)

    @property
    def takes_marks(self) -> bool:
        """Whether the model caches prompts."""
        return takes_cache_points(self.family)

    def takes_medium(self, kind: MediaKind.ValueType) -> bool:
        """Return whether the family of the model may read a kind of medium."""
        return takes_medium(self.family, kind)

    @property
    def takes_result_status(self) -> bool:
        """Whether tool results may say that the tool failed."""
        return takes_result_status(self.family)
