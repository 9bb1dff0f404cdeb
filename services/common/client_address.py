"""The address of a client behind trusted proxies. Pure.

Each proxy appends the address of its own peer to `x-forwarded-for`. Only what trusted proxies have
appended is believed: a client may send the header too.
"""

import ipaddress
from collections.abc import Iterable, Sequence

FORWARDED_KEY = "x-forwarded-for"

# Entries of the header that are read, the last ones: each is a proxy on the way.
_MAX_PROXIES = 20

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class TrustedProxies:
    """The networks of the proxies whose `x-forwarded-for` is believed.

    Args:
        networks: in CIDR notation, such as `10.0.0.0/8`.
    """

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks: Sequence[Network] = [ipaddress.ip_network(network) for network in networks]

    def client_address(self, peer: str, forwarded: str) -> str:
        """Return the address of the client, or "" if it is unknown.

        Args:
            peer: address of the peer of the connection; "" for a peer on this machine whose
                connection is private (a Unix socket, or a call within the process).
            forwarded: the values of `x-forwarded-for`, separated by commas.
        """
        address = _parse(peer)
        if peer and (address is None or not self._trusts(address)):
            return str(address or "")
        for entry in reversed(forwarded.split(",")[-_MAX_PROXIES:]):
            previous = _parse(entry.strip())
            if previous is None:
                break
            address = previous
            if not self._trusts(address):
                break
        return str(address or "")

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self._networks)


def _parse(text: str) -> Address | None:
    """Return an address; an IPv4 address that is mapped to IPv6 as IPv4."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
