"""The address of the caller of a gRPC call."""

import pytest

from services.common.client_address import TrustedProxies
from services.common.grpc.inprocess.context import CallContext
from services.common.grpc.peers import caller_address


class PeerContext(CallContext):
    """A call of a peer with a name."""

    def __init__(self, peer: str) -> None:
        super().__init__((("x-forwarded-for", "198.51.100.7"),))
        self._peer = peer

    def peer(self) -> str:
        return self._peer


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("inprocess", "198.51.100.7"),
        ("unix:", "198.51.100.7"),
        ("unix:/run/gateway.sock", "198.51.100.7"),
        ("ipv4:10.0.0.1:50000", "198.51.100.7"),
        ("ipv4:192.0.2.1:50000", "192.0.2.1"),
        ("ipv6:%5B2001:db8::1%5D:50000", "2001:db8::1"),
        ("ipv6:[2001:db8::1]:50000", "2001:db8::1"),
        ("unknown", ""),
        ("", ""),
    ],
)
def test_the_address_is_of_the_peer_or_a_proxy_tells(peer: str, address: str) -> None:
    proxies = TrustedProxies(["10.0.0.0/8"])
    assert caller_address(PeerContext(peer), proxies) == address
