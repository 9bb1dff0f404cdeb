"""The fields `fallback` and `fallback_config` of a body, and their translation.

Contract: Chat-completions extensions. The bodies of embeddings inherit from `FallbackFields`, all
others from `extensions.ExtensionFields`.
"""

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SkipValidation, TypeAdapter

from facade.dialects.field_types import Count, Extension, Name, Positive, given_values
from facade.dialects.paths import SourceMap
from facade.dialects.validation import check_json, write_json
from gateway.conversation.v1.conversation_pb2 import FINISH_REASON_REFUSAL
from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import invalid

# Number of cached fallback configs, as programs send the same few; maximum bytes of JSON of each.
_KEPT = 256
_KEPT_BYTES = 2048

# Parses a step's `parameters` at a path into a request in which only the overridden fields are set,
# and adds its messages to the source map. Raises GatewayError.
ReadParameters = Callable[[Mapping[str, object], str, SourceMap], pb.GenerateRequest]


class Strategy(Extension):
    """How the steps are scheduled."""

    mode: Literal["sequential"] = Field(
        description="`sequential`: steps are tried one after the other."
    )


class RetryPolicy(Extension):
    """How often and after which delays a step is retried."""

    max_retries: Annotated[int, Field(ge=0, le=10)] = Field(
        0, description="Maximum retries after the first attempt."
    )
    backoff_factor: Annotated[float, Field(ge=1)] = Field(
        2, description="Factor by which the delay grows with each retry."
    )
    jitter_ms: Count = Field(0, description="Maximum random addition to a delay, in milliseconds.")


class FailOn(Extension):
    """Failures after which the next step is tried; any other ends the chain."""

    status_code: list[Annotated[int, Field(ge=100, le=599)]] = Field(
        [], fail_fast=True, max_length=1_000, description="HTTP status codes of the provider."
    )
    error_contains: list[Annotated[str, Field(min_length=1)]] = Field(
        [],
        fail_fast=True,
        max_length=1_000,
        description="Substrings of the provider's answer, case-insensitive.",
    )
    finish: list[Literal["refusal"]] = Field(
        [],
        max_length=1,
        description="`refusal`: an answer that is a refusal leads to the next step too.",
    )


class FallbackStep(Extension):
    """One model of the chain."""

    step_id: Name = Field(description="Id of the step; must be unique in the chain.")
    model: Name = Field(description="Name of the model to call.")
    timeout_ms: Positive | None = Field(
        None, description="Timeout of the step in milliseconds, including retries and delays."
    )
    retry_policy: RetryPolicy | None = Field(None, description="No retries if omitted.")
    fail_on: FailOn | None = Field(
        None,
        description="If omitted, the next step is tried after transient failures, "
        "rejected credentials, unknown models and conversations that are too "
        "long.",
    )
    parameters: dict[str, Any] | None = Field(
        None, description="Request fields that this step overrides."
    )


class FallbackConfig(Extension):
    """A chain of models to try in order."""

    strategy: Strategy = Field(description="How the steps are scheduled.")
    global_timeout_ms: Positive | None = Field(
        None,
        description="Timeout of the whole chain in milliseconds, including retries and streaming.",
    )
    max_total_retries: Count | None = Field(
        None, description="Maximum total retries over all steps."
    )
    steps: Annotated[list[FallbackStep], Field(fail_fast=True, min_length=1, max_length=16)] = (
        Field(description="The steps, tried in order.")
    )


class FallbackFields(BaseModel):
    """Fields of a body about fallback to other models."""

    model_config = ConfigDict(defer_build=True)

    fallback: Literal["disabled", "auto", "enabled", "strict"] | None = Field(
        "auto",
        description="Behaviour if the model fails. `disabled`: no fallback. `auto`: the "
        "gateway decides. `enabled`: the steps of `fallback_config` are "
        "tried. `strict`: only these steps are tried, and `model` is ignored.",
    )
    # Only read if `fallback` is `enabled` or `strict`; otherwise it may be anything.
    fallback_config: SkipValidation[FallbackConfig | None] = Field(
        None,
        description="The chain; required if `fallback` is `enabled` or `strict`, "
        "otherwise ignored.",
    )

    @cached_property
    def plain_chain(self) -> bytes | None:
        """The chain, validated and serialized; None if its steps have parameters.

        Raises:
            GatewayError: invalid, naming the field.
        """
        json = write_json(self.fallback_config, "fallback_config")
        return (_kept_config if len(json) <= _KEPT_BYTES else _plain_config)(json)


