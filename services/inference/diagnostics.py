"""Mistakes in settings that are well-formed: names that lead nowhere, keys that are missing."""

from collections.abc import Iterator, Mapping

from services.common.errors import GatewayError
from services.common.settings import Settings
from services.inference import discovery
from services.inference.providers import sandbox
from services.inference.routing import Models


def problems(settings: Settings, environ: Mapping[str, str]) -> list[str]:
    """Return what an operator probably did not mean, one line each.

    A gateway starts all the same: keys may come later, and models of local servers are
    known only once these answer. Names of their models (`ollama/…`) are not reported.
    """
    return [*_missing_keys(settings, environ), *_unknown_models(settings, environ)]


def _missing_keys(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    for name, provider in settings.providers.items():
        if variable := provider.missing_key(environ):
            yield (
                f"providers.{name}.api_key_env: the variable {variable} is not set, "
                "so that requests to this provider are refused"
            )


def _unknown_models(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    providers = discovery.configured(settings, environ)
    if settings.discovery.enabled:
        providers = {**discovery.local_servers(settings.server), **providers}
    models = Models(settings.models, providers, sandbox.MODELS, {})
    named = {
        f"models.{model.name}.fallbacks[{index}]": fallback
        for model in settings.models
        for index, fallback in enumerate(model.fallbacks)
    }
    for task, model_name in settings.roles:
        if model_name:
            named[f"roles.{task}"] = model_name
    for path, model_name in named.items():
        try:
            models.resolve(model_name)
        except GatewayError:
            yield f"{path}: no model is called {model_name!r}"
