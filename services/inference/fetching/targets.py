"""Which URLs are fetched. Pure."""

import re
from collections.abc import Container
from typing import NamedTuple

from yarl import URL

from services.common.errors import GatewayError, invalid
from services.inference.http import Origin, origin_of

# Web servers are at these ports, as good as all that are meant for the public. At any other, a
# fetch would be a way to try which ports of someone else's machine are open, and to send lines
# to servers of mail, caches and databases that trust the gateway's address.
WEB_PORTS = frozenset({80, 443, 8080, 8443})

_MAX_URL = 8_192  # characters, as much as servers commonly take
_MAX_HOST = 253  # of a name in the DNS
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")
# What goes on the wire as it is. Many addresses are signed and must not be rewritten.
_SENDABLE = re.compile(r"[!-~]+")


class Target(NamedTuple):
    """What is asked for, and where.

    Attributes:
        url: without a fragment.
        origin: the server; its host without a dot at its end.
        path: with the query, as they go on the wire.
    """

    url: URL
    origin: Origin
    path: str


def target_of(url: str, ports: Container[int]) -> Target:
    """Return what a URL asks for.

    Raises:
        GatewayError: invalid_request, when it is not one that is fetched.
    """
    parsed = _parse(url)
    if parsed.scheme not in ("http", "https"):
        raise invalid("", "the address takes http or https")
    # What libraries tell of user and password is not always what stands there.
    if "@" in parsed.raw_authority:
        raise invalid("", "the address takes no user name or password")
    host = (parsed.raw_host or "").rstrip(".").lower()
    if len(host) > _MAX_HOST or not _HOST.fullmatch(host):
        raise invalid("", "the address takes the name or the IP address of a host")
    path = parsed.raw_path_qs
    if not _SENDABLE.fullmatch(path):
        raise invalid("", "the address is not a URL")
    origin = origin_of(parsed)._replace(host=host)
    if origin.port not in ports:
        raise invalid("", "the address takes the ports 80, 443, 8080 and 8443 alone")
    return Target(parsed, origin, path)


def redirected(before: Target, location: str, ports: Container[int]) -> Target:
    """Return what a redirect leads to.

    From https it must not lead to http: the caller asked for content that nobody on the way
    has read or changed.

    Raises:
        GatewayError: invalid_request, when it is not one that is followed. The message does
            not say where it leads, which may be known to the server alone.
    """
    try:
        after = target_of(str(before.url.join(_parse(location))), ports)
    except (GatewayError, ValueError):
        raise invalid("", "the address redirects to one that is not fetched") from None
    if before.origin.is_secure and not after.origin.is_secure:
        raise invalid("", "the address redirects from https to http, which is not followed")
    return after


def _parse(text: str) -> URL:
    text = text.partition("#")[0]
    if len(text) > _MAX_URL:
        raise invalid("", f"the address has more than {_MAX_URL:,} characters")
    try:
        url = URL(text, encoded=_SENDABLE.fullmatch(text) is not None)
        _ = url.port  # looked at no sooner
    except ValueError:
        raise invalid("", "the address is not a URL") from None
    return url
