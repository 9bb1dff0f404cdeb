"""gRPC channels to other processes, and the options that limit both ends.

Calls within a process use `services.common.grpc.inprocess` instead.
"""

from collections.abc import Sequence
from typing import Any

import grpc

from services.common.grpc.hops import HOPS_KEY
from services.common.labels import END_USER_KEY, TAGS_KEY
from services.common.process.telemetry.trace_context import TRACEPARENT_KEY, TRACESTATE_KEY
from services.common.settings import Grpc

REQUEST_ID_KEY = "x-request-id"
USER_ID_KEY = "x-user-id"

# Unread bytes that a stream may buffer: many on the gateway's own socket, which transfers files,
# and few on a TCP port.
_LOOKAHEAD = 1 << 20
_TCP_LOOKAHEAD = 64 << 10
# Bit set of compression algorithms: no compression only.
_IDENTITY = 1
# Entries of a call's metadata that belong to the request that it is made for.
_FORWARDED = frozenset(
    {
        *("authorization", REQUEST_ID_KEY, HOPS_KEY, TRACEPARENT_KEY, TRACESTATE_KEY),
        *("cache-control", TAGS_KEY, END_USER_KEY),
    }
)
Metadata = tuple[tuple[str, str], ...]


def is_private(address: str) -> bool:
    """Return whether an address is a Unix socket, which file modes protect."""
    return address.startswith("unix:")


def size_options(
    max_message_bytes: int, *, lookahead: int = _LOOKAHEAD
) -> Sequence[tuple[str, int]]:
    """Return the gRPC options that limit the buffers at both ends of a connection.

    A message has at most `max_message_bytes`. The buffer of a stream whose reader has stopped
    reading is limited to `lookahead` bytes: by default, gRPC increases it with the speed of the
    connection to many times that.
    """
    return (
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.max_send_message_length", max_message_bytes),
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", lookahead),
    )


def open_channel(
    target: str, *, max_message_bytes: int, credentials: grpc.ChannelCredentials | None = None
) -> grpc.aio.Channel:
    """Open a channel to `host:port` or `unix:/path`; with `credentials`, over TLS.

    The channel connects by itself, and reconnects within a second after its peer has restarted.
    """
    options = [
        *size_options(max_message_bytes),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
        # Despite its name, the timeout of a connection attempt. A busy peer is slow to answer.
        ("grpc.min_reconnect_backoff_ms", 5000),
        ("grpc.enable_http_proxy", 0),
    ]
    if credentials is None or is_private(target):
        return grpc.aio.insecure_channel(target, options=options)
    return grpc.aio.secure_channel(target, credentials, options=options)


def tcp_server_options(max_message_bytes: int, bounds: Grpc) -> Sequence[tuple[str, int]]:
    """Return the gRPC options of a server on a TCP port."""
    return (
        *size_options(max_message_bytes, lookahead=_TCP_LOOKAHEAD),
        ("grpc.max_allowed_incoming_connections", bounds.max_connections),
        ("grpc.max_concurrent_streams", bounds.max_calls_per_connection),
        ("grpc.max_metadata_size", bounds.max_metadata_bytes),
        ("grpc.absolute_max_metadata_size", bounds.max_metadata_bytes),
        ("grpc.server_handshake_timeout_ms", _ms(bounds.handshake_timeout_s)),
        ("grpc.max_connection_idle_ms", _ms(bounds.idle_connection_s)),
        ("grpc.max_connection_age_ms", _ms(bounds.connection_age_s)),
        # Detects peers that vanished without closing the connection.
        ("grpc.keepalive_time_ms", _ms(bounds.idle_connection_s)),
        ("grpc.keepalive_timeout_ms", 20_000),
        # Envoy sends keepalive pings every 30 seconds, even without calls.
        ("grpc.http2.min_ping_interval_without_data_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        # A decompressed message could be a thousand times as large as the received bytes.
        ("grpc.compression_enabled_algorithms_bitset", _IDENTITY),
    )


def _ms(seconds: float) -> int:
    return int(1000 * seconds)


def forwarded_metadata(context: "grpc.aio.ServicerContext[Any, Any]") -> Metadata:
    """Return the metadata for a call that continues one: key, request id, trace and others."""
    entries = context.invocation_metadata() or ()
    return tuple([(name, str(value)) for name, value in entries if name in _FORWARDED])
