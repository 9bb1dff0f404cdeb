"""Extension fields of the gateway, shared by both dialects, and their translation.

`multimodal`, `fallback`, `fallback_config`, `memory_id` and `memory_config` (contract,
Chat-completions extensions). The wire types of bodies inherit from `ExtensionFields`; after
validation, `set_extensions` adds them to the request.
"""

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SkipValidation,
    TypeAdapter,
    model_validator,
)

from facade.dialects.paths import SourceMap
from facade.dialects.validation import check_json, few_fields, write_json
from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import invalid

UINT32_MAX = 2**32 - 1
# Number of cached fallback configs, as programs send the same few; maximum bytes of JSON of each.
_KEPT = 256
_KEPT_BYTES = 2048

# Maximum lengths of lists, in both dialects.
MAX_MESSAGES = 100_000
MAX_BLOCKS = 100_000  # of a message
MAX_TOOL_CALLS = 10_000  # of a message
MAX_TOOLS = 10_000
MAX_STOP_SEQUENCES = 1_000

Count = Annotated[int, Field(ge=0, le=UINT32_MAX)]
Positive = Annotated[int, Field(ge=1, le=UINT32_MAX)]
Name = Annotated[str, Field(min_length=1, max_length=256)]
_LANGUAGE = r"^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8}){0,8}$"

# Parses a step's `parameters` at a path into a request in which only the overridden fields are set,
# and adds its messages to the source map. Raises GatewayError.
ReadParameters = Callable[[Mapping[str, object], str, SourceMap], pb.GenerateRequest]


