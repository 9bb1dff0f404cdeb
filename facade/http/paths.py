"""Paths of endpoints, which have one spelling each.

A percent-encoded unreserved character is equivalent to the character itself (RFC 3986, section
6.2.2.2), and aiohttp finds the same endpoint for both. Proxies that restrict paths by prefix may
compare them as they are sent, so that only the plain spelling is an endpoint's. Names and ids in a
path may be encoded in any way.
"""

import re

from aiohttp import web

# A letter, digit, "-", ".", "_" or "~".
_ENCODED_UNRESERVED = re.compile("%(?:[46][1-9A-F]|[57][0-9A]|3[0-9]|2[DE]|5F|7E)", re.IGNORECASE)


def is_encoded(request: web.Request) -> bool:
    """Return whether a fixed segment of an endpoint's path is percent-encoded.

    Fixed segments consist of unreserved characters. If the endpoint has other methods, aiohttp does
    not tell which segments are fixed, and these characters may be encoded in none.
    """
    path = request.rel_url.raw_path
    if "%" not in path:
        return False
    match = request.match_info
    resource = match.route.resource
    if resource is None:
        is_known = isinstance(match.http_exception, web.HTTPMethodNotAllowed)
        return is_known and _ENCODED_UNRESERVED.search(path) is not None
    # A variable that matches several segments is the last one.
    return any(
        fixed != sent
        for fixed, sent in zip(resource.canonical.split("/"), path.split("/"), strict=False)
        if not fixed.startswith("{")
    )
