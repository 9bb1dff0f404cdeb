"""JSON of the gateway's own objects in answers and errors, the same in all dialects."""

from collections.abc import Iterable
from typing import Any

from gateway.conversation.v1.conversation_pb2 import HelperUsage
from gateway.errors.v1.errors_pb2 import Attempt, Reason


def attempt_object(attempt: Attempt) -> dict[str, object]:
    """Return an attempt of an error: step, model, HTTP status (null without a response), reason and
    milliseconds.
    """
    return {
        "step": attempt.step,
        "model": attempt.model,
        "status": attempt.status if attempt.HasField("status") else None,
        "reason": Reason.Name(attempt.reason).removeprefix("REASON_").lower(),
        "ms": attempt.duration_ms,
    }


def helpers_json(helpers: Iterable[HelperUsage]) -> list[dict[str, Any]]:
    """Return the objects of `usage.gateway.helpers`, one for each call of a helper model.

    No dialect has such a field, but clients preserve it beside those that they know.
    """
    return [_helper(one) for one in helpers]


def _helper(helper: HelperUsage) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "task": helper.task,
        "model": helper.model,
        "provider": helper.provider,
        "input_tokens": helper.input_tokens,
        "output_tokens": helper.output_tokens,
    }
    if helper.seconds:
        fields["seconds"] = helper.seconds
    return fields
