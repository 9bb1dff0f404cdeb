"""What requests of one conversation have in common, for sticky deployments. Pure.

Providers keep the beginnings of recent prompts, and read them again at a fraction of the price and
time, each deployment for itself. A conversation begins alike in all of its requests: with its
instructions and the first message of its user. One that the server remembers has a name.
"""

from collections.abc import Iterator
from hashlib import blake2b

from gateway.conversation.v1 import conversation_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.lazy_request import LazyRequest

# Bytes of the beginning that are compared.
_MAX_BYTES = 64 << 10


def affinity_of(user_id: str, request: GenerateRequest, lazy: LazyRequest | None) -> bytes:
    """Return 16 bytes that the requests of one conversation of one user have in common.

    Args:
        user_id: the user.
        request: the request; without its messages where there is a `lazy` one.
        lazy: its conversation as its caller wrote it, if it is not complete.
    """
    digest = blake2b(digest_size=16)
    digest.update(f"{user_id}\0{request.model}\0".encode())
    if memory_id := request.memory.memory_id:
        digest.update(memory_id.encode())
        return digest.digest()
    left = _MAX_BYTES
    for text in _canonical(request) if lazy is None else _plain(lazy):
        # A character takes a byte at least.
        digest.update(text[:left].encode(errors="replace"))
        left -= len(text)
        if left <= 0:
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
