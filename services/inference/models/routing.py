"""Resolve model names of callers to models of providers.

A name is, in this order: a configured name or wildcard (`claude-*`, the longest match wins);
`provider/model`, for any model of an existing provider; or a bare name claimed by exactly one
provider. A wildcard shorter than `provider/` does not match models of that provider.

A provider claims the names of its maker (`gpt-…`, `claude-…`) if it is the maker itself, by its URL
or because it has the maker's name: a local server of the same dialect must not receive requests
meant for OpenAI.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from urllib.parse import urlsplit

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import SubjectLimits
from gateway.conversation.v1.conversation_pb2 import MediaKind
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import inference_pb2
from services.common import settings
from services.common.errors import GatewayError, model_not_found
from services.common.text.texts import MAX_NAME, quoted
from services.inference.allowances.needs import RequestLimits, subject_id
from services.inference.facts import catalogue
from services.inference.facts.catalogue import MEDIA, Abilities, Inputs, ModelInfo
from services.inference.facts.lifecycle import NO_END, ModelLifecycle, seconds_of
from services.inference.facts.model_hints import NamesByLikeness, missing_provider
from services.inference.providers.adapter_keys import adapter_key
from services.inference.providers.base import Deployments, Target

EMBEDDED = "embedded"
# Kinds of providers whose reasoning models always think.
_THINKING_UNASKED = frozenset({"openai", "gemini"})
# Kinds of providers that run tools of other dialects with their own.
_OWN_TOOLS = frozenset({"gemini", "vertex"})
# Size of the cache for unknown names.
_REMEMBERED = 1_000

# Configurable fields of a model, which override the catalogue.
_OVERRIDING = {
    *("inputs", "context_window", "max_output_tokens"),
    *("thinking", "adaptive", "efforts", "refuses", "thinking_off"),
}


class Models:
    """All models that callers can name.

    Args:
        configured: configured models by name.
        providers: the providers by name.
        sandbox: the models of a sandbox, by their names behind that of the provider.
        learnt: model names reported by providers, by provider.
        abilities: media that models of local servers read, as reported by the servers.
        embedded: the gateway's own models, by their names behind `embedded/`.
        may_name: returns whether an error may name a model to the current caller.
        lifecycles: when models end, by provider and the provider's name, as their providers say.
    """

    def __init__(
        self,
        configured: Sequence[settings.Model],
        providers: Mapping[str, settings.Provider],
        sandbox: Mapping[str, ModelInfo],
        learnt: Mapping[str, Sequence[str]],
        abilities: Abilities = MappingProxyType({}),
        embedded: Mapping[str, ModelInfo] = MappingProxyType({}),
        may_name: Callable[[str], bool] = lambda _: True,
        lifecycles: Mapping[tuple[str, str], ModelLifecycle] = MappingProxyType({}),
    ) -> None:
        self._may_name = may_name
        self._lifecycles = lifecycles
        # By provider kind; these providers have no other models.
        self._own = {settings.SANDBOX: sandbox, EMBEDDED: embedded}
        self._abilities = abilities
        own = {EMBEDDED: EMBEDDED} if embedded else {}
        self._kinds = own | {name: one.kind for name, one in providers.items()}
        self._servers = {
            name: catalogue.server_facts(one.kind, one.base_url) for name, one in providers.items()
        }
        # By adapter: not those of Claude at Vertex AI.
        self._native_tools = {
            name: one.native_tools for name, one in providers.items() if one.kind in _OWN_TOOLS
        }
        self._claimants = _claimants(providers)
        self._limits = {name: one.limits for name, one in providers.items() if one.limits}
        self._deployment_limits: dict[tuple[str, str], settings.CallLimits] = {}
        for model in configured:
            for place in model.served_by:
                upstream = place.upstream or ("" if model.is_wildcard else model.name)
                if upstream and place.limits:
                    self._deployment_limits.setdefault((place.provider, upstream), place.limits)
        self._configured = {model.name: model for model in configured}
        # Names that resolve by one lookup: configured, the gateway's own and learnt ones.
        self._targets: dict[str, Target] = {}
        described: list[inference_pb2.Model] = []
        others: list[inference_pb2.Model] = []
        wildcards = [model for model in configured if model.is_wildcard]
        # A longer pattern is more specific, as only its last character is a wildcard.
        self._wildcards = sorted(wildcards, key=lambda model: len(model.name), reverse=True)
        for model in configured:
            if model.is_wildcard:
                continue
            target = self._configured_target(model, model.name)
            self._targets[target.name] = target
            described.append(self._describe(target))
        for offered, listed in self._offered(learnt):
            target = self._of_wildcard(offered.name) or offered
            if self._targets.setdefault(target.name, target) is target and listed:
                others.append(self._describe(target))
        self._offers = {
            (one.provider, one.upstream)
            for target in self._targets.values()
            for one in (target.deployments.targets if target.deployments else (target,))
        }
        # A wildcard with a fixed model resolves only to that model.
        self._offers |= {
            (place.provider, place.upstream)
            for one in wildcards
            for place in one.served_by
            if place.upstream
        }
        self._models = described + sorted(others, key=lambda model: model.name)
        self._by_name = {model.name: model for model in self._models}
        # Cached, as callers repeat the same few names.
        self._find_remembered = lru_cache(_REMEMBERED)(self._find)

    def resolve(self, name: str) -> Target:
        """Return the model for a name.

        Raises:
            GatewayError: model_not_found, also for an ambiguous bare name.
        """
        target = self._targets.get(name)
        if target is not None:
            return target
        if len(name) > MAX_NAME:
            raise model_not_found(name)  # no model's name, and too long to compare
        return self._find_remembered(name)

    def configured(self, name: str) -> settings.Model | None:
        """Return the configured model or wildcard that matches a name, or None."""
        return self._configured.get(name) or self._wildcard_of(name)

    def offers(self, provider: str, upstream: str) -> bool:
        """Return whether a model is configured or reported by its provider."""
        return (provider, upstream) in self._offers

    def offers_name(self, name: str) -> bool:
        """Return whether a name resolves to a model that `offers` returns True for."""
        try:
            target = self.resolve(name)
        except GatewayError:
            return False
        places = target.deployments.targets if target.deployments else (target,)
        return any(self.offers(place.provider, place.upstream) for place in places)

    def _find(self, name: str) -> Target:
        if target := self._of_wildcard(name):
            return target
        provider, slash, upstream = name.partition("/")
        kind = self._kinds.get(provider)
        if slash and upstream and kind is not None and kind not in self._own:
            return self._target(name, provider, upstream)
        claimants = self._claimants.get(catalogue.maker_of(name), [])
        if len(claimants) == 1:
            return self._target(name, claimants[0], name)
        if claimants:
            ways = " or ".join(f"{claimant}/{name}" for claimant in claimants)
            raise GatewayError(
                errors_pb2.REASON_MODEL_NOT_FOUND,
                f"model: {quoted(name)} is ambiguous; use {ways}",
                param="model",
            )
        raise model_not_found(name, hint=self._hint(name))

    def _hint(self, name: str) -> str:
        """Return what to write instead of an unknown name, or what makes it available."""
        if meant := self._names_by_likeness.find(name, self._may_name):
            return f"did you mean {meant}?"
        return missing_provider(name, self._kinds)

    @cached_property
    def _names_by_likeness(self) -> NamesByLikeness:
        return NamesByLikeness(self._by_name)

    def first_reading(self, kind: MediaKind.ValueType) -> Target | None:
        """Return the first configured model that is known to read a kind of media, or None."""
        for name, model in self._configured.items():
            if not model.is_wildcard:
                target = self._targets[name]
                if target.inputs is not None and kind in target.inputs:
                    return target
        return None

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kinds of all providers, by their names."""
        return self._kinds

    def configured_fallbacks(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield the name and the fallbacks of each configured model that has some."""
        for name, model in self._configured.items():
            if model.fallbacks:
                yield name, model.fallbacks

    def configured_places(self) -> Iterator[tuple[str, str, str]]:
        """Yield the name, provider and provider's model name of each configured deployment."""
        for name, model in self._configured.items():
            for place in model.served_by:
                if upstream := place.upstream or ("" if model.is_wildcard else name):
                    yield name, place.provider, upstream

    def list(self) -> list[inference_pb2.Model]:
        """Return the listed models: configured ones in their order, others by name."""
        return self._models.copy()

    def get(self, name: str) -> inference_pb2.Model:
        """Return the description of a model, listed or not.

        Raises:
            GatewayError: model_not_found, as of `resolve`.
        """
        return self._by_name.get(name) or self._describe(self.resolve(name))

    def _of_wildcard(self, name: str) -> Target | None:
        """Return the model of the most specific wildcard that matches a name, or None."""
        model = self._wildcard_of(name)
        return None if model is None else self._configured_target(model, name)

    def _wildcard_of(self, name: str) -> settings.Model | None:
        provider, slash, _ = name.partition("/")
        # Names of the sandbox are nobody else's while it is absent.
        is_of_provider = slash and (provider in self._kinds or provider == settings.SANDBOX)
        for model in self._wildcards:
            beginning = model.name.removesuffix(settings.WILDCARD)
            if is_of_provider and len(beginning) <= len(provider):
                break
            if name.startswith(beginning) and settings.WILDCARD not in name:
                return model
        return None

    def _configured_target(self, model: settings.Model, name: str) -> Target:
        """Return the model of a configured name."""
        targets = [self._deployment(model, name, one) for one in model.served_by]
        first = targets[0]
        if len(targets) == 1:
            return first
        deployments = Deployments(
            tuple(replace(target, is_deployment=True) for target in targets),
            tuple(one.weight for one in model.served_by),
            model.balance,
            model.sticky,
        )
        return replace(first, is_deployment=True, deployments=deployments)

    def _deployment(self, model: settings.Model, name: str, place: settings.Deployment) -> Target:
        upstream = place.upstream or name
        facts = _overridden(self._facts(place.provider, upstream), model)
        return self._target_of(
            name,
            place.provider,
            upstream,
            facts,
            model.fallbacks,
            model.vector_space or "",
            place.limits,
        )

    def _offered(self, learnt: Mapping[str, Sequence[str]]) -> Iterator[tuple[Target, bool]]:
        """Yield the models that providers report or have built in, each with whether to list it."""
        for provider, kind in self._kinds.items():
            for upstream, facts in self._own.get(kind, {}).items():
                yield self._target(f"{provider}/{upstream}", provider, upstream), facts.listed
        for provider, names in learnt.items():
            if provider in self._kinds and self._kinds[provider] not in self._own:
                for upstream in names:
                    yield self._target(f"{provider}/{upstream}", provider, upstream), True

    def _target(self, name: str, provider: str, upstream: str) -> Target:
        return self._target_of(name, provider, upstream, self._facts(provider, upstream))

    def _target_of(
        self,
        name: str,
        provider: str,
        upstream: str,
        facts: ModelInfo,
        fallbacks: Sequence[str] = (),
        vector_space: str = "",
        limits: settings.CallLimits | None = None,
    ) -> Target:
        maker = catalogue.maker_and_name(self._kinds[provider], upstream)[0]
        adapter = adapter_key(self._kinds[provider], provider, upstream, name)
        return Target(
            name=name,
            provider=provider,
            upstream=upstream,
            inputs=facts.inputs,
            context_window=facts.context_window,
            max_output_tokens=facts.max_output_tokens,
            fallbacks=tuple(fallbacks),
            # Anthropic's models think on request, OpenAI's and Google's always.
            thinks=facts.thinking if maker in _THINKING_UNASKED else False,
            adaptive=facts.adaptive,
            efforts=facts.efforts,
            refuses=facts.refuses,
            thinking_off=facts.thinking_off,
            vector_space=vector_space,
            limits=self._limits_of(provider, upstream, limits),
            adapter=adapter,
            native_tools=self._native_tools.get(adapter, False),
        )

    def _limits_of(
        self, provider: str, upstream: str, limits: settings.CallLimits | None
    ) -> RequestLimits | None:
        """Return the limits of a deployment and of its provider, or None without any.

        Args:
            provider: the provider.
            upstream: its name for the model.
            limits: the limits of the deployment, unless it is configured with an `upstream`.
        """
        of_deployment = self._deployment_limits.get((provider, upstream), limits)
        both = (
            (limits_pb2.SUBJECT_KIND_DEPLOYMENT, f"{provider}/{upstream}", of_deployment),
            (limits_pb2.SUBJECT_KIND_PROVIDER, provider, self._limits.get(provider)),
        )
        of_both = [
            SubjectLimits(kind=kind, id=subject_id(name), **one.model_dump(exclude_none=True))
            for kind, name, one in both
            if one is not None
        ]
        return RequestLimits(of_both) if of_both else None

    def _facts(self, provider: str, upstream: str) -> ModelInfo:
        """Return the known properties of a provider's model."""
        kind = self._kinds[provider]
        if kind in self._own:
            return self._own[kind].get(upstream, catalogue.UNKNOWN)
        facts, server = catalogue.facts_of(kind, upstream), self._servers[provider]
        return replace(
            facts,
            inputs=self._told(provider, upstream) if facts.inputs is None else facts.inputs,
            context_window=facts.context_window or catalogue.context_window(server, upstream),
            efforts=facts.efforts or server.efforts,
            refuses=facts.refuses | server.refuses,
            thinking_off=server.thinking_off or facts.thinking_off,
        )

    def _told(self, provider: str, upstream: str) -> Inputs | None:
        """Return the media that a local server's model reads, as reported, or None."""
        inputs = self._abilities.get((provider, upstream))
        # Ollama reports a model without a tag as `:latest`.
        return self._abilities.get((provider, f"{upstream}:latest")) if inputs is None else inputs

    def _describe(self, target: Target) -> inference_pb2.Model:
        facts = self._facts(target.provider, target.upstream)
        model = self.configured(target.name)
        if model is not None:
            facts = _overridden(facts, model)
        lifecycle = self._lifecycle(target, model)
        return inference_pb2.Model(
            name=target.name,
            display_name=facts.display_name or target.name,
            provider=target.provider,
            context_window=target.context_window,
            max_output_tokens=target.max_output_tokens,
            inputs=sorted(target.inputs or ()),
            tools=facts.tools,
            thinking=facts.thinking,
            structured_output=facts.structured_output,
            efforts=target.efforts,
            deprecated_at=lifecycle.deprecated_at,
            retires_at=lifecycle.retires_at,
            retired=lifecycle.is_retired,
        )

    def _lifecycle(self, target: Target, model: settings.Model | None) -> ModelLifecycle:
        """Return when a model ends: as the settings say, or else its provider."""
        lifecycle = self._lifecycles.get((target.provider, target.upstream), NO_END)
        if model is None:
            return lifecycle
        if model.deprecated_at:
            lifecycle = lifecycle._replace(deprecated_at=seconds_of(model.deprecated_at))
        if model.retires_at:
            lifecycle = lifecycle._replace(retires_at=seconds_of(model.retires_at))
        return lifecycle


def _overridden(facts: ModelInfo, model: settings.Model) -> ModelInfo:
    """Return model properties with the overrides of the settings."""
    overridden = model.model_dump(include=_OVERRIDING, exclude_none=True)
    if "inputs" in overridden:
        overridden["inputs"] = frozenset(
            MEDIA[name] for name in overridden["inputs"] if name != "text"
        )
    if "efforts" in overridden:
        overridden["efforts"] = tuple(overridden["efforts"])
    if "refuses" in overridden:
        overridden["refuses"] = frozenset(overridden["refuses"])
    return replace(facts, **overridden)


def _claimants(providers: Mapping[str, settings.Provider]) -> dict[str, list[str]]:
    """Return the providers that claim a maker's bare names, by the maker's provider kind."""
    claimants: dict[str, list[str]] = {}
    for name, provider in providers.items():
        maker = catalogue.MAKERS.get(provider.kind)
        if maker and (name == provider.kind or _host(provider) in maker.hosts):
            claimants.setdefault(provider.kind, []).append(name)
    return claimants


def _host(provider: settings.Provider) -> str:
    return urlsplit(provider.base_url).hostname or ""
