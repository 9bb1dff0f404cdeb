"""Fields unknown to the canonical request, for servers of Anthropic's dialect. Pure."""

from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC
from services.inference.providers.base import Call
from services.inference.providers.request_fields import RequestFields
from services.inference.refusals import THINKING_BUDGET, UNSIGNED_THINKING


class AnthropicFields(RequestFields):
    """Decides which parts of a call's request a server is sent; see `RequestFields`.

    Attributes:
        official: whether the provider is Anthropic itself.
        takes_unsigned: whether unsigned thinking may be sent.
        takes_budgets: whether a token budget for thinking may be sent.
    """

    dialect = DIALECT_ANTHROPIC

    def __init__(
        self, call: Call, *, pass_stateful: bool, fetches_urls: bool, official: bool
    ) -> None:
        super().__init__(call, pass_stateful=pass_stateful, fetches_urls=fetches_urls)
        self.official = official
        self.takes_unsigned = not official and UNSIGNED_THINKING not in call.refused_fields
        self.takes_budgets = THINKING_BUDGET not in call.refused_fields
