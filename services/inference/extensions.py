"""Which of a request's extensions this gateway does not have yet.

A request that needs one is refused with the field and a way around, and never
answered as though the field had not been there.
"""

from collections.abc import Iterable

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Media, MediaKind
from gateway.inference.v1.inference_pb2 import Multimodal
from services.common.errors import not_implemented
from services.inference.media import Found
from services.inference.providers.base import Target

_IMAGE_OFF = "send `multimodal.image.enabled: false`"
_PDF_OFF = "send `multimodal.pdf.enabled: false`"

# Of each medium: what to call it, and how a caller turns its conversion off.
_MEDIA: dict[MediaKind.ValueType, tuple[str, str]] = {
    conversation_pb2.MEDIA_KIND_IMAGE: ("images", _IMAGE_OFF),
    conversation_pb2.MEDIA_KIND_DOCUMENT: ("documents", _PDF_OFF),
    conversation_pb2.MEDIA_KIND_AUDIO: ("audio", "leave out `multimodal.audio`"),
    conversation_pb2.MEDIA_KIND_VIDEO: ("video", "leave out `multimodal.video`"),
}


def check_media(found: Iterable[Found], multimodal: Multimodal, target: Target) -> None:
    """Refuse a medium that the target cannot read and that is to be converted for it.

    Raises:
        GatewayError: not_implemented, naming the part and what to do instead.
    """
    for one in found:
        media = one.block.media
        if not adapts(multimodal, media.kind):
            continue
        if not target.reads(media.kind):
            name, way_out = _MEDIA[media.kind]
        elif _is_office_document(media):
            # Who reads documents reads PDF and text, and no other format.
            name, way_out = "documents of this format", _PDF_OFF
        else:
            continue
        raise not_implemented(
            one.path,
            f"{one.path}: {target.name} cannot read {name}, and this gateway does not convert"
            f" them yet; ask a model that can, or {way_out} to pass them on as they are",
        )


def can_read(target: Target, media: Media) -> bool:
    """Return whether a model reads a medium as it is."""
    return target.reads(media.kind) and not _is_office_document(media)


def _is_office_document(media: Media) -> bool:
    mime_type = media.mime_type
    return (
        media.kind == conversation_pb2.MEDIA_KIND_DOCUMENT
        and mime_type not in ("", "application/pdf")
        and not mime_type.startswith("text/")
    )


def adapts(multimodal: Multimodal, kind: MediaKind.ValueType) -> bool:
    """Return whether a medium is to be converted for a target that cannot read it."""
    if multimodal.HasField("enabled") and not multimodal.enabled:
        return False
    match kind:
        case conversation_pb2.MEDIA_KIND_IMAGE:
            return not multimodal.image.HasField("enabled") or multimodal.image.enabled
        case conversation_pb2.MEDIA_KIND_DOCUMENT:
            return not multimodal.pdf.HasField("enabled") or multimodal.pdf.enabled
        case conversation_pb2.MEDIA_KIND_AUDIO:
            return multimodal.HasField("audio")
        case conversation_pb2.MEDIA_KIND_VIDEO:
            return multimodal.HasField("video")
    return False
