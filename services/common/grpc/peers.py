"""The network address of the caller of a gRPC call."""

from typing import Any
from urllib.parse import unquote

import grpc

from services.common.client_address import FORWARDED_KEY, TrustedProxies
from services.common.grpc.inprocess.context import PEER


def caller_address(context: grpc.aio.ServicerContext[Any, Any], proxies: TrustedProxies) -> str:
    """Return the address of the caller, or "" if it is unknown.

    The facade sends the address of its own caller; over TCP it is believed if the facade's host is
    a trusted proxy.
    """
    entries = context.invocation_metadata() or ()
    forwarded = ",".join(str(value) for name, value in entries if name == FORWARDED_KEY)
    return proxies.client_address(_peer_address(context.peer()), forwarded)


def _peer_address(peer: str) -> str:
    """Return the address in gRPC's name of a peer, or "" if the connection is private.

    The names of TCP peers are `ipv4:192.0.2.1:50000` and `ipv6:%5B2001:db8::1%5D:50000`.
    """
    family, _, place = unquote(peer).partition(":")
    if family in (PEER, "unix"):
        return ""
    return place.rpartition(":")[0].strip("[]") or "unknown"
