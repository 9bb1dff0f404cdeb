"""Affinity keys: identify the requests of one conversation, for sticky deployments. Pure.

Each deployment has its own prompt cache of the beginnings of recent prompts, which are read at a
fraction of the price and time. All requests of a conversation begin alike: with its instructions
and the first message of its user. A conversation with memory is identified by its `memory_id`.
"""

from collections.abc import Iterator
from hashlib import blake2b

from gateway.conversation.v1 import conversation_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.messages.lazy_request import LazyRequest

# Size of the beginning that is hashed.
_MAX_BYTES = 64 << 10


def affinity_of(user_id: str, request: GenerateRequest, lazy: LazyRequest | None) -> bytes:
    """Return a hash of 16 bytes, the same for all requests of one conversation of one user.

    Args:
        user_id: the user.
        request: the request; without messages if it is `lazy`.
        lazy: the lazy request; None if the request is complete.
    """
    digest = blake2b(digest_size=16)
    digest.update(f"{user_id}\0{request.model}\0".encode())
    if memory_id := request.memory.memory_id:
        digest.update(memory_id.encode())
        return digest.digest()
    bytes_left = _MAX_BYTES
    for text in _canonical(request) if lazy is None else _plain(lazy):
        # Counted in characters, each of at least one byte.
        digest.update(text[:bytes_left].encode(errors="replace"))
        bytes_left -= len(text)
        if bytes_left <= 0:
            break
    return digest.digest()


def _canonical(request: GenerateRequest) -> Iterator[str]:
    for message in request.messages:
        is_billing = message.has_billing_line
        for block in message.blocks:
            if block.HasField("text"):
                yield block.text.partition("\n")[2] if is_billing else block.text
            is_billing = False
        if message.role == conversation_pb2.ROLE_USER:
            return


def _plain(lazy: LazyRequest) -> Iterator[str]:
    for message in lazy.beginning():
        yield from message.texts_without_billing()
