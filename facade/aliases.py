"""The other paths of the endpoints: `/v1/…` answers as `/beta/v1/…` does.

Some clients have OpenAI's or Anthropic's paths built in, and are given no more than a host. Logs
and metrics name both by the path under `/beta`.
"""

from collections.abc import Iterable, Iterator

from aiohttp import web

_BETA = "/beta"
_ALIASED = f"{_BETA}/v1"
_ALIAS = "/v1"


def names_of(path: str) -> Iterator[str]:
    """Return the paths that name what `path` does, or what begins with it; `path` first."""
    yield path
    if f"{path}/".startswith(f"{_ALIASED}/"):
        yield path.removeprefix(_BETA)


def route_of(path: str) -> str:
    """Return the path of a route by either of its names."""
    return _BETA + path if f"{path}/".startswith(f"{_ALIAS}/") else path


def with_aliases(routes: Iterable[web.RouteDef]) -> Iterator[web.RouteDef]:
    """Return routes, each under all of its paths."""
    for route in routes:
        for path in names_of(route.path):
            yield web.RouteDef(route.method, path, route.handler, route.kwargs)
