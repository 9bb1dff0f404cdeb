"""Which of a request's extensions this gateway does not have yet.

A request that needs one is refused with the field and a way around, and never
answered as though the field had not been there.
"""

from collections.abc import Iterable

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Dialect, Media, MediaKind
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest, Multimodal
from services.common.errors import GatewayError, not_implemented
from services.inference.providers.base import Target

_EXPLICIT_FALLBACK = {
    inference_pb2.FALLBACK_MODE_ENABLED: "enabled",
    inference_pb2.FALLBACK_MODE_STRICT: "strict",
}

_IMAGE_OFF = "send `multimodal.image.enabled: false`"
_PDF_OFF = "send `multimodal.pdf.enabled: false`"

# Of each medium: what to call it, and how a caller turns its conversion off.
_MEDIA: dict[MediaKind.ValueType, tuple[str, str]] = {
    conversation_pb2.MEDIA_KIND_IMAGE: ("images", _IMAGE_OFF),
    conversation_pb2.MEDIA_KIND_DOCUMENT: ("documents", _PDF_OFF),
    conversation_pb2.MEDIA_KIND_AUDIO: ("audio", "leave out `multimodal.audio`"),
    conversation_pb2.MEDIA_KIND_VIDEO: ("video", "leave out `multimodal.video`"),
}


def check(request: GenerateRequest, target: Target) -> None:
    """Refuse a request that needs an extension which is not there.

    Raises:
        GatewayError: not_implemented, naming the field and what to do instead. A part
            is named by its path in the caller's own JSON as far as that is known:
            messages that were empty, and so dropped on the way in, are not counted.
    """
    check_request(request)
    if target.fallbacks and request.fallback in (
        inference_pb2.FALLBACK_MODE_UNSPECIFIED,
        inference_pb2.FALLBACK_MODE_AUTO,
    ):
        raise not_implemented(
            "fallback",
            f"fallback: {target.name} has fallbacks configured, and this gateway does not"
            ' try them yet; send `fallback: "disabled"` to ask that model alone',
        )
    _check_media(request, target)


def check_request(request: GenerateRequest) -> None:
    """Do the part of `check` for which the target need not be known.

    Raises:
        GatewayError: not_implemented, as of `check`.
    """
    if mode := _EXPLICIT_FALLBACK.get(request.fallback):
        raise not_implemented(
            "fallback",
            f'fallback: this gateway does not serve "{mode}" yet; send'
            ' `fallback: "disabled"` to ask the model alone',
        )
    if request.memory.memory_id:
        raise not_implemented(
            "memory_id",
            "memory_id: this gateway has no memory yet; leave memory_id out and send the"
            " whole conversation in `messages`",
        )
    if request.memory.personal_memory:
        raise not_implemented(
            "memory_config.personal_memory",
            "memory_config.personal_memory: this gateway has no memory yet; leave it out or"
            " send false",
        )
    if request.use_built_in_tools:
        raise not_implemented(
            "use_built_in_tools",
            "use_built_in_tools: this gateway has no tools of its own yet; send false, and"
            " tools of your own in `tools`",
        )


def _check_media(request: GenerateRequest, target: Target) -> None:
    unreadable = frozenset(
        kind for kind in _MEDIA if kind not in target.inputs and _adapts(request.multimodal, kind)
    )
    adapts_documents = _adapts(request.multimodal, conversation_pb2.MEDIA_KIND_DOCUMENT)
    for index, message in enumerate(request.messages):
        for place, block in enumerate(message.blocks):
            kind = block.WhichOneof("kind")
            if kind == "media":
                found = _refusal(block.media, target, unreadable, adapts_documents)
                if found:
                    raise _named(found, _path(request, index, place))
            elif kind == "tool_result":
                for inner, media in _media_of(block.tool_result.blocks):
                    found = _refusal(media, target, unreadable, adapts_documents)
                    if found:
                        raise _named(found, _path(request, index, place, inner))


def _media_of(blocks: Iterable[Block]) -> Iterable[tuple[int, Media]]:
    return (
        (place, block.media)
        for place, block in enumerate(blocks)
        if block.WhichOneof("kind") == "media"
    )


def _refusal(
    media: Media,
    target: Target,
    unreadable: frozenset[MediaKind.ValueType],
    adapts_documents: bool,
) -> str:
    """Say why a medium cannot be served, or "" when it can."""
    if media.WhichOneof("source") == "file_id":
        return "this gateway has no file store yet; send the file's content in place"
    if media.kind in unreadable:
        name, way_out = _MEDIA[media.kind]
    elif adapts_documents and _is_office_document(media):
        # Who reads documents reads PDF and text, and no other format.
        name, way_out = "documents of this format", _PDF_OFF
    else:
        return ""
    return (
        f"{target.name} cannot read {name}, and this gateway does not convert them yet; ask a"
        f" model that can, or {way_out} to pass them on as they are"
    )


def _is_office_document(media: Media) -> bool:
    mime_type = media.mime_type
    return (
        media.kind == conversation_pb2.MEDIA_KIND_DOCUMENT
        and mime_type not in ("", "application/pdf")
        and not mime_type.startswith("text/")
    )


def _adapts(multimodal: Multimodal, kind: MediaKind.ValueType) -> bool:
    """Tell whether a medium is to be converted for a target that cannot read it."""
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


def _named(why: str, path: str) -> GatewayError:
    return not_implemented(path, f"{path}: {why}")


def _path(request: GenerateRequest, index: int, place: int, inner: int | None = None) -> str:
    """Give the path of a block in the words of the request's dialect.

    Anthropic's `system` stands beside `messages`, so a system prompt at the head is
    not counted there; OpenAI's tool message is what holds its one result.
    """
    if request.dialect == Dialect.DIALECT_UNSPECIFIED:
        path = f"messages[{index}].blocks[{place}]"
        return path if inner is None else f"{path}.tool_result.blocks[{inner}]"
    if request.dialect == Dialect.DIALECT_OPENAI:
        return f"messages[{index}].content[{place if inner is None else inner}]"
    if request.messages[0].role == conversation_pb2.ROLE_SYSTEM:
        index -= 1
    path = f"messages[{index}].content[{place}]"
    return path if inner is None else f"{path}.content[{inner}]"