FALLBACK_FIELDS = frozenset(FallbackFields.model_fields)

_FALLBACK_CONFIG: TypeAdapter[FallbackConfig] = TypeAdapter(FallbackConfig)
_FALLBACK_MODES = {
    "disabled": pb.FALLBACK_MODE_DISABLED,
    "auto": pb.FALLBACK_MODE_AUTO,
    "enabled": pb.FALLBACK_MODE_ENABLED,
    "strict": pb.FALLBACK_MODE_STRICT,
}


def may_set_parameters(config: object) -> bool:
    """Return whether a fallback config, not validated yet, may have steps with parameters."""
    steps = config.get("steps") if isinstance(config, dict) else None
    if not isinstance(steps, list):
        return True
    for step in steps:
        if not isinstance(step, dict) or step.get("parameters"):
            return True
    return False


def set_fallback(
    request: pb.GenerateRequest | pb.EmbedRequest | pb.ForwardRequest,
    fields: FallbackFields,
    read_parameters: ReadParameters,
    source_map: SourceMap,
) -> None:
    """Add `fallback` and `fallback_config` of a validated body to `request`.

    The arguments are those of `extensions.set_extensions`.

    Raises:
        GatewayError: invalid, naming the field.
    """
    if fields.fallback is not None and "fallback" in fields.model_fields_set:
        request.fallback = _FALLBACK_MODES[fields.fallback]
    if fields.fallback in ("enabled", "strict"):
        if fields.fallback_config is None:
            raise invalid(
                "fallback_config",
                f"fallback_config: is required when fallback is {fields.fallback!r}",
            )
        chain = fields.plain_chain
        if chain is not None:
            request.fallback_config.MergeFromString(chain)
        else:
            json = write_json(fields.fallback_config, "fallback_config")
            _set_fallback_config(request.fallback_config, json, read_parameters, source_map)


def _plain_config(json: bytes) -> bytes | None:
    """Return a serialized config; None if its steps have parameters.

    Parameters depend on the rest of the request.
    """
    config = check_json(_FALLBACK_CONFIG, json, "fallback_config")
    if any(step.parameters for step in config.steps):
        return None
    return _chain(config).SerializeToString()


_kept_config = lru_cache(_KEPT)(_plain_config)


def _set_fallback_config(
    target: pb.FallbackConfig, json: bytes, read_parameters: ReadParameters, source_map: SourceMap
) -> None:
    config = check_json(_FALLBACK_CONFIG, json, "fallback_config")
    target.CopyFrom(_chain(config))
    for index, step in enumerate(config.steps):
        if step.parameters:
            path = f"fallback_config.steps[{index}].parameters"
            parameters = read_parameters(step.parameters, path, source_map.of_step(index))
            target.steps[index].parameters.CopyFrom(parameters)


def _chain(wire_config: FallbackConfig) -> pb.FallbackConfig:
    """Return a config without the parameters of its steps."""
    config = pb.FallbackConfig(strategy_mode=wire_config.strategy.mode)
    if wire_config.global_timeout_ms is not None:
        config.global_timeout_ms = wire_config.global_timeout_ms
    if wire_config.max_total_retries is not None:
        config.max_total_retries = wire_config.max_total_retries
    for step in wire_config.steps:
        _set_step(config.steps.add(), step)
    return config


def _set_step(target: pb.FallbackStep, step: FallbackStep) -> None:
    target.step_id = step.step_id
    target.model = step.model
    if step.timeout_ms is not None:
        target.timeout_ms = step.timeout_ms
    if step.retry_policy is not None:
        target.retry_policy.CopyFrom(pb.RetryPolicy(**given_values(step.retry_policy)))
    if step.fail_on is not None:
        values = given_values(step.fail_on)
        if "finish" in values:
            values["finish"] = [FINISH_REASON_REFUSAL] * len(step.fail_on.finish)
        target.fail_on.CopyFrom(pb.FailOn(**values))
