"""Uploads in parts, in OpenAI's format."""

from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from facade.dialects.mime_types import mime_type
from facade.dialects.openai.files import file_object
from facade.dialects.paths import FieldNames
from facade.dialects.purposes import NAMES, parse_purpose
from facade.dialects.validation import read
from gateway.files.v1.files_pb2 import (
    UPLOAD_STATUS_CANCELLED,
    UPLOAD_STATUS_COMPLETED,
    UPLOAD_STATUS_PENDING,
    CompleteUploadRequest,
    CreateUploadRequest,
    FileHeader,
    FileTrailer,
    Upload,
    UploadPart,
    UploadPartOrder,
)
from services.common.settings import MAX_FILE_LIFETIME_S

# Callers' names of the service's fields: of an upload, and of parts and completions.
UPLOAD_NAMES: Final = FieldNames({"file": "bytes"})
PART_NAMES: Final = FieldNames(
    {
        "file": "data",
        "chunk": "data",
        "order": "part_ids",
        "order.part_ids": "part_ids",
        "id": "upload_id",
        "size_bytes": "part_ids",
    }
)
UPLOAD_EXAMPLE: Final = {
    "bytes": 21,
    "filename": "notes.txt",
    "mime_type": "text/plain",
    "purpose": "user_data",
}
_MAX_PARTS = 1_000
_STATUSES = {
    UPLOAD_STATUS_PENDING: "pending",
    UPLOAD_STATUS_COMPLETED: "completed",
    UPLOAD_STATUS_CANCELLED: "cancelled",
}


class ExpiresAfter(BaseModel):
    """When a file expires."""

    model_config = ConfigDict(strict=True, extra="ignore", defer_build=True)

    anchor: Literal["created_at"] = Field(description="From when the time counts.")
    seconds: Annotated[int, Field(ge=1, le=MAX_FILE_LIFETIME_S)] = Field(
        description="Seconds until expiration."
    )


class UploadBody(BaseModel):
    """The body of a request that begins an upload."""

    model_config = ConfigDict(strict=True, extra="ignore", defer_build=True)

    bytes: Annotated[int, Field(ge=0, lt=1 << 63)] = Field(description="Size of the file.")
    filename: str = Field(description="Name of the file.")
    mime_type: str = Field(description="MIME type of the file, if its content does not say.")
    purpose: str = Field(description="Purpose of the file.")
    expires_after: ExpiresAfter | None = Field(
        None, description="When the file expires, from its completion on; 30 days if omitted."
    )


class UploadCompletionBody(BaseModel):
    """The body of a request that completes an upload."""

    model_config = ConfigDict(strict=True, extra="ignore", defer_build=True)

    part_ids: Annotated[list[str], Field(max_length=_MAX_PARTS)] = Field(
        description="The parts in their order; others are deleted."
    )
    md5: str | None = Field(None, description="MD5 digest of the file in hex digits.")


_UPLOAD_BODY: TypeAdapter[UploadBody] = TypeAdapter(UploadBody)
_COMPLETION_BODY: TypeAdapter[UploadCompletionBody] = TypeAdapter(UploadCompletionBody)


def parse_upload(body: bytes) -> CreateUploadRequest:
    """Parse the body of a request that begins an upload.

    Raises:
        GatewayError: invalid, naming the field.
    """
    fields = read(_UPLOAD_BODY, body)
    trailer = FileTrailer(purpose=parse_purpose(fields.purpose))
    if fields.expires_after is not None:
        trailer.expires_after_s = fields.expires_after.seconds
    return CreateUploadRequest(
        header=FileHeader(filename=fields.filename, mime_type=mime_type(fields.mime_type)),
        trailer=trailer,
        size_bytes=fields.bytes,
    )


def parse_completion(upload_id: str, body: bytes) -> CompleteUploadRequest:
    """Parse the body of a request that completes an upload.

    Raises:
        GatewayError: invalid, naming the field.
    """
    fields = read(_COMPLETION_BODY, body)
    return CompleteUploadRequest(
        id=upload_id, order=UploadPartOrder(part_ids=fields.part_ids), md5=fields.md5 or ""
    )


def render_upload(upload: Upload) -> bytes:
    """Return the JSON of an upload."""
    written: dict[str, Any] = {
        "object": "upload",
        "id": upload.id,
        "bytes": upload.size_bytes if upload.HasField("size_bytes") else upload.received_bytes,
        "created_at": upload.created_at,
        "expires_at": upload.expires_at,
        "filename": upload.filename,
        "purpose": NAMES[upload.purpose],
        "status": _STATUSES[upload.status],
        "file": file_object(upload.file) if upload.HasField("file") else None,
    }
    return orjson.dumps(written)


def render_part(part: UploadPart) -> bytes:
    """Return the JSON of a part."""
    return orjson.dumps(
        {
            "object": "upload.part",
            "id": part.id,
            "created_at": part.created_at,
            "upload_id": part.upload_id,
        }
    )
