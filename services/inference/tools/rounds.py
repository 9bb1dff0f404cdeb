"""Build the requests of an answer that takes several rounds. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Dialect, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest, ThinkingBlockStrategy, WebTool
from services.inference.plans.plan import Step
from services.inference.request import thinking
from services.inference.request.request_changes import copied, lower_max_tokens
from services.inference.tools.history import unfolded
from services.inference.tools.offer import Available, close_tools, offer_tools, release_choice


class Progress(NamedTuple):
    """The state of an answer after some rounds.

    Attributes:
        said: messages of the previous rounds, with results of gateway tools.
        written: their tokens.
        is_last: whether gateway tools are no longer offered.
    """

    said: Sequence[Message] = ()
    written: int = 0
    is_last: bool = False


class Rounds:
    """Builds the request of a round from a step's request without gateway tools.

    Args:
        request: the caller's request.
        available: the gateway tools that can run.
        signer: signs thinking for the gateway.

    Attributes:
        progress: the state of the answer.
    """

    def __init__(
        self, request: GenerateRequest, available: Available, signer: thinking.Signer
    ) -> None:
        self.progress = Progress()
        self._request = request
        self._available = available
        self._signer = signer
        # By step identity.
        self._offered: dict[int, Mapping[str, WebTool]] = {}
        self._seen: dict[int, Sequence[Message]] = {}

    @property
    def joins_texts(self) -> bool:
        """Whether the caller reads all texts of the answer as one."""
        return self._request.requires_single_text

    def offered(self, step: Step) -> Mapping[str, WebTool]:
        """Return the gateway tools offered to a step's model, by name."""
        return self._offered.get(id(step), {})

    def seen(self, step: Step) -> Sequence[Message]:
        """Return the conversation that was sent to a step's model."""
        return self._seen.get(id(step), ())

    def tokens_left(self, step: Step, written: int) -> int | None:
        """Return the remaining token budget; None if the request has no limit."""
        for request in (step.parameters, self._request):
            if request is not None and request.HasField("max_tokens"):
                return max(0, request.max_tokens - written)
        return None

    def request_of(
        self, request: GenerateRequest, step: Step, dialect: Dialect.ValueType
    ) -> tuple[GenerateRequest, Sequence[str]]:
        """Return the request of the current round, and the paths of dropped fields.

        Args:
            request: the step's request without gateway tools; not modified.
            step: the step to run.
            dialect: the provider's dialect.

        Raises:
            GatewayError: unsupported, if it requires an unavailable tool; invalid.
        """
        delivered, written, is_last = self.progress
        request = copied(request)
        if delivered:
            self._keep_new_thoughts(request)
            request.messages.extend(delivered)
        tools, dropped = offer_tools(request, dialect, step.target, self._available)
        messages = list(unfolded(request.messages))
        del request.messages[:]
        request.messages.extend(messages)
        if delivered:
            release_choice(request, tools)
            tokens_left = self.tokens_left(step, written)
            if tokens_left is not None:
                lower_max_tokens(request, max(1, min(tokens_left, request.max_tokens)))
        if is_last and tools:
            close_tools(request, tools)
        self._offered[id(step)] = tools
        self._seen[id(step)] = request.messages
        return request, dropped

    def _keep_new_thoughts(self, request: GenerateRequest) -> None:
        """Apply thinking strategies to the caller's messages, not to this answer."""
        if request.thinking_block_strategy not in (
            ThinkingBlockStrategy.THINKING_BLOCK_STRATEGY_DISCARD,
            ThinkingBlockStrategy.THINKING_BLOCK_STRATEGY_FLATTEN,
        ):
            return
        # These strategies ignore the target.
        treated = thinking.apply_strategy(
            request,
            target_checks=False,
            target_dialect=conversation_pb2.DIALECT_UNSPECIFIED,
            signer=self._signer,
        )
        if treated is not request:
            request.CopyFrom(treated)
        request.ClearField("thinking_block_strategy")
