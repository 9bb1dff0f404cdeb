"""Names resolved, and sockets opened to the addresses that were checked."""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import aiohappyeyeballs

from services.inference.fetching.addresses import Address, is_public

# Lookups have threads of their own: names whose servers stay silent occupy a thread for up to
# half a minute, which would be missing where providers' names are resolved and files read.
_THREADS = 8
# How long one address is tried alone before the next is tried beside it (RFC 8305, section 5).
_NEXT_ADDRESS_S = 0.25


class Resolver:
    """The system's resolver."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "fetching-resolver")

    async def __call__(self, host: str) -> Sequence[str]:
        """Return the IP addresses of a host, at least one.

        Raises:
            OSError: it has none, or they cannot be found out.
            UnicodeError: it is none that a host can have.
        """
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _look_up, host)
        return list(dict.fromkeys(found))

    def close(self) -> None:
        """Take no more names; nobody waits for those that are being resolved."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str) -> list[str]:
    # The first part of an address of the internet's families is always text.
    return [str(info[4][0]) for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def is_allowed(address: Address) -> bool:
    """Return whether an address may be connected to: it is public, and not this machine's own.

    What a machine sends to its own public address goes over its loopback, past the firewall
    that stands before it.
    """
    return is_public(address) and not _is_own(address)


def _is_own(address: Address) -> bool:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            # Chooses the address to send from; nothing is sent.
            probe.connect((str(address), 9))
            own = ipaddress.ip_address(probe.getsockname()[0])
    except OSError:
        return False  # there is no way to it, so it is elsewhere
    return own == address


async def connect(addresses: Sequence[Address], port: int) -> socket.socket:
    """Return a socket that is connected to one of the addresses.

    Raises:
        OSError: none can be connected to.
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
