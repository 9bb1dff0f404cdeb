"""Aliases of endpoint paths: `/v1/…` is the same as `/beta/v1/…`.

Some clients have OpenAI's or Anthropic's paths built in, and only their host can be configured.
Logs and metrics use the path under `/beta` for both.
"""

from collections.abc import Iterator

_BETA = "/beta"
_ALIASED = f"{_BETA}/v1"
_ALIAS = "/v1"


def names_of(path: str) -> Iterator[str]:
    """Yield a path, or a prefix of paths, and then its alias, if any."""
    yield path
    if f"{path}/".startswith(f"{_ALIASED}/"):
        yield path.removeprefix(_BETA)


def route_of(path: str) -> str:
    """Return the path of a route under `/beta`; `path` may be an alias."""
    return _BETA + path if f"{path}/".startswith(f"{_ALIAS}/") else path
