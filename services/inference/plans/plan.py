"""The fallback plan of a request: which models are tried, in which order and bounds. Pure.

A plan is made before any provider is asked, so that a chain that cannot be run is
refused whole (contract, Fallback rules).
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

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
from services.common.settings import Limits
from services.common.texts import MAX_NAME
from services.inference import validation
from services.inference.circuit_breaker import ModelKey
from services.inference.plans.policy import FailOn, Retries
from services.inference.providers.base import Target
from services.inference.request_changes import merged
from services.inference.routing import Models

log = logging.getLogger(__name__)

PRIMARY_STEP = "primary"
MAX_STEPS = 16
MAX_RETRIES = 10

_NO_RETRIES = Retries()
# What `auto` does about a transient failure.
_AUTO_RETRIES = Retries(most=2, jitter_s=0.25)
# Plans that are kept, by the model that callers name, and by a chain of so many bytes.
_KEPT = 1_000
_KEPT_BYTES = 2_048
_CHAINS = frozenset({inference_pb2.FALLBACK_MODE_ENABLED, inference_pb2.FALLBACK_MODE_STRICT})
# What a step cannot set otherwise than the request.
_OF_THE_REQUEST = (
    *("model", "dialect", "thinking_block_strategy", "use_built_in_tools", "multimodal"),
    *("fallback", "fallback_config", "memory", "lowers_max_tokens"),
    *("ignores_stop_sequence", "has_unsigned_thinking", "has_flat_answers"),
)


@dataclass(frozen=True, slots=True)
class Step:
    """One model of a plan.

    Attributes:
        step_id: what callers read of it.
        target: the model.
        timeout_s: seconds for the step, retries and waits included, until the first
            content of a stream or the end of a whole answer.
        retries: how often it is tried again.
        fail_on: the caller's rule of what moves on; the usual one when None.
        parameters: fields that replace the request's; none when None.
        path: of the step in the caller's JSON, "" for a model that no step names.
        deployments: the step at each deployment of the model, in a plan before one is chosen;
            () for a model with one.
        group: shared by the steps that stand for one step of such a plan; None elsewhere.
        key: what its breaker goes by.
    """

    step_id: str
    target: Target
    timeout_s: float
    retries: Retries
    fail_on: FailOn | None = None
    parameters: GenerateRequest | None = None
    path: str = ""
    deployments: "tuple[Step, ...]" = ()
    group: object = None
    key: ModelKey = field(init=False)

    def __post_init__(self) -> None:
        """Make the key, which is asked for again and again."""
        object.__setattr__(self, "key", ModelKey(self.target.provider, self.target.upstream))


def at_deployments(step: Step) -> Step:
    """Return a step with its `deployments`, if its model has several."""
    if step.target.deployments is None:
        return step
    group = object()
    places = (replace(step, target=one, group=group) for one in step.target.deployments.targets)
    return replace(step, deployments=tuple(places))


class Plan(NamedTuple):
    """All that may be tried for a request.

    Attributes:
        steps: in order, at least one.
        timeout_s: seconds for everything, streaming included; no bound when None.
        max_retries: over all steps together; no bound when None.
        hedge_after_s: how long a model may be silent before the next is asked beside
            it; 0 for ever.
        max_recovered_characters: how much of an answer that breaks off in the middle may be gone
            on with; None where nothing may.
        is_patient: whether a wait that a provider asks for is kept however long it is.
        is_balanced: whether a step's model has several deployments.
        load_class: the class of requests whose times to the first content are compared; see
            `services.inference.balancing.loads`.
    """

    steps: tuple[Step, ...]
    timeout_s: float | None = None
    max_retries: int | None = None
    hedge_after_s: float = 0.0
    max_recovered_characters: int | None = None
    is_patient: bool = True
    is_balanced: bool = False
    load_class: int = 0

    def after(self, index: int) -> int:
        """Return the index of the step of the next model, past other deployments of this one."""
        steps = self.steps
        group = steps[index].group
        index += 1
        if group is not None:
            while index < len(steps) and steps[index].group is group:
                index += 1
        return index

    def group_of(self, index: int) -> range:
        """Return the indexes of the deployments of a step's model."""
        end = self.after(index)
        group = self.steps[index].group
        while index and group is not None and self.steps[index - 1].group is group:
            index -= 1
        return range(index, end)

    def hedges(self, index: int) -> bool:
        """Return whether the model after that of `index` is asked beside it once it is silent.

        Silence means nothing of a model that thinks, and asking another would be paid twice.
        """
        steps = self.steps
        return (
            len(steps) > 1
            and self.hedge_after_s > 0
            and not steps[index].target.thinks
            and self.after(index) < len(steps)
        )


