"""Classification of IP addresses as public or not. Pure.

The tables are IANA's registries of special-purpose addresses (RFC 6890) as of 2026. They are not
taken from Python's `ipaddress`, where they differ between patch releases.
"""

import ipaddress
from collections.abc import Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NOT_PUBLIC_4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by a carrier's customers; metadata of some clouds
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # the host of a virtual machine of Azure's
        "169.254.0.0/16",  # link-local; metadata of most clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)

# Assigned global unicast addresses. Loopback, IPv4-mapped and IPv4-compatible, unique local,
# link-local and multicast addresses are outside of it.
_UNICAST_6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments; Teredo, which leads to IPv4 addresses
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which leads to IPv4 addresses
        "3fff::/20",  # documentation
    )
)
# NAT64 (RFC 6052): the resolver of an IPv6-only network returns such addresses for names that have
# only IPv4 addresses.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Return whether an address is globally reachable."""
    if isinstance(address, ipaddress.IPv4Address):
        return not _is_in(address, _NOT_PUBLIC_4)
    if address.scope_id is not None:
        return False
    if address in _NAT64:
        return is_public(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return address in _UNICAST_6 and not _is_in(address, _NOT_PUBLIC_6)


def _is_in(
    address: Address, networks: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]
) -> bool:
    return any(address in network for network in networks)
