"""The environment variables `GATEWAY_…`: which keys they set, and which are unknown."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

CONFIG_VARIABLE: Final = "GATEWAY_CONFIG"
# Environment variables that override the file, with the key that each one sets.
ENVIRONMENT: Mapping[str, tuple[str, str]] = {
    "GATEWAY_HOST": ("server", "host"),
    "GATEWAY_PORT": ("server", "port"),
    "GATEWAY_METRICS_PORT": ("server", "metrics_port"),
    "GATEWAY_GRPC": ("server", "grpc"),
    "GATEWAY_DATA_DIR": ("storage", "data_dir"),
    "GATEWAY_DATABASE_URL": ("storage", "database_url"),
    "GATEWAY_DATABASE_URL_FILE": ("storage", "database_url_file"),
    "GATEWAY_BLOB_URL": ("storage", "blob_url"),
}
_PREFIX = "GATEWAY_"
# The documentation has clients read their key and the address from these.
_OF_CLIENTS = frozenset({"GATEWAY_KEY", "GATEWAY_URL"})
# Kubernetes sets such variables for a service named "gateway".
_OF_KUBERNETES = re.compile(r"GATEWAY_(?:SERVICE_(?:HOST|PORT\w*)|PORT_\d+_\w+)", re.ASCII)
_PORT_OF_KUBERNETES = re.compile(r"\w+://\S+:\d+", re.ASCII)


def unknown_variables(environ: Mapping[str, str], named: Collection[str]) -> Iterator[str]:
    """Yield a message for each set variable `GATEWAY_…` that has no effect.

    Args:
        environ: the environment.
        named: variables that the settings name, such as those of keys.
    """
    effective = {*ENVIRONMENT, CONFIG_VARIABLE}
    for name in sorted(environ):
        if not name.startswith(_PREFIX) or name in effective or name in named:
            continue
        if name in _OF_CLIENTS or _OF_KUBERNETES.fullmatch(name):
            continue
        from difflib import get_close_matches  # imported on demand: most have no such variable

        close = get_close_matches(name, sorted(effective), n=1, cutoff=0.8)
        meant = f"; did you mean {close[0]}?" if close else ""
        yield f"{name}: unknown variable, which has no effect{meant}"


def advice_for(variable: str, value: str) -> str:
    """Return what to do about a wrong value of a variable, or ""."""
    if variable == "GATEWAY_PORT" and _PORT_OF_KUBERNETES.fullmatch(value):
        return (
            "; Kubernetes sets this for a service named gateway: set enableServiceLinks: false in "
            "the pod, or rename the service"
        )
    return ""
