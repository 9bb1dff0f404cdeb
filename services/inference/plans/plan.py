"""The fallback plan of a request: the models to try, their order, timeouts and retries. Pure.

A plan is made before any provider is called, so that an invalid chain is rejected as a whole
(contract, Fallback rules).
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from gateway.conversation.v1 import conversation_pb2
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import (
    FallbackConfig,
    FallbackStep,
    GenerateRequest,
    RetryPolicy,
    ThinkingConfig,
)
from services.common.errors import GatewayError, invalid
from services.common.process.telemetry.conventions import Operation
from services.common.settings import Limits
from services.common.text.texts import MAX_NAME
from services.inference.circuit_breaker import ModelKey
from services.inference.models.routing import Models
from services.inference.plans.policy import FallbackRule, Retries
from services.inference.providers.base import Target
from services.inference.request import validation
from services.inference.request.request_changes import merged

log = logging.getLogger(__name__)

PRIMARY_STEP = "primary"
MAX_STEPS = 16
MAX_RETRIES = 10

_NO_RETRIES = Retries()
# The retries of mode `auto`.
_AUTO_RETRIES = Retries(most=2, jitter_s=0.25)
# Cached plans, by the requested model and by chain; and the maximum bytes of a cached chain.
_KEPT = 1_000
_KEPT_BYTES = 2_048
_CHAINS = frozenset({inference_pb2.FALLBACK_MODE_ENABLED, inference_pb2.FALLBACK_MODE_STRICT})
# Fields that a step's parameters cannot override.
_OF_THE_REQUEST = (
    *("model", "dialect", "thinking_block_strategy", "use_built_in_tools", "multimodal"),
    *("fallback", "fallback_config", "memory", "lowers_max_tokens"),
    *("omits_stop_sequence", "has_unsigned_thinking", "requires_single_text"),
    "wraps_signatures",
)


@dataclass(frozen=True, slots=True)
class Step:
    """One model of a plan.

    Attributes:
        step_id: the step's id, which callers see.
        target: the model.
        timeout_s: seconds for the step, including retries and delays, until the first
            content of a stream or the end of a whole answer.
        retries: the retries of the step.
        fail_on: the caller's rule for failures that lead to the next step; None for the default.
        leaves_refusals: whether an answer that is a refusal is given up for the next step.
        parameters: fields that override those of the request, or None.
        path: the step's path in the caller's JSON; "" for a model that is not named by a step.
        deployments: the step at each deployment of its model, before the balancer has ordered
            them; () for a model with one deployment.
        group: identity shared by a step's deployments; None for a model with one deployment.
        key: the key of the circuit breaker.
    """

    step_id: str
    target: Target
    timeout_s: float
    retries: Retries
    fail_on: FallbackRule | None = None
    leaves_refusals: bool = False
    parameters: GenerateRequest | None = None
    path: str = ""
    deployments: "tuple[Step, ...]" = ()
    group: object = None
    key: ModelKey = field(init=False)

    def __post_init__(self) -> None:
        """Set the key, which is read often."""
        object.__setattr__(self, "key", ModelKey(self.target.provider, self.target.upstream))


def at_deployments(step: Step) -> Step:
    """Return a step with its `deployments` set, if its model has several."""
    if step.target.deployments is None:
        return step
    group = object()
    places = (
        replace(step, target=deployment, group=group)
        for deployment in step.target.deployments.targets
    )
    return replace(step, deployments=tuple(places))


class Plan(NamedTuple):
    """The fallback plan of a request.

    Attributes:
        steps: the steps in order, at least one.
        timeout_s: seconds for the whole answer, including streaming; None for no limit.
        max_retries: maximum retries of all steps together; None for no limit.
        hedge_after_s: seconds of silence after which the next model is called beside a silent one;
            0 for no hedging.
        max_recovered_characters: maximum delivered characters of an answer that breaks off and is
            continued; None if no answer is continued.
        is_patient: whether to wait as long as a provider asks, within the time of the step.
        is_balanced: whether a step's model has several deployments.
        load_class: class of requests with comparable times to the first content; see
            `services.inference.balancing.loads`.
        operation: what the models do, as named in spans.
    """

    steps: tuple[Step, ...]
    timeout_s: float | None = None
    max_retries: int | None = None
    hedge_after_s: float = 0.0
    max_recovered_characters: int | None = None
    is_patient: bool = True
    is_balanced: bool = False
    load_class: int = 0
    operation: Operation = "chat"

    def places(self) -> "Iterator[Step]":
        """Yield the steps at all deployments of their models."""
        for step in self.steps:
            yield from step.deployments or (step,)

    def next_model_index(self, index: int) -> int:
        """Return the index of the step with the next model, past other deployments of this one."""
        steps = self.steps
        group = steps[index].group
        index += 1
        if group is not None:
            while index < len(steps) and steps[index].group is group:
                index += 1
        return index

    def group_of(self, index: int) -> range:
        """Return the indexes of all deployments of a step's model."""
        end = self.next_model_index(index)
        group = self.steps[index].group
        while index and group is not None and self.steps[index - 1].group is group:
            index -= 1
        return range(index, end)

    def hedges(self, index: int) -> bool:
        """Return whether a step is hedged: the next model is called beside it while it is silent.

        A model that thinks is silent in any case, and a second call would be billed as well.
        """
        return (
            self.hedge_after_s > 0
            and not self.steps[index].target.thinks
            and self.next_model_index(index) < len(self.steps)
        )