class Plans:
    """Makes the plans of requests over the same models.

    A plan that follows from the model's name and a few choices is made once and kept.

    Args:
        models: those that callers can name.
        limits: bounds on time and size.
    """

    def __init__(self, models: Models, limits: Limits) -> None:
        self._models = models
        self._limits = limits
        self._kept = lru_cache(_KEPT)(self._usual)
        self._kept_chains = lru_cache(_KEPT)(self._kept_chain)

    def of(self, request: GenerateRequest) -> Plan:
        """Return what is to be tried for a request.

        Raises:
            GatewayError: model_not_found, when there is no such outer model; invalid, when
                the chain or a step breaks a rule, naming it.
        """
        mode = request.fallback
        if mode in _CHAINS:
            plan = self._own_chain(request, mode)
            must_fit = mode == inference_pb2.FALLBACK_MODE_ENABLED
        else:
            is_alone = mode == inference_pb2.FALLBACK_MODE_DISABLED
            asks_to_think = _asks_to_think(request)
            plan = self._kept(request.model, is_alone, asks_to_think, request.n <= 1)
            must_fit = True
        # A strict chain has nothing of the model that the request names.
        if must_fit and plan.steps[0].target.max_output_tokens:
            _check_max_tokens(request, plan.steps[0].target)
        return plan

    def _usual(self, model: str, is_alone: bool, asks_to_think: bool, recovers: bool) -> Plan:
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
        """Return the plan that a request sets by itself."""
        config = request.fallback_config.SerializeToString()
        plan = None
        if len(config) <= _KEPT_BYTES:
            plan = self._kept_chains(request.model, mode, config, request.n <= 1)
        return self._chain(request) if plan is None else plan

    def _kept_chain(
        self, model: str, mode: inference_pb2.FallbackMode.ValueType, config: bytes, recovers: bool
    ) -> Plan | None:
        """Return the plan of a chain; None without one, and where steps have parameters.

        Parameters depend on the request.
        """
        chain = FallbackConfig.FromString(config)
        if not config or any(step.HasField("parameters") for step in chain.steps):
            return None
        n = 1 if recovers else 2
        return self._chain(GenerateRequest(model=model, fallback=mode, fallback_config=chain, n=n))

    def _chain(self, request: GenerateRequest) -> Plan:
        """Return the plan of a request's chain, whatever tokens it asks for."""
        _check_config(request)
        config = request.fallback_config
        steps = tuple(
            _step(request, step, f"fallback_config.steps[{index}]", self._models, self._limits)
            for index, step in enumerate(config.steps)
        )
        if request.fallback == inference_pb2.FALLBACK_MODE_ENABLED:
            steps = (self._primary(request.model, _NO_RETRIES), *steps)
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
        """Return the fallbacks that the operator configured for a model, as far as they are there.

        Models come and go with their servers; the others still stand in.
        """
        seen = _keys(first)
        for number, name in enumerate(first.target.fallbacks, 1):
            try:
                target = self._models.resolve(name)
            except GatewayError:
                told = {"model": first.target.name, "fallback": name}
                log.warning("fallback not found", extra=told)
                continue
            step = at_deployments(
                Step(f"fallback-{number}", target, self._limits.step_timeout_s, _AUTO_RETRIES)
            )
            if not _keys(step) <= seen:
                seen |= _keys(step)
                yield step


def _plan(steps: tuple[Step, ...], **fields: Any) -> Plan:
    return Plan(steps, is_balanced=any(step.deployments for step in steps), **fields)


