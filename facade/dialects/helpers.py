"""JSON of helper models' usage, shared by both dialects.

Neither dialect has a field for it: it is sent as `usage.gateway.helpers`, which clients preserve
beside known fields.
"""

from collections.abc import Iterable
from typing import Any

from gateway.conversation.v1.conversation_pb2 import HelperUsage


def helpers_json(helpers: Iterable[HelperUsage]) -> list[dict[str, Any]]:
    """Return one object per call."""
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