class Plans:
    """Makes the plans of requests.

    A plan that depends only on the model's name and a few options is cached.

    Args:
        models: the models that callers can name.
        limits: limits on time and size.
    """

    def __init__(self, models: Models, limits: Limits) -> None:
        self._models = models
        self._limits = limits
        self._cached_default_plan = lru_cache(_KEPT)(self._default_plan)
        self._kept_chains = lru_cache(_KEPT)(self._kept_chain)

    def plan_for(self, request: GenerateRequest) -> Plan:
        """Return the fallback plan of a request.

        Raises:
            GatewayError: model_not_found, if there is no such outer model; invalid, if
                the chain or a step breaks a rule, with its path.
        """
        mode = request.fallback
        if mode in _CHAINS:
            plan = self._own_chain(request, mode)
            must_fit = mode == inference_pb2.FALLBACK_MODE_ENABLED
        else:
            is_alone = mode == inference_pb2.FALLBACK_MODE_DISABLED
            asks_to_think = request.HasField("thinking") and (
                request.thinking.mode != ThinkingConfig.MODE_DISABLED
                and request.thinking.effort != "none"
            )
            plan = self._cached_default_plan(request.model, is_alone, asks_to_think, request.n <= 1)
            must_fit = True
        # A strict chain does not call the requested model.
        if must_fit and plan.steps[0].target.max_output_tokens:
            _check_max_tokens(request, plan.steps[0].target)
        return plan

    def _default_plan(
        self, model: str, is_alone: bool, asks_to_think: bool, recovers: bool
    ) -> Plan:
        """Return the plan of a request without a chain of its own."""
        if is_alone:
            return _plan((self._primary(model, _NO_RETRIES),))
        first = self._primary(model, _AUTO_RETRIES)
        return _plan(
            (first, *self._configured(first)),
            hedge_after_s=0 if asks_to_think else self._limits.hedge_after_s,
            max_recovered_characters=self._limits.max_recovered_characters if recovers else None,
            is_patient=False,
        )

    def _own_chain(
        self, request: GenerateRequest, mode: inference_pb2.FallbackMode.ValueType
    ) -> Plan:
        """Return the plan of a request with `fallback_config`."""
        config = request.fallback_config.SerializeToString()
        plan = None
        if len(config) <= _KEPT_BYTES:
            plan = self._kept_chains(request.model, mode, config, request.n <= 1)
        return self._chain(request) if plan is None else plan

    def _kept_chain(
        self, model: str, mode: inference_pb2.FallbackMode.ValueType, config: bytes, recovers: bool
    ) -> Plan | None:
        """Return the plan of a chain to be cached; None without one, or if steps have parameters.

        Parameters are validated together with the request, so such a plan is not cached.
        """
        chain = FallbackConfig.FromString(config)
        if not config or any(step.HasField("parameters") for step in chain.steps):
            return None
        n = 1 if recovers else 2
        return self._chain(GenerateRequest(model=model, fallback=mode, fallback_config=chain, n=n))

    def _chain(self, request: GenerateRequest) -> Plan:
        """Return the plan of a request's chain, without checking `max_tokens`."""
        _check_config(request)
        config = request.fallback_config
        primary: tuple[Step, ...] = ()
        provider = ""
        if request.fallback == inference_pb2.FALLBACK_MODE_ENABLED:
            first = self._primary(request.model, _NO_RETRIES)
            primary = (replace(first, leaves_refusals=config.is_of_dialect),)
            provider = first.target.provider if config.is_of_dialect else ""
        steps = primary + tuple(
            _step(
                request,
                step,
                f"fallback_config.steps[{index}]",
                self._models,
                self._limits,
                provider=provider,
            )
            for index, step in enumerate(config.steps)
        )
        timeout_s = config.global_timeout_ms / 1000
        return _plan(
            steps,
            timeout_s=timeout_s if config.HasField("global_timeout_ms") else None,
            max_retries=config.max_total_retries if config.HasField("max_total_retries") else None,
            max_recovered_characters=self._limits.max_recovered_characters
            if request.n <= 1
            else None,
        )

    def _primary(self, model: str, retries: Retries) -> Step:
        target = self._models.resolve(model)
        return at_deployments(Step(PRIMARY_STEP, target, self._limits.step_timeout_s, retries))

    def _configured(self, first: Step) -> Iterator[Step]:
        """Yield a step for each configured fallback of a model that can be resolved.

        Models come and go with their servers; the remaining fallbacks are still used.
        """
        seen_keys = _keys(first)
        for number, name in enumerate(first.target.fallbacks, 1):
            try:
                target = self._models.resolve(name)
            except GatewayError:
                names = {"model": first.target.name, "fallback": name}
                log.warning("fallback not found", extra=names)
                continue
            step = at_deployments(
                Step(f"fallback-{number}", target, self._limits.step_timeout_s, _AUTO_RETRIES)
            )
            if not _keys(step) <= seen_keys:
                seen_keys |= _keys(step)
                yield step


