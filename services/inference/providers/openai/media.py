"""Media as content parts of chat completions. Pure."""

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Media
from services.common.errors import GatewayError, invalid
from services.inference.providers.conversation_writer import base64_of, image_type_of
from services.inference.providers.opaque_json import Json
from services.inference.providers.openai.fields import OpenAIFields

_PDF = "application/pdf"
_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/vnd.wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}


def media_part(media: Media, path: str, fields: OpenAIFields) -> Json:
    """Return the content part of the medium at `path`.

    Raises:
        GatewayError: invalid, for a medium without content or stored at the provider; unsupported,
            for a medium that the server does not read.
    """
    if media.WhichOneof("source") is None or (media.HasField("data") and not media.data):
        raise invalid(path, f"{path}: the media content is empty")
    match media.kind:
        case conversation_pb2.MEDIA_KIND_IMAGE:
            return _image(media, path, fields)
        case conversation_pb2.MEDIA_KIND_DOCUMENT:
            return _document(media, path, fields)
        case conversation_pb2.MEDIA_KIND_AUDIO:
            return _audio(media, path, fields)
    raise fields.unsupported(path, "video")


def text_part(text: str) -> Json:
    """Return the content part of a text."""
    return {"type": "text", "text": text}


def is_text(media: Media) -> bool:
    """Return whether a medium is a text file with its content."""
    return bool(media.data) and _mime_type(media).startswith("text/")


def _image(media: Media, path: str, fields: OpenAIFields) -> Json:
    image: Json = {}
    if media.HasField("file_id"):
        fields.check_stored(path)
        raise fields.unsupported(path, "file ids of images")
    if media.HasField("url"):
        if not fields.server.fetches_urls:
            raise fields.unsupported(
                path,
                "URLs of images; send base64 data (with the setting fetches_urls, the provider "
                "fetches URLs)",
            )
        fields.check_address(media.url, path)
        image["url"] = media.url
    else:
        image["url"] = _data_url(image_type_of(media), media.data)
    if media.detail:
        image["detail"] = media.detail
    return {"type": "image_url", "image_url": image}


def _document(media: Media, path: str, fields: OpenAIFields) -> Json:
    if media.HasField("file_id"):
        fields.check_stored(path)
        return {"type": "file", "file": {"file_id": media.file_id}}
    if media.HasField("url"):
        raise _by_value("documents", path, fields)
    if is_text(media):
        try:
            text = media.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise fields.unsupported(path, "text that is not UTF-8") from None
        return text_part(f"[{media.name}]\n{text}" if media.name else text)
    if _mime_type(media) != _PDF:
        raise fields.unsupported(
            path, f"documents of type {media.mime_type!r}; use {_PDF} or text/*"
        )
    file = {
        "filename": media.name or "document.pdf",
        "file_data": _data_url(_PDF, media.data),
    }
    return {"type": "file", "file": file}


def _audio(media: Media, path: str, fields: OpenAIFields) -> Json:
    if not media.data:
        raise _by_value("audio", path, fields)
    form = _AUDIO_FORMATS.get(_mime_type(media))
    if form is None:
        raise fields.unsupported(path, f"audio of type {media.mime_type!r}; use WAV or MP3")
    return {
        "type": "input_audio",
        "input_audio": {"data": base64_of(media.data), "format": form},
    }


def _by_value(kind_in_words: str, path: str, fields: OpenAIFields) -> GatewayError:
    return fields.unsupported(path, f"references to {kind_in_words}; send base64 data")


def _mime_type(media: Media) -> str:
    return media.mime_type.partition(";")[0].strip().lower()


def _data_url(mime_type: str, data: bytes) -> str:
    return f"data:{mime_type};base64,{base64_of(data)}"
