"""The paths that need no key."""

from facade.aliases import names_of

CONSOLE = "/console"
# Base URLs that clients are configured with; some clients send HEAD first.
BASE_PATHS = tuple(
    f"{path}{slash}"
    for path in ("/beta", "/beta/v1", "/coding", "/coding/v1")
    for slash in ("", "/")
)
_PUBLIC = frozenset(
    {
        *("/", CONSOLE, "/healthz", "/readyz", "/openapi.json", "/docs"),
        *(name for path in BASE_PATHS for name in names_of(path)),
    }
)


def is_public(path: str) -> bool:
    """Return whether a path needs no key."""
    return path in _PUBLIC or path.startswith(f"{CONSOLE}/")