def _plan(steps: tuple[Step, ...], **fields: Any) -> Plan:
    return Plan(steps, is_balanced=any(step.deployments for step in steps), **fields)


def _keys(step: Step) -> set[ModelKey]:
    """Return the keys of a step's model, one for each deployment."""
    return {deployment.key for deployment in step.deployments or (step,)}


def _check_max_tokens(request: GenerateRequest, target: Target) -> None:
    limit = target.max_output_tokens
    if limit and request.max_tokens > limit and not request.lowers_max_tokens:
        raise invalid("max_tokens", f"max_tokens: must be at most {limit} for {target.name}")


def _check_config(request: GenerateRequest) -> None:
    config = request.fallback_config
    path = "fallback_config"
    if not request.HasField("fallback_config"):
        raise invalid(path, f"{path}: is required when fallback is enabled or strict")
    if config.strategy_mode != "sequential":
        raise invalid(f"{path}.strategy.mode", f"{path}.strategy.mode: must be 'sequential'")
    if config.HasField("global_timeout_ms"):
        _check_range(f"{path}.global_timeout_ms", config.global_timeout_ms, 1)
    if not 1 <= len(config.steps) <= MAX_STEPS:
        raise invalid(f"{path}.steps", f"{path}.steps: must contain 1 to {MAX_STEPS} steps")
    index_by_id: dict[str, int] = {}
    for index, step in enumerate(config.steps):
        where = f"{path}.steps[{index}].step_id"
        if not step.step_id or len(step.step_id) > MAX_NAME:
            raise invalid(where, f"{where}: is required, with at most {MAX_NAME} characters")
        earlier = index_by_id.setdefault(step.step_id, index)
        if earlier != index:
            problem = f"must be unique; {path}.steps[{earlier}] has the same id {step.step_id!r}"
            raise invalid(where, f"{where}: {problem}")


