"""Detection of a refusal in an answer that is given up for the next model."""

from gateway.conversation.v1 import conversation_pb2
from gateway.errors.v1 import errors_pb2
from services.common.errors import UpstreamError
from services.inference.stream.filters import Batch


class RefusedAnswerError(UpstreamError):
    """Error raised when a model refuses to answer, and the next one is to be asked."""

    def __init__(self, provider: str) -> None:
        super().__init__(
            errors_pb2.REASON_CONTENT_FILTER,
            f"the model of the provider {provider} refused to answer",
            status=200,
        )


class RefusalFilter:
    """Passes an answer on unless it is a refusal, in words or by its finish reason.

    Args:
        provider: the provider's name in the settings, for the error message.

    Raises:
        RefusedAnswerError: from `feed`, at the refusal.
    """

    is_done = False

    def __init__(self, provider: str) -> None:
        self._provider = provider

    def feed(self, batch: Batch) -> Batch:
        """Return the batch unchanged."""
        for event in batch:
            kind = event.WhichOneof("kind")
            if (kind == "block_start" and event.block_start.HasField("refusal")) or (
                kind == "finish" and event.finish.reason == conversation_pb2.FINISH_REASON_REFUSAL
            ):
                raise RefusedAnswerError(self._provider)
        return batch
