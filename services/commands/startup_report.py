"""What `gateway up` prints first: what it has read, what it serves, and what is missing."""

import http.client
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from services.common import extras
from services.common.settings import SANDBOX, Provider, Settings, effective_providers
from services.common.settings.environment import CONFIG_VARIABLE, ENVIRONMENT
from services.common.settings.loading import DEFAULT_FILE
from services.common.version import VERSION

# A local server that accepts connections but does not answer must not delay the start for long.
_PROBE_TIMEOUT_S = 0.5
_MAX_LIST_BYTES = 1 << 20
_SHOWN_NAMES = 5
_CONSOLE = Path(__file__).parents[2] / "facade" / "console" / "dist" / "index.html"


def startup_report(settings: Settings, environ: Mapping[str, str] = os.environ) -> str:
    """Return a text of several lines; looks for servers on this machine."""
    locals_found = _local_models(settings) if settings.discovery.enabled else {}
    rows = [
        ("Settings", _sources(environ)),
        *_labelled("Providers", _providers(settings, environ, locals_found)),
        ("Models", _models(settings)),
        ("Storage", _storage(settings)),
        ("Console", "built" if _CONSOLE.exists() else "not built yet: `make console` builds it"),
        *_labelled("Missing", _missing(settings, environ, locals_found)),
    ]
    width = max(len(label) for label, _ in rows)
    return "\n".join([f"Gateway {VERSION}", *(f"  {a.ljust(width)}  {b}" for a, b in rows)])


def _labelled(label: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return rows of which the first has the label."""
    return [("" if index else label, text) for index, text in enumerate(texts)]


def _sources(environ: Mapping[str, str]) -> str:
    """Return which file and variables the settings come from."""
    file = environ.get(CONFIG_VARIABLE, "") or (str(DEFAULT_FILE) if DEFAULT_FILE.exists() else "")
    variables = [name for name in ENVIRONMENT if environ.get(name)]
    if not file and not variables:
        return f"defaults: there is no {DEFAULT_FILE} here; `gateway config example` prints one"
    return ", ".join([str(Path(file).absolute()) if file else "defaults", *variables])


def _providers(
    settings: Settings, environ: Mapping[str, str], locals_found: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return a line for each provider, with how it was found."""
    lines = [
        f"{name} ({_origin(name, provider, settings, environ)})"
        for name, provider in effective_providers(settings, environ).items()
    ]
    for name, models in locals_found.items():
        if name not in settings.providers:
            lines.append(f"{name} (found by its port): {_some(models) or 'no models yet'}")
    return lines or ["none"]


def _origin(name: str, provider: Provider, settings: Settings, environ: Mapping[str, str]) -> str:
    if provider.kind == SANDBOX and name not in settings.providers:
        return "built in, for trying: sandbox/echo"
    if variable := provider.missing_key(environ):
        return f"from the settings, but {variable} is not set"
    if name in settings.providers:
        return f"from the settings, {provider.base_url or provider.kind}"
    return f"by {provider.api_key_env}, {provider.base_url}"


def _models(settings: Settings) -> str:
    every = "every model of these providers as PROVIDER/MODEL"
    names = [model.name for model in settings.models]
    return f"{_some(names)}; and {every}" if names else every


def _storage(settings: Settings) -> str:
    storage = settings.storage
    database = "PostgreSQL" if storage.database_url else "SQLite"
    files = f"files in {storage.blob_url}" if storage.blob_url else "files in a folder"
    return f"{database}, {files}; data folder {storage.data_dir.absolute()}"


def _missing(
    settings: Settings, environ: Mapping[str, str], locals_found: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return what a gateway may have and this one has not, with how to add it."""
    lines = []
    providers = effective_providers(settings, environ)
    if not locals_found and all(one.kind == SANDBOX for one in providers.values()):
        lines.append(
            "a provider: set a key, such as OPENAI_API_KEY (`gateway providers` lists the names), "
            "or start Ollama, vLLM or llama-server"
        )
    for name in extras.missing(extras.EXTRAS):
        lines.append(f"extra {name}: {extras.EXTRAS[name].without}; {extras.how_to_add(name)}")
    return lines


def _local_models(settings: Settings) -> dict[str, list[str]]:
    """Return the model names of each local server that answers."""
    from services.common.settings.local_servers import local_servers

    models_of_servers = {}
    for name, provider in local_servers(settings.server).items():
        models = _listed(provider.base_url)
        if models is not None:
            models_of_servers[name] = models
    return models_of_servers


def _listed(url: str) -> list[str] | None:
    """Return the models that a server lists; None if it is no such server, or does not answer."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=_PROBE_TIMEOUT_S)
    try:
        connection.request("GET", f"{parts.path}/models")
        response = connection.getresponse()
        listed = json.loads(response.read(_MAX_LIST_BYTES)) if response.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    match listed:
        case {"data": [*models]}:
            return [one["id"] for one in models if isinstance(one, dict) and "id" in one]
    return None


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN_NAMES])
    more = len(names) - _SHOWN_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
