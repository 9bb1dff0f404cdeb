"""Opens the summaries in a conversation that only the gateway reads. Pure."""

from collections.abc import Iterable

import orjson

from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES, Block, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import invalid
from services.common.messages.sealed_summary import PREFIXES, SUMMARY, SummarySealer
from services.inference.request.paths import block_path

_PREFIXES = tuple(prefix.encode() for prefix in PREFIXES)


def open_summaries(request: GenerateRequest, sealer: SummarySealer, user_id: str) -> None:
    """Put the texts of sealed summaries in their places.

    Args:
        request: the request; modified in place.
        sealer: opens summaries.
        user_id: the caller.

    Raises:
        GatewayError: invalid, a summary is of another user or has been changed.
    """
    _open_all(request.messages, sealer, user_id, "")
    for index, step in enumerate(request.fallback_config.steps):
        path = f"fallback_config.steps[{index}].parameters."
        _open_all(step.parameters.messages, sealer, user_id, path)


def _open_all(
    messages: Iterable[Message], sealer: SummarySealer, user_id: str, prefix: str
) -> None:
    for number, message in enumerate(messages):
        for place, block in enumerate(message.blocks):
            if _may_be_sealed(block):
                _open(block, sealer, user_id, prefix + block_path(number, place))


def _may_be_sealed(block: Block) -> bool:
    if not block.HasField("opaque") or block.opaque.dialect != DIALECT_RESPONSES:
        return False
    json = block.opaque.json
    return any(prefix in json for prefix in _PREFIXES)


def _open(block: Block, sealer: SummarySealer, user_id: str, path: str) -> None:
    match orjson.loads(block.opaque.json):
        case {"type": "compaction", "encrypted_content": str(sealed)}:
            pass
        case _:
            return
    summary = sealer.open(sealed, user_id)
    if summary is None:
        raise invalid(
            path,
            f"{path}: must be sent back unchanged, by the user for whom the gateway returned it",
        )
    block.Clear()
    block.text = f"{SUMMARY}\n{summary}"
