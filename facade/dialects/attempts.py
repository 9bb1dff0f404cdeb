"""JSON of provider attempts in error responses, shared by both formats."""

from gateway.errors.v1.errors_pb2 import Attempt, Reason


def attempt_object(attempt: Attempt) -> dict[str, object]:
    """Return step, model, HTTP status (null without a response), reason and milliseconds."""
    return {
        "step": attempt.step,
        "model": attempt.model,
        "status": attempt.status if attempt.HasField("status") else None,
        "reason": Reason.Name(attempt.reason).removeprefix("REASON_").lower(),
        "ms": attempt.duration_ms,
    }
