"""The providers of a gateway: of its settings, its environment and its database, and the sandbox.

Local servers are none of them: they come and go while a gateway runs, which never changes whether
the sandbox is present.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from services.common.key_format import is_key
from services.common.settings.clouds import chosen_clouds
from services.common.settings.presets import PRESETS
from services.common.settings.providers import Provider
from services.common.settings.sections import Server

if TYPE_CHECKING:
    from services.common.settings.loading import Settings

# The built-in sandbox: its name, and the kind of all sandboxes.
SANDBOX: Final = "sandbox"
_NONE: Mapping[str, Provider] = MappingProxyType({})


def from_environment(environ: Mapping[str, str], server: Server) -> dict[str, Provider]:
    """Return the providers whose key, or choice, is in the environment.

    The same variables configure clients of this gateway. Keys of a gateway and the gateway's own
    URL are therefore ignored, as requests would loop.
    """
    providers = {}
    for name, preset in PRESETS.items():
        variable, url = preset.set_key_variable(environ), preset.address(environ)
        key = environ.get(variable, "")
        if key and url and not (is_key(key) or server.is_at(url)):
            fields = {"kind": preset.kind, "base_url": url, "api_key_env": variable}
            providers[name] = Provider.model_validate(fields)
    for name, section in chosen_clouds(environ).items():
        if not server.is_at(section.get("base_url", "")):
            providers[name] = Provider.model_validate(section)
    return providers


def effective_providers(
    settings: "Settings", environ: Mapping[str, str], stored: Mapping[str, Provider] = _NONE
) -> dict[str, Provider]:
    """Return the providers of settings, environment and database, and the sandbox if present.

    The settings take precedence over the environment, and both over the database. By default, the
    sandbox is present if all other providers are sandboxes too, or if a model of the settings was
    the sandbox's before administrators stored a provider.
    """
    discovered = from_environment(environ, settings.server) if settings.discovery.enabled else {}
    ruling = {**discovered, **settings.providers}
    providers = {**stored, **ruling}
    is_present = settings.sandbox.enabled
    if is_present is None:
        names_it = any(place.provider == SANDBOX for _, place in settings.deployments())
        is_present = not _real(ruling if names_it else providers)
    return {SANDBOX: Provider(kind=SANDBOX), **providers} if is_present else providers


def missing_sandbox(settings: "Settings", environ: Mapping[str, str]) -> list[str]:
    """Return one line for each model of the settings that is the sandbox's, if that is absent."""
    providers = effective_providers(settings, environ)
    if SANDBOX in providers:
        return []
    remedy = sandbox_remedy(settings, providers)
    return [
        f"{path}: {remedy}" for path, place in settings.deployments() if place.provider == SANDBOX
    ]


def sandbox_remedy(settings: "Settings", providers: Mapping[str, Provider]) -> str:
    """Return why the sandbox is absent, and what to change if a model of it is wanted."""
    if settings.sandbox.enabled is False:
        return (
            "the sandbox is disabled by `enabled = false` in [sandbox]; remove that line, or use "
            "a model of another provider"
        )
    return (
        f"the sandbox is absent because of a real provider ({', '.join(_real(providers))}); set "
        "`enabled = true` in [sandbox], or use a model of another provider"
    )


def _real(providers: Mapping[str, Provider]) -> list[str]:
    """Return the names of the providers that are no sandboxes."""
    return [name for name, provider in providers.items() if provider.kind != SANDBOX]
