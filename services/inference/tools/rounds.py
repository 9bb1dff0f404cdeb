"""The requests of an answer in rounds: what each of them adds to the caller's. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Dialect, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest, ThinkingBlockStrategy, WebTool
from services.inference import thinking
from services.inference.fallback.plan import Step
from services.inference.fallback.step_request import copied, lower_max_tokens
from services.inference.tools.history import unfolded
from services.inference.tools.offer import Available, close_tools, offer_tools, release_choice


class Progress(NamedTuple):
    """How far an answer has come.

    Attributes:
        said: what models said in the rounds before, with the results of the gateway's tools.
        written: tokens of that.
        is_last: whether the gateway's tools are not offered any more.
    """

    said: Sequence[Message] = ()
    written: int = 0
    is_last: bool = False


class Rounds:
    """Makes the request of a round from the one that a step's model would get without tools.

    Args:
        request: the caller's.
        available: the gateway's tools.
        signer: knows the gateway's signatures of thinking.

    Attributes:
        progress: how far the answer has come.
    """

    def __init__(
        self, request: GenerateRequest, available: Available, signer: thinking.Signer
    ) -> None:
        self.progress = Progress()
        self._request = request
        self._available = available
        self._signer = signer
        # Of each step, by its identity.
        self._offered: dict[int, Mapping[str, WebTool]] = {}
        self._seen: dict[int, Sequence[Message]] = {}

    @property
    def dialect(self) -> Dialect.ValueType:
        """The caller's dialect."""
        return self._request.dialect

    def offered(self, step: Step) -> Mapping[str, WebTool]:
        """Return the gateway's tools that a step's model was offered, by name."""
        return self._offered.get(id(step), {})

    def seen(self, step: Step) -> Sequence[Message]:
        """Return the conversation as a step's model has seen it."""
        return self._seen.get(id(step), ())

    def tokens_left(self, step: Step, written: int) -> int | None:
        """Return how many tokens may still be written; None where the caller sets no bound."""
        for request in (step.parameters, self._request):
            if request is not None and request.HasField("max_tokens"):
                return max(0, request.max_tokens - written)
        return None

    def request_of(
        self, request: GenerateRequest, step: Step, dialect: Dialect.ValueType
    ) -> tuple[GenerateRequest, Sequence[str]]:
        """Return the request of the present round, and what of the caller's has no effect in it.

        Args:
            request: what the model would get without tools; it is not changed.
            step: whose model is asked.
            dialect: the one of the model's provider.

        Raises:
            GatewayError: unsupported, when it asks for a tool that is not there; invalid.
        """
        said, written, is_last = self.progress
        request = copied(request)
        if said:
            self._keep_new_thoughts(request)
            request.messages.extend(said)
        tools, dropped = offer_tools(request, dialect, step.target, self._available)
        messages = list(unfolded(request.messages))
        del request.messages[:]
        request.messages.extend(messages)
        if said:
            release_choice(request, tools)
            left = self.tokens_left(step, written)
            if left is not None:
                lower_max_tokens(request, max(1, min(left, request.max_tokens)))
        if is_last and tools:
            close_tools(request, tools)
        self._offered[id(step)] = tools
        self._seen[id(step)] = request.messages
        return request, dropped

    def _keep_new_thoughts(self, request: GenerateRequest) -> None:
        """Treat the caller's thinking now: what is thought in this answer goes on as it is."""
        if request.thinking_block_strategy not in (
            ThinkingBlockStrategy.THINKING_BLOCK_STRATEGY_DISCARD,
            ThinkingBlockStrategy.THINKING_BLOCK_STRATEGY_FLATTEN,
        ):
            return
        # Of these strategies none looks at the target.
        treated = thinking.apply_strategy(
            request,
            target_checks=False,
            target_dialect=conversation_pb2.DIALECT_UNSPECIFIED,
            signer=self._signer,
        )
        if treated is not request:
            request.CopyFrom(treated)
        request.ClearField("thinking_block_strategy")
