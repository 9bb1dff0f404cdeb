"""Checks the addresses of servers that administrators store, before connections are opened."""

import ipaddress
from collections.abc import Iterable, Mapping

from yarl import URL

from services.common.http import Origin, origin_of
from services.common.settings import Provider
from services.media.fetching.connecting import is_allowed


def is_external(host: str) -> bool:
    """Return whether an IP address is public, and not this machine's; True for a name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return True  # of a server behind a proxy
    return is_allowed(address)


def origins_of(providers: Iterable[Provider]) -> frozenset[Origin]:
    """Return the servers of providers that have an address."""
    return frozenset(origin_of(URL(one.base_url)) for one in providers if one.base_url)


class AddressGuard:
    """Refuses internal addresses to stored providers, for `Client`.

    A server that the settings name, too, may have any address.
    """

    def __init__(self) -> None:
        self._guarded: frozenset[Origin] = frozenset()

    def configure(
        self, stored: Mapping[str, Provider], ruling: Mapping[str, Provider], *, is_on: bool
    ) -> None:
        """Set which servers are checked.

        Args:
            stored: the providers of the database.
            ruling: those of the settings and of the environment.
            is_on: whether any are checked.
        """
        guarded = origins_of(stored.values()) - origins_of(ruling.values())
        self._guarded = guarded if is_on else frozenset()

    def __call__(self, origin: Origin, host: str) -> bool:
        """Return whether a server may have an address."""
        return origin not in self._guarded or is_external(host)
