"""How a process reaches gRPC services: the one place that decides what carries a call."""

from collections.abc import Sequence

import grpc

from services.common.link.channel import LinkChannel
from services.common.link.frames import MAX_BATCH

REQUEST_ID_KEY = "x-request-id"
USER_ID_KEY = "x-user-id"

_LOOKAHEAD = 1 << 20
# A file of many megabytes costs a third on a stream of its own, as `make bench-link` shows.
_APART = frozenset(
    {
        "/gateway.files.v1.FileStoreService/CreateFile",
        "/gateway.files.v1.FileStoreService/ReadFile",
    }
)

Metadata = tuple[tuple[str, str], ...]


def size_options(max_message: int) -> Sequence[tuple[str, int]]:
    """Give the gRPC options that bound what either end of a connection holds.

    A message has at most `max_message` bytes, or those of a link's batch where they are more.
    What a stream holds for a reader that has stopped reading is bounded too: left to itself,
    gRPC raises it with the speed of the connection to many times that.
    """
    size = max(max_message, MAX_BATCH)
    return (
        ("grpc.max_receive_message_length", size),
        ("grpc.max_send_message_length", size),
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", _LOOKAHEAD),
    )


def open_channel(target: str, *, max_message: int) -> grpc.aio.Channel:
    """Open a channel to `host:port` or `unix:/path`, whose calls share a link.

    It connects by itself, and again after its peer restarts, within a second.
    """
    plain = open_plain_channel(target, max_message=max_message)
    return LinkChannel(plain, max_message=max_message, apart=_APART)


def open_plain_channel(target: str, *, max_message: int) -> grpc.aio.Channel:
    """Open a channel to `host:port` or `unix:/path` that makes each call a gRPC call.

    It connects by itself, and again after its peer restarts, within a second.
    """
    return grpc.aio.insecure_channel(
        target,
        options=[
            *size_options(max_message),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
            # In spite of its name: how long a try may take. A busy peer is slow to answer.
            ("grpc.min_reconnect_backoff_ms", 5000),
            ("grpc.enable_http_proxy", 0),
        ],
    )


def call_metadata(key: str, request_id: str) -> Metadata:
    """Give the metadata of a call made for the owner of `key`."""
    return (("authorization", f"Bearer {key}"), (REQUEST_ID_KEY, request_id))