def _keys(step: Step) -> set[ModelKey]:
    """Return the keys of a step's model, one for each deployment."""
    return {one.key for one in step.deployments or (step,)}


def _asks_to_think(request: GenerateRequest) -> bool:
    return request.HasField("thinking") and (
        request.thinking.mode != ThinkingConfig.MODE_DISABLED and request.thinking.effort != "none"
    )


def _check_max_tokens(request: GenerateRequest, target: Target) -> None:
    limit = target.max_output_tokens
    if limit and request.max_tokens > limit and not request.lowers_max_tokens:
        raise invalid("max_tokens", f"max_tokens: {target.name} writes at most {limit} tokens")


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
        raise invalid(f"{path}.steps", f"{path}.steps: 1 to {MAX_STEPS} are needed")
    seen: dict[str, int] = {}
    for index, step in enumerate(config.steps):
        where = f"{path}.steps[{index}].step_id"
        if not step.step_id or len(step.step_id) > MAX_NAME:
            raise invalid(where, f"{where}: is required, with at most {MAX_NAME} characters")
        earlier = seen.setdefault(step.step_id, index)
        if earlier != index:
            said = f"must be unique, and {step.step_id!r} is {path}.steps[{earlier}] already"
            raise invalid(where, f"{where}: {said}")


def _step(
    request: GenerateRequest, step: FallbackStep, path: str, models: Models, limits: Limits
) -> Step:
    # Asking for each field costs more than all that are there.
    given: dict[str, Any] = {field.name: value for field, value in step.ListFields()}
    timeout_s = limits.step_timeout_s
    if "timeout_ms" in given:
        _check_range(f"{path}.timeout_ms", given["timeout_ms"], 1)
        # The operator's bound holds for every call to a provider.
        timeout_s = min(given["timeout_ms"] / 1000, timeout_s)
    if "parameters" in given:
        _check_parameters(request, given["parameters"], f"{path}.parameters")
    return at_deployments(
        Step(
            given.get("step_id", ""),
            _step_target(given.get("model", ""), path, models),
            timeout_s,
            _retries(given["retry_policy"], path) if "retry_policy" in given else _NO_RETRIES,
            _fail_on(given["fail_on"], f"{path}.fail_on") if "fail_on" in given else None,
            given.get("parameters"),
            path,
        )
    )


def _step_target(name: str, path: str, models: Models) -> Target:
    try:
        if name:
            return models.resolve(name)
    except GatewayError as error:
        if error.reason != errors_pb2.REASON_MODEL_NOT_FOUND:
            raise
        where = f"{path}.model"
        raise invalid(where, f"{where}: {error.message.removeprefix('model: ')}") from error
    raise invalid(f"{path}.model", f"{path}.model: is required")


def _retries(policy: RetryPolicy, path: str) -> Retries:
    path = f"{path}.retry_policy"
    _check_range(f"{path}.max_retries", policy.max_retries, 0, MAX_RETRIES)
    factor = policy.backoff_factor if policy.HasField("backoff_factor") else 2.0
    _check_range(f"{path}.backoff_factor", factor, 1)
    return Retries(policy.max_retries, factor, policy.jitter_ms / 1000)


def _fail_on(rule: inference_pb2.FailOn, path: str) -> FailOn:
    for index, status in enumerate(rule.status_code):
        _check_range(f"{path}.status_code[{index}]", status, 100, 599)
    for index, word in enumerate(rule.error_contains):
        if not word:
            where = f"{path}.error_contains[{index}]"
            raise invalid(where, f"{where}: must not be empty")
    return FailOn(
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
        rest = error.message.removeprefix(f"{error.param}: ")
        raise invalid(where, f"{where}: {rest}") from error


def _check_range(path: str, value: float, low: float, high: float | None = None) -> None:
    # NaN fails every comparison, so it is refused here too.
    if not (low <= value and (high is None or value <= high)):
        bounds = f"{low} and more" if high is None else f"{low} to {high}"
        raise invalid(path, f"{path}: takes {bounds}")
