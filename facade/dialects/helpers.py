"""JSON of the usage of models that converted media of a request, the same in both dialects.

Neither dialect has a place for it: it stands in `usage.gateway.helpers`, which clients keep
beside the fields that they know.
"""

from collections.abc import Iterable
from typing import Any

from gateway.conversation.v1.conversation_pb2 import HelperUsage


def helpers_json(helpers: Iterable[HelperUsage]) -> list[dict[str, Any]]:
    """Return one object a call."""
    return [_helper(one) for one in helpers]


def _helper(helper: HelperUsage) -> dict[str, Any]:
    told: dict[str, Any] = {
        "task": helper.task,
        "model": helper.model,
        "provider": helper.provider,
        "input_tokens": helper.input_tokens,
        "output_tokens": helper.output_tokens,
    }
    if helper.seconds:
        told["seconds"] = helper.seconds
    return told
