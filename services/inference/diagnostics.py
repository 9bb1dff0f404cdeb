"""Warnings about valid but suspicious settings: unknown names and missing keys."""

from collections.abc import Collection, Iterator, Mapping

from services.common.errors import GatewayError
from services.common.key_format import is_key
from services.common.settings import (
    SANDBOX,
    Settings,
    WebSearch,
    effective_providers,
    sandbox_remedy,
)
from services.inference import discovery
from services.inference.adaptation.helpers import EMBEDDED
from services.inference.providers import embedded, sandbox
from services.inference.refusals import NAMES
from services.inference.routing import Models

# Efforts of the catalogue's models.
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# Tasks with an embedded implementation that can replace a model.
_EMBEDDED_TASKS = ("describe_image", "transcribe_audio")


def problems(settings: Settings, environ: Mapping[str, str]) -> list[str]:
    """Return probable mistakes in settings, one line each.

    They do not prevent a start: keys may be added later, and models of local servers are only known
    once these respond. Names of their models (`ollama/…`) are not reported.
    """
    return [
        *_missing_keys(settings, environ),
        *_missing_search_key(settings.tools.web_search, environ),
        *_unknown_models(settings, environ),
    ]


def warnings(settings: Settings, environ: Mapping[str, str]) -> list[str]:
    """Return warnings about settings that are mistakes in most deployments, one line each."""
    return [
        *_own_keys(settings, environ),
        *_misspelt_names(settings),
        *_fallbacks_of_other_spaces(settings),
        *_deployments_with_state(settings),
    ]


def _deployments_with_state(settings: Settings) -> Iterator[str]:
    for model in settings.models:
        for index, one in enumerate(model.deployments):
            provider = settings.providers.get(one.provider)
            if len(model.deployments) > 1 and provider is not None and provider.pass_stateful:
                yield (
                    f"models.{model.name}.deployments[{index}]: the provider {one.provider!r} has "
                    "pass_stateful, but objects that callers store there are unknown to the other "
                    "deployments; use a model with one deployment for them"
                )


def _fallbacks_of_other_spaces(settings: Settings) -> Iterator[str]:
    spaces = {model.name: model.vector_space for model in settings.models}
    for model in settings.models:
        for index, fallback in enumerate(model.fallbacks):
            if model.vector_space and spaces.get(fallback) != model.vector_space:
                yield (
                    f"models.{model.name}.fallbacks[{index}]: {fallback!r} is skipped for "
                    f"embeddings, because its vector_space is not {model.vector_space!r}"
                )


def _own_keys(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    for name, provider in settings.providers.items():
        if is_key(provider.key(environ)):
            field = "api_key" if provider.api_key.get_secret_value() else "api_key_env"
            yield (
                f"providers.{name}.{field}: this is a gateway's key (gw-...), not a provider's, "
                f"unless {provider.base_url} is another gateway"
            )


def _misspelt_names(settings: Settings) -> Iterator[str]:
    for model in settings.models:
        for field, given, known in (
            ("refuses", model.refuses, NAMES),
            ("efforts", model.efforts, EFFORTS),
        ):
            for index, name in enumerate(given or ()):
                if close := _probably_meant(name, known):
                    yield (
                        f"models.{model.name}.{field}[{index}]: {name!r} is ignored unless the "
                        f"provider supports it; did you mean {close}?"
                    )


def _probably_meant(name: str, known: Collection[str]) -> str:
    """Return the known name that resembles an unknown one, or "".

    Fields and efforts of other providers usually resemble none of them.
    """
    # Imported on demand: most settings have no mistakes.
    from difflib import get_close_matches

    close = () if name in known else get_close_matches(name, sorted(known), n=1, cutoff=0.7)
    return close[0] if close else ""


def _missing_keys(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    for name, provider in settings.providers.items():
        if variable := provider.missing_key(environ):
            yield (
                f"providers.{name}.api_key_env: the variable {variable} is not set; requests to "
                "this provider will be rejected"
            )


def _missing_search_key(search: WebSearch, environ: Mapping[str, str]) -> Iterator[str]:
    if search.key_variable and not search.key(environ):
        yield (
            f"tools.web_search.api_key_env: the variable {search.key_variable} is not set; "
            "searches will be rejected"
        )


def _unknown_models(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    providers = effective = effective_providers(settings, environ)
    if settings.discovery.enabled:
        providers = {**discovery.local_servers(settings.server), **providers}
    models = Models(
        settings.models, providers, sandbox.MODELS, {}, embedded=embedded.embedded_models()
    )
    named = {
        f"models.{model.name}.fallbacks[{index}]": fallback
        for model in settings.models
        for index, fallback in enumerate(model.fallbacks)
    }
    for task, model_name in settings.roles:
        if model_name and not (task in _EMBEDDED_TASKS and model_name == EMBEDDED):
            named[f"roles.{task}"] = model_name
    for path, model_name in named.items():
        try:
            models.resolve(model_name)
        except GatewayError:
            of_sandbox = model_name.startswith(f"{SANDBOX}/") and SANDBOX not in effective
            remedy = f": {sandbox_remedy(settings, effective)}" if of_sandbox else ""
            yield f"{path}: unknown model {model_name!r}{remedy}"