def _step(
    request: GenerateRequest,
    step: FallbackStep,
    path: str,
    models: Models,
    limits: Limits,
    *,
    provider: str,
) -> Step:
    """Return a step; a name of no model is one of `provider`, unless that is ""."""
    # One `ListFields` is cheaper than testing each field.
    fields: dict[str, Any] = {field.name: value for field, value in step.ListFields()}
    timeout_s = limits.step_timeout_s
    if "timeout_ms" in fields:
        _check_range(f"{path}.timeout_ms", fields["timeout_ms"], 1)
        # The operator's timeout holds for every call to a provider.
        timeout_s = min(fields["timeout_ms"] / 1000, timeout_s)
    if "parameters" in fields:
        _check_parameters(request, fields["parameters"], f"{path}.parameters")
    return at_deployments(
        Step(
            fields.get("step_id", ""),
            _step_target(fields.get("model", ""), path, models, provider),
            timeout_s,
            _retries(fields["retry_policy"], path) if "retry_policy" in fields else _NO_RETRIES,
            _fail_on(fields["fail_on"], f"{path}.fail_on") if "fail_on" in fields else None,
            request.fallback_config.is_of_dialect or bool(step.fail_on.finish),
            fields.get("parameters"),
            path,
        )
    )


def _step_target(name: str, path: str, models: Models, provider: str) -> Target:
    try:
        if name:
            return models.resolve(name)
    except GatewayError as error:
        if error.reason != errors_pb2.REASON_MODEL_NOT_FOUND:
            raise
        if provider:
            return models.resolve(f"{provider}/{name}")
        where = f"{path}.model"
        raise invalid(where, f"{where}: {error.message.removeprefix('model: ')}") from error
    raise invalid(f"{path}.model", f"{path}.model: is required")


def _retries(policy: RetryPolicy, path: str) -> Retries:
    path = f"{path}.retry_policy"
    _check_range(f"{path}.max_retries", policy.max_retries, 0, MAX_RETRIES)
    factor = policy.backoff_factor if policy.HasField("backoff_factor") else 2.0
    _check_range(f"{path}.backoff_factor", factor, 1)
    return Retries(policy.max_retries, factor, policy.jitter_ms / 1000)


def _fail_on(rule: inference_pb2.FailOn, path: str) -> FallbackRule:
    for index, status in enumerate(rule.status_code):
        _check_range(f"{path}.status_code[{index}]", status, 100, 599)
    for index, word in enumerate(rule.error_contains):
        if not word:
            where = f"{path}.error_contains[{index}]"
            raise invalid(where, f"{where}: must not be empty")
    for index, reason in enumerate(rule.finish):
        if reason != conversation_pb2.FINISH_REASON_REFUSAL:
            where = f"{path}.finish[{index}]"
            raise invalid(where, f"{where}: must be FINISH_REASON_REFUSAL")
    return FallbackRule(
        frozenset(rule.status_code),
        tuple(word.casefold() for word in rule.error_contains),
    )


def _check_parameters(request: GenerateRequest, parameters: GenerateRequest, path: str) -> None:
    for descriptor, _ in parameters.ListFields():
        if descriptor.name in _OF_THE_REQUEST:
            where = f"{path}.{descriptor.name}"
            raise invalid(where, f"{where}: cannot be set for a single step")
    try:
        validation.check(merged(request, parameters))
    except GatewayError as error:
        where = f"{path}.{error.param}"
        problem = error.message.removeprefix(f"{error.param}: ")
        raise invalid(where, f"{where}: {problem}") from error


def _check_range(path: str, value: float, low: float, high: float | None = None) -> None:
    # NaN fails every comparison, so it is rejected here too.
    if not (low <= value and (high is None or value <= high)):
        bounds = f"at least {low}" if high is None else f"{low} to {high}"
        raise invalid(path, f"{path}: must be {bounds}")
