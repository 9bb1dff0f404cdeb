"""Check whether URLs may be fetched. Pure."""

import re
from collections.abc import Container
from typing import NamedTuple

from yarl import URL

from services.common.errors import GatewayError, invalid
from services.common.http import Origin, origin_of

# Ports of public web servers. Other ports are not allowed: fetches could scan ports of other
# machines, and send lines to mail, cache and database servers that trust the gateway's address.
WEB_PORTS = frozenset({80, 443, 8080, 8443})

_MAX_URL = 8_192  # characters, the common limit of servers
_MAX_HOST = 253  # of a DNS name
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")
# Characters sent unchanged: signed URLs must not be rewritten.
_SENDABLE = re.compile(r"[!-~]+")


class FetchTarget(NamedTuple):
    """A checked URL.

    Attributes:
        url: the URL without its fragment.
        origin: the server, without a dot at the end of the host.
        path: path and query, as sent.
    """

    url: URL
    origin: Origin
    path: str


def target_of(url: str, ports: Container[int]) -> FetchTarget:
    """Check and parse a URL.

    Raises:
        GatewayError: invalid_request, if it may not be fetched.
    """
    parsed = _parse(url)
    if parsed.scheme not in ("http", "https"):
        raise invalid("", "the URL must begin with http:// or https://")
    # The user and password parsed by libraries do not always match the text.
    if "@" in parsed.raw_authority:
        raise invalid("", "the URL must not contain a user name or password")
    host = (parsed.raw_host or "").rstrip(".").lower()
    if len(host) > _MAX_HOST or not _HOST.fullmatch(host):
        raise invalid("", "the host of the URL must be a host name or an IP address")
    path = parsed.raw_path_qs
    if not _SENDABLE.fullmatch(path):
        raise invalid("", "the address is not a valid URL")
    origin = origin_of(parsed)._replace(host=host)
    if origin.port not in ports:
        raise invalid("", "the port of the URL must be 80, 443, 8080 or 8443")
    return FetchTarget(parsed, origin, path)


def redirected(before: FetchTarget, location: str, ports: Container[int]) -> FetchTarget:
    """Check and parse the target of a redirect.

    A redirect from https to http is rejected: the caller asked for an encrypted connection.

    Raises:
        GatewayError: invalid_request, if it may not be followed. The message does not contain the
            target, which may be secret.
    """
    try:
        after = target_of(str(before.url.join(_parse(location))), ports)
    except (GatewayError, ValueError):
        raise invalid("", "the URL redirects to an address that may not be fetched") from None
    if before.origin.is_secure and not after.origin.is_secure:
        raise invalid("", "the URL redirects from https to http, which is not followed")
    return after


def _parse(text: str) -> URL:
    text = text.partition("#")[0]
    if len(text) > _MAX_URL:
        raise invalid("", f"the URL has more than {_MAX_URL:,} characters")
    try:
        url = URL(text, encoded=_SENDABLE.fullmatch(text) is not None)
        _ = url.port  # parsed lazily
    except ValueError:
        raise invalid("", "the address is not a valid URL") from None
    return url
