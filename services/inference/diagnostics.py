"""Warnings about valid but suspicious settings: unknown names and missing keys."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence

from yarl import URL

from services.common.errors import GatewayError
from services.common.key_format import is_key
from services.common.settings import (
    SANDBOX,
    Settings,
    WebSearch,
    effective_providers,
    sandbox_remedy,
)
from services.common.settings.environment import unknown_variables
from services.common.settings.local_servers import local_servers
from services.inference.adaptation.helpers import EMBEDDED
from services.inference.facts import base_urls
from services.inference.learned.refusals import NAMES
from services.inference.models.routing import Models
from services.inference.providers import embedded, sandbox

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
        *unknown_variables(environ, _named_variables(settings)),
        *_own_keys(settings, environ),
        *_wrong_paths(settings),
        *_misspelt_names(settings),
        *_own_fallbacks(settings),
        *_unfit_roles(settings),
        *_fallbacks_of_other_spaces(settings),
        *_deployments_with_state(settings),
    ]


def notes(settings: Settings) -> list[str]:
    """Return remarks about settings that are right, but may not be what was meant.

    They are for who checks the settings, not for the log of every start.
    """
    used = {place.provider for model in settings.models for place in model.served_by}
    unused = [
        f"providers.{name}: no [[models]] uses it; its models have the names {name}/…"
        for name in settings.providers
        if settings.models and name not in used
    ]
    return [*unused, *_circles(settings)]


def _named_variables(settings: Settings) -> set[str]:
    """Return the variables that the settings name."""
    providers = settings.providers.values()
    search = settings.tools.web_search
    admin_keys = (settings.admin, *settings.admin.keys)
    variables = (key.key_env for key in admin_keys)
    variables_of_secrets = (
        search.key_variable,
        settings.budgets.webhook_secret_env,
        settings.console.oidc.client_secret_env,
        settings.stored_providers.encryption_keys_env,
    )
    return {*variables_of_secrets, *variables, *(one.api_key_env for one in providers)}


def _wrong_paths(settings: Settings) -> Iterator[str]:
    for name, provider in settings.providers.items():
        if right := base_urls.without_endpoint(provider.kind, provider.base_url):
            yield (
                f"providers.{name}.base_url: ends in the path of an endpoint; use "
                f"{URL(right).with_user(None)}"
            )


def _circles(settings: Settings) -> Iterator[str]:
    """Yield a remark for each circle of models that are fallbacks of each other.

    Two models that replace each other are right; who expects fallbacks of fallbacks is not.
    """
    fallbacks = {model.name: model.fallbacks for model in settings.models}
    reported: set[frozenset[str]] = set()
    for name in fallbacks:
        circle = _circle_from(name, fallbacks)
        if len(circle) < 2 or frozenset(circle) in reported:
            continue
        reported.add(frozenset(circle))
        yield (
            f"models.{name}.fallbacks: a circle ({' -> '.join([*circle, name])}); a request uses "
            "only the fallbacks of the model that it names, not theirs: list in each model all of "
            "its fallbacks"
        )


def _own_fallbacks(settings: Settings) -> Iterator[str]:
    for model in settings.models:
        if model.name in model.fallbacks:
            yield f"models.{model.name}.fallbacks: a model cannot be its own fallback"


def _circle_from(start: str, fallbacks: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the shortest way over other models back to a model, without its end, or []."""
    before: dict[str, str] = {}
    pending = deque([start])
    while pending:
        name = pending.popleft()
        for following in fallbacks.get(name, ()):
            if following == start and name != start:
                way = [name]
                while way[-1] != start:
                    way.append(before[way[-1]])
                return way[::-1]
            if following != start and following not in before:
                before[following] = name
                pending.append(following)
    return []


def _unfit_roles(settings: Settings) -> Iterator[str]:
    by_name = {model.name: model for model in settings.models}
    seer = by_name.get(settings.roles.describe_image)
    if seer is not None and seer.inputs is not None and "image" not in seer.inputs:
        yield (
            f"roles.describe_image: {seer.name!r} reads no images; its inputs are "
            f"{', '.join(seer.inputs)}"
        )
    listener = by_name.get(settings.roles.transcribe_audio)
    kinds = {
        settings.providers[place.provider].kind
        for place in (listener.served_by if listener else ())
        if place.provider in settings.providers
    }
    if kinds - {"openai", "sandbox"}:
        yield (
            f"roles.transcribe_audio: {settings.roles.transcribe_audio!r} is not of a provider of "
            "kind openai, and cannot transcribe"
        )


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
        for field, names, valid_names in (
            ("refuses", model.refuses, NAMES),
            ("efforts", model.efforts, EFFORTS),
        ):
            for index, name in enumerate(names or ()):
                if close := _probably_meant(name, valid_names):
                    yield (
                        f"models.{model.name}.{field}[{index}]: {name!r} is ignored unless the "
                        f"provider supports it; did you mean {close}?"
                    )


def _probably_meant(name: str, valid_names: Collection[str]) -> str:
    """Return the known name that resembles an unknown one, or "".

    Fields and efforts of other providers usually resemble none of them.
    """
    # Imported on demand: most settings have no mistakes.
    from difflib import get_close_matches

    close = (
        () if name in valid_names else get_close_matches(name, sorted(valid_names), n=1, cutoff=0.7)
    )
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
        providers = {**local_servers(settings.server), **providers}
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
