"""Bodies of requests as forms, `multipart/form-data` (RFC 7578). Pure."""

from collections.abc import Iterable
from typing import NamedTuple

from services.common.errors import unsupported


class FormField(NamedTuple):
    """A field of a form.

    Attributes:
        name: its name.
        content: the text, UTF-8, or the bytes of a file.
        filename: the name of a file; None for a text.
        content_type: the media type of a file, or "".
    """

    name: str
    content: bytes
    filename: str | None = None
    content_type: str = ""


def form_of(model: str, fields: Iterable[FormField], boundary: str) -> bytes:
    """Return the body of a request for a model.

    Args:
        model: the provider's name for the model, sent as the field `model`.
        fields: the other fields, whose names and types are printable.
        boundary: a string that no field contains.

    Raises:
        GatewayError: unsupported, for a model name that a form cannot contain.
    """
    if not model.isprintable():
        raise unsupported(
            "model", "the model's name contains characters that are not allowed in a form"
        )
    return form((FormField("model", model.encode()), *fields), boundary)


def form(fields: Iterable[FormField], boundary: str) -> bytes:
    """Return the body of a request; no field contains the boundary."""
    pieces: list[bytes] = []
    for field in fields:
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(field.name)}"'
        if field.filename is not None:
            head += f'; filename="{_quoted(field.filename)}"'
        if field.content_type:
            head += f"\r\nContent-Type: {field.content_type}"
        pieces += (head.encode(), b"\r\n\r\n", field.content, b"\r\n")
    return b"".join([*pieces, f"--{boundary}--\r\n".encode()])


def _quoted(text: str) -> str:
    """Return a parameter's value as browsers write it (the HTML standard)."""
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
