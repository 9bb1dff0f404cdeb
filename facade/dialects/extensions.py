"""Extension fields of the gateway, shared by all dialects, and their translation.

`multimodal`, `memory_id` and `memory_config` (contract, Chat-completions extensions); the fields
about fallback are in the module `fallback`. The wire types of bodies inherit from
`ExtensionFields`; after validation, `set_extensions` adds them to the request.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from facade.dialects.fallback import (
    FALLBACK_FIELDS,
    FallbackFields,
    ReadParameters,
    may_set_parameters,
    set_fallback,
)
from facade.dialects.field_types import UINT32_MAX, Extension, Name, Positive, given_values
from facade.dialects.paths import SourceMap
from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import invalid

_LANGUAGE = r"^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8}){0,8}$"


class ImageAdaptation(Extension):
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


class PdfAdaptation(Extension):
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


class VideoAdaptation(Extension):
    """How videos become frames and a transcript."""

    enabled: bool = Field(True, description="Whether videos are converted.")
    model: Name | None = Field(None, description="Name of the model that describes frames.")
    frames: Annotated[int, Field(ge=1, le=100)] = Field(
        8, description="Number of frames taken from a video."
    )


class AudioAdaptation(Extension):
    """How recordings are transcribed."""

    enabled: bool = Field(True, description="Whether recordings are transcribed.")
    model: Name | None = Field(
        None,
        description="Name of the model that transcribes. `embedded`: the gateway's own engine.",
    )
    language: Annotated[str, Field(pattern=_LANGUAGE)] | None = Field(
        None, description="Spoken language, as a BCP 47 tag."
    )


class Multimodal(Extension):
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


class MemoryConfig(Extension):
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
            or not may_set_parameters(fields.fallback_config)
        )
    )


def set_extensions(
    request: pb.GenerateRequest,
    fields: ExtensionFields,
    read_parameters: ReadParameters,
    source_map: SourceMap,
) -> None:
    """Add the extension fields of a validated body to `request`; most bodies have none.

    Args:
        request: modified in place.
        fields: the body.
        read_parameters: parses the parameters of a fallback step, in the body's dialect.
        source_map: positions of the request's messages; those of fallback steps are added.

    Raises:
        GatewayError: invalid, naming the field.
    """
    if fields.multimodal is not None:
        _set_multimodal(request.multimodal, fields.multimodal)
    if not FALLBACK_FIELDS.isdisjoint(fields.model_fields_set):
        set_fallback(request, fields, read_parameters, source_map)
    _set_memory(request, fields)


def _set_multimodal(target: pb.Multimodal, settings: Multimodal) -> None:
    """Copy the given fields; absent fields stay absent, as absence has a meaning."""
    target.SetInParent()
    if "enabled" in settings.model_fields_set:
        target.enabled = settings.enabled
    for medium in (settings.image, settings.pdf, settings.video, settings.audio):
        match medium:
            case ImageAdaptation():
                target.image.CopyFrom(pb.ImageAdaptation(**given_values(medium)))
            case PdfAdaptation():
                values = given_values(medium)
                if "mode" in values:
                    values["mode"] = _PDF_MODES[medium.mode]
                if "ocr" in values:
                    values["ocr"] = _PDF_OCR[medium.ocr]
                target.pdf.CopyFrom(pb.PdfAdaptation(**values))
            case VideoAdaptation():
                target.video.CopyFrom(pb.VideoAdaptation(**given_values(medium)))
            case AudioAdaptation():
                target.audio.CopyFrom(pb.AudioAdaptation(**given_values(medium)))


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
    set_fields = given_values(config)
    if "memory_mode" in set_fields:
        request.memory.mode = _MEMORY_MODES[config.memory_mode]
    if "history_window" in set_fields:
        # No memory has that many turns, so larger values are equivalent.
        request.memory.history_window = min(config.history_window, UINT32_MAX)
    if "summary_window" in set_fields:
        request.memory.summary_window = min(config.summary_window, UINT32_MAX)
    request.memory.personal_memory = config.personal_memory
