"""The address of a client behind proxies."""

import pytest

from services.common.client_address import TrustedProxies

PROXIES = TrustedProxies(["10.0.0.0/8", "fd00::/8", "127.0.0.1"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        # Without a trusted proxy, the peer is the client.
        ("192.0.2.1", "", "192.0.2.1"),
        ("192.0.2.1", "198.51.100.7", "192.0.2.1"),
        ("2001:db8::1", "198.51.100.7", "2001:db8::1"),
        # The last address that no trusted proxy has: those before it may be invented.
        ("10.1.2.3", "198.51.100.7", "198.51.100.7"),
        ("10.1.2.3", "203.0.113.5, 198.51.100.7", "198.51.100.7"),
        ("10.1.2.3", "203.0.113.5, 198.51.100.7, 10.9.9.9", "198.51.100.7"),
        ("fd00::1", "2001:db8::7,fd00::2", "2001:db8::7"),
        ("::ffff:10.1.2.3", "::ffff:198.51.100.7", "198.51.100.7"),
        # Only proxies, or what is no address: the first proxy that is known.
        ("10.1.2.3", "", "10.1.2.3"),
        ("10.1.2.3", "10.4.4.4", "10.4.4.4"),
        ("10.1.2.3", "198.51.100.7, unknown", "10.1.2.3"),
        ("10.1.2.3", "198.51.100.7, unknown, 10.4.4.4", "10.4.4.4"),
        # A private connection has no address of its own.
        ("", "", ""),
        ("", "198.51.100.7", "198.51.100.7"),
        ("", "x", ""),
        ("x", "198.51.100.7", ""),
        ("10.1.2.3", "198.51.100.7," + "10.0.0.1," * 50 + "10.0.0.2", "10.0.0.1"),
    ],
)
def test_only_trusted_proxies_are_believed(peer: str, forwarded: str, address: str) -> None:
    assert PROXIES.client_address(peer, forwarded) == address
