"""Resolve names, and open sockets to checked addresses."""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import aiohappyeyeballs

from services.media.fetching.addresses import Address, is_public

# Own threads: lookups of unresponsive name servers block for up to half a minute, and must not use
# up the threads that resolve providers' names and read files.
_THREADS = 8
# Delay before the next address is tried in parallel (RFC 8305, section 5).
_NEXT_ADDRESS_S = 0.25


class Resolver:
    """The system's resolver."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "fetching-resolver")

    async def __call__(self, host: str) -> Sequence[str]:
        """Return the IP addresses of a host, at least one.

        Raises:
            OSError: the host has no address, or the lookup failed.
            UnicodeError: the name is invalid.
        """
        loop = asyncio.get_running_loop()
        addresses = await loop.run_in_executor(self._threads, _look_up, host)
        return list(dict.fromkeys(addresses))

    def close(self) -> None:
        """Accept no more lookups; pending ones are abandoned."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str) -> list[str]:
    # The address is a string in the IPv4 and IPv6 families.
    return [str(info[4][0]) for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def is_allowed(address: Address) -> bool:
    """Return whether connecting to an address is allowed: it is public and not this machine's own.

    Connections to the machine's own public address use its loopback interface, behind any firewall.
    """
    return is_public(address) and not _is_own(address)


def _is_own(address: Address) -> bool:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            # Connecting a UDP socket selects the source address; nothing is sent.
            probe.connect((str(address), 9))
            own = ipaddress.ip_address(probe.getsockname()[0])
    except OSError:
        return False  # no route, so the address is not local
    return own == address


async def connect(addresses: Sequence[Address], port: int) -> socket.socket:
    """Return a socket that is connected to one of the addresses.

    Raises:
        OSError: no address can be connected to.
    """
    places = [
        (
            socket.AF_INET if address.version == 4 else socket.AF_INET6,
            socket.SOCK_STREAM,
            socket.IPPROTO_TCP,
            "",
            (str(address), port) if address.version == 4 else (str(address), port, 0, 0),
        )
        for address in addresses
    ]
    return await aiohappyeyeballs.start_connection(places, happy_eyeballs_delay=_NEXT_ADDRESS_S)
