"""Select the conversion of a medium for a target. Pure.

Media that the target reads are never converted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Media, MediaKind
from gateway.inference.v1.inference_pb2 import Multimodal, PdfAdaptation
from services.inference.adaptation.media_types import DOCX, PDF, essence, is_text, utf8
from services.inference.stored_files import is_stored

IMAGE = conversation_pb2.MEDIA_KIND_IMAGE
DOCUMENT = conversation_pb2.MEDIA_KIND_DOCUMENT
AUDIO = conversation_pb2.MEDIA_KIND_AUDIO
VIDEO = conversation_pb2.MEDIA_KIND_VIDEO

# Names of the kinds of media, in paths and texts.
NAMES: Mapping[MediaKind.ValueType, str] = {
    IMAGE: "image",
    DOCUMENT: "document",
    AUDIO: "recording",
    VIDEO: "film",
}

DEFAULT_MAX_IMAGES = 20
DEFAULT_MAX_PAGES = 50
DEFAULT_FRAMES = 8
MAX_FRAMES = 100


class Conversion(Enum):
    """How a medium is converted.

    The value is the name used in `x-gateway-adapted`. INLINE sends the content without conversion.
    RECALL replaces a stored image whose content is gone by its cached description.
    """

    INLINE = ""
    DESCRIBE = "image-described"
    RECALL = "image-recalled"
    PAGES = "document-pages"
    DESCRIBED_PAGES = "document-pages-described"
    TEXT = "document-text"
    TRANSCRIBE = "audio-transcribed"
    FILM = "video-frames"


@dataclass(frozen=True, slots=True)
class MediaCapabilities:
    """The media capabilities of a target.

    Attributes:
        name: the name of the model, as used by callers.
        inputs: kinds of media that the model reads besides text; None if unknown.
        refused: kinds of media that the model has rejected so far.
        fetches: kinds of media that its provider fetches by URL.
    """

    name: str
    inputs: frozenset[MediaKind.ValueType] | None
    refused: frozenset[MediaKind.ValueType]
    fetches: frozenset[MediaKind.ValueType]

    def reads(self, kind: MediaKind.ValueType) -> bool:
        """Return whether to send a kind of media; unknown models get it until they reject it."""
        return kind not in self.refused and (self.inputs is None or kind in self.inputs)

    def is_known_to_read(self, kind: MediaKind.ValueType) -> bool:
        """Return whether the target is known to read a kind of media."""
        return self.inputs is not None and self.reads(kind)


def adapts(multimodal: Multimodal, kind: MediaKind.ValueType) -> bool:
    """Return whether the request allows conversion of a kind of media."""
    if multimodal.HasField("enabled") and not multimodal.enabled:
        return False
    match kind:
        case conversation_pb2.MEDIA_KIND_IMAGE:
            return not multimodal.image.HasField("enabled") or multimodal.image.enabled
        case conversation_pb2.MEDIA_KIND_DOCUMENT:
            return not multimodal.pdf.HasField("enabled") or multimodal.pdf.enabled
        case conversation_pb2.MEDIA_KIND_AUDIO:
            audio = multimodal.audio
            return multimodal.HasField("audio") and (not audio.HasField("enabled") or audio.enabled)
        case conversation_pb2.MEDIA_KIND_VIDEO:
            video = multimodal.video
            return multimodal.HasField("video") and (not video.HasField("enabled") or video.enabled)
    return False


def conversion_for(
    media: Media, multimodal: Multimodal, capabilities: MediaCapabilities
) -> Conversion | None:
    """Return the conversion of a medium, or None if it is sent unchanged.

    For a medium given by URL, call this again once it is fetched and its type is known.
    """
    kind = media.kind
    source = "data" if is_stored(media) else media.WhichOneof("source")
    if source == "data" and kind != DOCUMENT and capabilities.reads(kind):
        return None  # the common case
    if source == "sha256" and kind == IMAGE:
        return Conversion.RECALL
    if source not in ("data", "url") or not adapts(multimodal, kind):
        return None
    if capabilities.reads(kind) and not _needs_text(media):
        return Conversion.INLINE if source == "url" and kind not in capabilities.fetches else None
    if source == "url":
        return Conversion.INLINE
    match kind:
        case conversation_pb2.MEDIA_KIND_IMAGE:
            return Conversion.DESCRIBE
        case conversation_pb2.MEDIA_KIND_DOCUMENT:
            return _document_conversion(media, multimodal.pdf, capabilities)
        case conversation_pb2.MEDIA_KIND_AUDIO:
            return Conversion.TRANSCRIBE
        case conversation_pb2.MEDIA_KIND_VIDEO:
            return Conversion.FILM
    return None


def _needs_text(media: Media) -> bool:
    """Return whether a document is neither PDF nor UTF-8 text, the formats that models read."""
    mime_type = essence(media.mime_type)
    if media.kind != DOCUMENT or mime_type in ("", PDF):
        return False
    if not mime_type.startswith("text/"):
        return True
    return media.HasField("data") and utf8(media.data) is None


def _document_conversion(
    media: Media, pdf: PdfAdaptation, capabilities: MediaCapabilities
) -> Conversion:
    has_pages = essence(media.mime_type) in (PDF, DOCX)
    if not has_pages or pdf.mode == PdfAdaptation.MODE_TEXT:
        return Conversion.TEXT
    if pdf.mode == PdfAdaptation.MODE_IMAGES:
        return Conversion.PAGES if capabilities.reads(IMAGE) else Conversion.DESCRIBED_PAGES
    # An unknown model may lack vision, and every model reads text.
    return Conversion.PAGES if capabilities.is_known_to_read(IMAGE) else Conversion.TEXT


def may_be_text(media: Media, pdf: PdfAdaptation) -> bool:
    """Return whether a document may become text if its pages cannot be rendered.

    Rendering a DOCX needs fonts for all its letters, which not every machine has.
    """
    return essence(media.mime_type) == DOCX and pdf.mode != PdfAdaptation.MODE_IMAGES


def is_plain_text(media: Media) -> bool:
    """Return whether a document is plain text, which needs no library."""
    return (
        media.kind == DOCUMENT
        and media.HasField("data")
        and is_text(media.mime_type, media.name)
        and utf8(media.data) is not None
    )
