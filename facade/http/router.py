"""Finds the endpoint of a request by its method and path.

The path of a route may have variables: `{name}` matches one segment, and `{name:.+}`, at the end,
any number of segments. Of several matching routes the one with the longest fixed beginning wins. A
route for GET also serves HEAD.

Endpoints have one spelling each. A percent-encoded unreserved character is equivalent to the
character itself (RFC 3986, section 6.2.2.2), but proxies that restrict paths by prefix may compare
them as they are sent. So fixed segments must not be encoded; names and ids in a path may be, in any
way.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, NamedTuple, Self

from aiohttp import hdrs
from yarl import URL

from facade.http.exchange import Exchange
from facade.http.responses import Response

Endpoint = Callable[[Exchange], Awaitable[Response]]

# A variable of a path, with the pattern of its values if these are no single segment.
VARIABLE = re.compile(r"\{(\w+)(?::(\.[*+]))?\}")
_SEGMENT: Final = "[^{}/]+"
# A letter, digit, "-", ".", "_" or "~".
_ENCODED_UNRESERVED = re.compile("%(?:[46][1-9A-F]|[57][0-9A]|3[0-9]|2[DE]|5F|7E)", re.IGNORECASE)
_NO_VALUES: Mapping[str, str] = {}


class Route(NamedTuple):
    """An endpoint with its method and path."""

    method: str
    path: str
    endpoint: Endpoint

    @classmethod
    def get(cls, path: str, endpoint: Endpoint) -> Self:
        """Return a route for GET."""
        return cls(hdrs.METH_GET, path, endpoint)

    @classmethod
    def post(cls, path: str, endpoint: Endpoint) -> Self:
        """Return a route for POST."""
        return cls(hdrs.METH_POST, path, endpoint)

    @classmethod
    def delete(cls, path: str, endpoint: Endpoint) -> Self:
        """Return a route for DELETE."""
        return cls(hdrs.METH_DELETE, path, endpoint)


class Match(NamedTuple):
    """The result of a search for an endpoint.

    Attributes:
        endpoint: the endpoint; None if the path is unknown, or does not allow the method.
        path: the path of the route, with the names of its variables; "" without an endpoint.
        values: the decoded values of the variables.
        allowed: the methods that the path allows, if it does not allow the one of the request.
        is_encoded: whether a fixed segment of the path is percent-encoded.
    """

    endpoint: Endpoint | None = None
    path: str = ""
    values: Mapping[str, str] = _NO_VALUES
    allowed: frozenset[str] = frozenset()
    is_encoded: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the path is that of an endpoint, perhaps for another method."""
        return self.endpoint is not None or bool(self.allowed)


class _Resource:
    """The endpoints of one path, by method."""

    def __init__(self, path: str) -> None:
        self.path = VARIABLE.sub(r"{\1}", path)
        self.endpoints: dict[str, Endpoint] = {}
        self._pattern = _pattern(path) if "{" in path else None
        self._suffix = path.rpartition("}")[2]  # behind the last variable

    def values(self, path: str) -> Mapping[str, str] | None:
        """Return the values of the variables in a path, or None if it does not match."""
        if self._pattern is None:
            return _NO_VALUES if path == self.path else None
        match = self._pattern.fullmatch(path)
        if match is None:
            return None
        return {
            name: value.replace("%2F", "/").replace("%25", "%")
            for name, value in match.groupdict().items()
        }

    def is_encoded(self, raw_path: str) -> bool:
        """Return whether a fixed segment of a matching path is percent-encoded."""
        # A variable that matches several segments is the last one.
        return not raw_path.endswith(self._suffix) or any(
            fixed != sent
            for fixed, sent in zip(self.path.split("/"), raw_path.split("/"), strict=False)
            if not fixed.startswith("{")
        )


def _unchanged(path: str) -> str:
    return path


class Router:
    """The routes of a listener.

    Args:
        routes: the endpoints.
        path_of_alias: returns the path of an endpoint for an alias of it, and others unchanged.
    """

    def __init__(
        self, routes: Iterable[Route], path_of_alias: Callable[[str], str] = _unchanged
    ) -> None:
        self._path_of_alias = path_of_alias
        resources: dict[str, _Resource] = {}
        for route in routes:
            resource = resources.setdefault(route.path, _Resource(route.path))
            resource.endpoints[route.method] = route.endpoint
            if route.method == hdrs.METH_GET:
                resource.endpoints[hdrs.METH_HEAD] = route.endpoint
        self._resources: dict[str, list[_Resource]] = {}
        for path, resource in resources.items():
            self._resources.setdefault(_beginning(path), []).append(resource)

    def find(self, method: str, url: URL) -> Match:
        """Return the endpoint for a method and a relative URL."""
        # Without encoded characters, except for slashes and percent signs.
        path, raw_path = map(self._path_of_alias, (url.path_safe, url.raw_path))
        allowed: set[str] = set()
        beginning = path
        while beginning:
            for resource in self._resources.get(beginning, ()):
                values = resource.values(path)
                if values is None:
                    continue
                if endpoint := resource.endpoints.get(method):
                    is_encoded = "%" in raw_path and resource.is_encoded(raw_path)
                    return Match(endpoint, resource.path, values, is_encoded=is_encoded)
                allowed |= resource.endpoints.keys()
            beginning = beginning.rpartition("/")[0] or ("/" if len(beginning) > 1 else "")
        # Of which of these routes the fixed segments would count is not known.
        is_encoded = bool(allowed) and _ENCODED_UNRESERVED.search(raw_path) is not None
        return Match(allowed=frozenset(allowed), is_encoded=is_encoded)


def _pattern(path: str) -> re.Pattern[str]:
    """Return the pattern of a path with variables."""
    pattern, end = "", 0
    for variable in VARIABLE.finditer(path):
        name, values = variable.groups()
        pattern += f"{re.escape(path[end : variable.start()])}(?P<{name}>{values or _SEGMENT})"
        end = variable.end()
    return re.compile(pattern + re.escape(path[end:]))


def _beginning(path: str) -> str:
    """Return a path without trailing slash, up to the segment of its first variable."""
    fixed, variable, _ = path.partition("{")
    if variable:
        fixed = fixed.rpartition("/")[0]
    return fixed.rstrip("/") or "/"