class _Extension(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    _few_fields = model_validator(mode="before")(few_fields)


class ImageAdaptation(_Extension):
    """How images are described for models without image input."""

    enabled: bool = Field(True, description="Whether images are described.")
    model: Name | None = Field(
        None,
        description="Name of the model that describes images. `embedded`: no model; only "
        "size, colours and the text found by OCR.",
    )
    prompt: str | None = Field(None, description="Prompt for the model that describes images.")
    max_images: Positive = Field(
        20, description="Maximum images in one request; more are an error."
    )


class PdfAdaptation(_Extension):
    """How PDF and DOCX become pages or text for models that cannot read them."""

    enabled: bool = Field(True, description="Whether documents are converted.")
    model: Name | None = Field(None, description="Name of the model that describes page images.")
    max_pages: Positive = Field(50, description="Maximum pages in one document; more are an error.")
    mode: Literal["auto", "images", "text"] = Field(
        "auto", description="Whether pages become images or text; `auto`: depending on the model."
    )
    ocr: Literal["auto", "always", "never"] = Field(
        "auto",
        description="Pages on which text is recognised (OCR): `auto`: those without "
        "text, `always`: all, `never`: none.",
    )


class VideoAdaptation(_Extension):
    """How videos become frames and a transcript."""

    enabled: bool = Field(True, description="Whether videos are converted.")
    model: Name | None = Field(None, description="Name of the model that describes frames.")
    frames: Annotated[int, Field(ge=1, le=100)] = Field(
        8, description="Number of frames taken from a video."
    )


class AudioAdaptation(_Extension):
    """How recordings are transcribed."""

    enabled: bool = Field(True, description="Whether recordings are transcribed.")
    model: Name | None = Field(
        None,
        description="Name of the model that transcribes. `embedded`: the gateway's own engine.",
    )
    language: Annotated[str, Field(pattern=_LANGUAGE)] | None = Field(
        None, description="Spoken language, as a BCP 47 tag."
    )


class Multimodal(_Extension):
    """Conversion of media that the model cannot read."""

    enabled: bool = Field(True, description="If false, all conversions are disabled.")
    image: ImageAdaptation | None = Field(
        None, description="Conversion of images; enabled by default."
    )
    pdf: PdfAdaptation | None = Field(
        None, description="Conversion of PDF and DOCX; enabled by default."
    )
    video: VideoAdaptation | None = Field(
        None, description="Conversion of videos; disabled if omitted."
    )
    audio: AudioAdaptation | None = Field(
        None, description="Transcription of recordings; disabled if omitted."
    )


class Strategy(_Extension):
    """How the steps are scheduled."""

    mode: Literal["sequential"] = Field(
        description="`sequential`: steps are tried one after the other."
    )


class RetryPolicy(_Extension):
    """How often and after which delays a step is retried."""

    max_retries: Annotated[int, Field(ge=0, le=10)] = Field(
        0, description="Maximum retries after the first attempt."
    )
    backoff_factor: Annotated[float, Field(ge=1)] = Field(
        2, description="Factor by which the delay grows with each retry."
    )
    jitter_ms: Count = Field(0, description="Maximum random addition to a delay, in milliseconds.")


class FailOn(_Extension):
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


class FallbackStep(_Extension):
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


class FallbackConfig(_Extension):
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


class MemoryConfig(_Extension):
    """How the conversation called `memory_id` is remembered."""

    memory_mode: Literal["read_write", "read_only"] = Field(
        "read_write",
        description="`read_write`: this turn is stored in the memory. `read_only`: the "
        "memory is used but not changed.",
    )
    history_window: Annotated[int, Field(ge=5)] = Field(
        10, description="Number of latest turns that are sent in full."
    )
    summary_window: Annotated[int, Field(ge=5)] = Field(
        5, description="Number of turns outside the history window that triggers a summary."
    )
    personal_memory: bool = Field(
        False, description="Whether facts about the user, from all conversations, are included."
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


class ExtensionFields(FallbackFields):
    """Fields that a body of either dialect may have beside the dialect's own."""

    model_config = ConfigDict(defer_build=True)

    multimodal: Multimodal | None = Field(
        None,
        description="Conversion of media that the model cannot read; images and PDF if omitted.",
    )
    memory_id: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        None,
        description="Name of the memory: a conversation stored by the gateway, named by "
        "the caller.",
    )
    memory_config: MemoryConfig | None = Field(None, description="Options of the memory.")


EXTENSION_FIELDS = frozenset(ExtensionFields.model_fields)

_FALLBACK_CONFIG: TypeAdapter[FallbackConfig] = TypeAdapter(FallbackConfig)
_FALLBACK_MODES = {
    "disabled": pb.FALLBACK_MODE_DISABLED,
    "auto": pb.FALLBACK_MODE_AUTO,
    "enabled": pb.FALLBACK_MODE_ENABLED,
    "strict": pb.FALLBACK_MODE_STRICT,
}
_MEMORY_MODES = {
    "read_write": pb.Memory.MODE_READ_WRITE,
    "read_only": pb.Memory.MODE_READ_ONLY,
}
_PDF_MODES = {
    "auto": pb.PdfAdaptation.MODE_AUTO,
    "images": pb.PdfAdaptation.MODE_IMAGES,
    "text": pb.PdfAdaptation.MODE_TEXT,
}
_PDF_OCR = {
    "auto": pb.PdfAdaptation.OCR_AUTO,
    "always": pb.PdfAdaptation.OCR_ALWAYS,
    "never": pb.PdfAdaptation.OCR_NEVER,
}


def is_plain(fields: ExtensionFields) -> bool:
    """Return whether no extension needs the conversation, unless the model fails."""
    if EXTENSION_FIELDS.isdisjoint(fields.model_fields_set):
        return True
    return (
        fields.multimodal is None
        and fields.memory_id is None
        and fields.memory_config is None
        and (
            fields.fallback not in ("enabled", "strict")
            or not _may_set_parameters(fields.fallback_config)
        )
    )


def _may_set_parameters(config: object) -> bool:
    """Return whether a fallback config, not validated yet, may have steps with parameters."""
    steps = config.get("steps") if isinstance(config, dict) else None
    if not isinstance(steps, list):
        return True
    for step in steps:
        if not isinstance(step, dict) or step.get("parameters"):
            return True
    return False


def set_extensions(
    request: pb.GenerateRequest,
    fields: ExtensionFields,
    read_parameters: ReadParameters,
    source_map: SourceMap,
) -> None:
    """Add the extension fields of a validated body to `request`.

    Args:
        request: modified in place.
        fields: the body.
        read_parameters: parses the parameters of a fallback step, in the body's dialect.
        source_map: positions of the request's messages; those of fallback steps are added.

    Raises:
        GatewayError: invalid, naming the field.
    """
    if EXTENSION_FIELDS.isdisjoint(fields.model_fields_set):
        return
    if fields.multimodal is not None:
        _set_multimodal(request.multimodal, fields.multimodal)
    set_fallback(request, fields, read_parameters, source_map)
    _set_memory(request, fields)


def set_fallback(
    request: pb.GenerateRequest | pb.EmbedRequest,
    fields: FallbackFields,
    read_parameters: ReadParameters,
    source_map: SourceMap,
) -> None:
    """Add `fallback` and `fallback_config` of a validated body to `request`; see `set_extensions`.

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


def _set_multimodal(target: pb.Multimodal, given: Multimodal) -> None:
    """Copy the given fields; absent fields stay absent, as absence has a meaning."""
    target.SetInParent()
    if "enabled" in given.model_fields_set:
        target.enabled = given.enabled
    for medium in (given.image, given.pdf, given.video, given.audio):
        match medium:
            case ImageAdaptation():
                target.image.CopyFrom(pb.ImageAdaptation(**_given(medium)))
            case PdfAdaptation():
                values = _given(medium)
                if "mode" in values:
                    values["mode"] = _PDF_MODES[medium.mode]
                if "ocr" in values:
                    values["ocr"] = _PDF_OCR[medium.ocr]
                target.pdf.CopyFrom(pb.PdfAdaptation(**values))
            case VideoAdaptation():
                target.video.CopyFrom(pb.VideoAdaptation(**_given(medium)))
            case AudioAdaptation():
                target.audio.CopyFrom(pb.AudioAdaptation(**_given(medium)))


def _given(fields: BaseModel) -> dict[str, Any]:
    return fields.model_dump(exclude_unset=True, exclude_none=True)


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


def _chain(given: FallbackConfig) -> pb.FallbackConfig:
    """Return a config without the parameters of its steps."""
    config = pb.FallbackConfig(strategy_mode=given.strategy.mode)
    if given.global_timeout_ms is not None:
        config.global_timeout_ms = given.global_timeout_ms
    if given.max_total_retries is not None:
        config.max_total_retries = given.max_total_retries
    for step in given.steps:
        _set_step(config.steps.add(), step)
    return config


def _set_step(target: pb.FallbackStep, given: FallbackStep) -> None:
    target.step_id = given.step_id
    target.model = given.model
    if given.timeout_ms is not None:
        target.timeout_ms = given.timeout_ms
    if given.retry_policy is not None:
        target.retry_policy.CopyFrom(pb.RetryPolicy(**_given(given.retry_policy)))
    if given.fail_on is not None:
        target.fail_on.CopyFrom(pb.FailOn(**_given(given.fail_on)))


def check_memory_id(name: str) -> None:
    """Validate the characters of a memory id; its length is checked elsewhere.

    Raises:
        GatewayError: invalid.
    """
    if not (name and name.isprintable()):
        raise invalid("memory_id", "memory_id: must be 1 to 256 printable characters")


def _set_memory(request: pb.GenerateRequest, fields: ExtensionFields) -> None:
    config = fields.memory_config
    if fields.memory_id is None and config is None:
        return
    if fields.memory_id is None and not (config and config.personal_memory):
        raise invalid(
            "memory_id",
            "memory_id: is required with memory_config, unless personal_memory is true",
        )
    if fields.memory_id is not None:
        check_memory_id(fields.memory_id)
        request.memory.memory_id = fields.memory_id
    if config is None:
        return
    given = _given(config)
    if "memory_mode" in given:
        request.memory.mode = _MEMORY_MODES[config.memory_mode]
    if "history_window" in given:
        # No memory has that many turns, so larger values are equivalent.
        request.memory.history_window = min(config.history_window, UINT32_MAX)
    if "summary_window" in given:
        request.memory.summary_window = min(config.summary_window, UINT32_MAX)
    request.memory.personal_memory = config.personal_memory
