"""Google's files: uploads in its resumable protocol; see `facade.transfers.resumable_uploads`.

All other requests are those of `facade.routes.files`, in Google's format.
"""

from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from facade import credentials
from facade.bodies import PieceReader, ReceivedBody
from facade.dialects import gemini
from facade.dialects.json_schemas import OBJECT, STRING, described, open_object
from facade.dialects.validation import read
from facade.endpoint import Answer, Body, EndpointSpec, path_parameter, query_parameter
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.request_address import address_of
from facade.request_context import authenticate
from facade.routes import files
from facade.routes.generation import rpc_metadata
from facade.transfers.file_upload import CHUNK, FileUpload
from facade.transfers.resumable_uploads import ResumableUpload
from facade.transfers.uploads import mime_type, too_large
from gateway.files.v1.files_pb2 import PURPOSE_USER_DATA, File, FileHeader, FileTrailer
from services.common.errors import GatewayError, conflict, invalid
from services.common.text.texts import parse_digits

_PROTOCOL, _COMMAND = "x-goog-upload-protocol", "x-goog-upload-command"
_LENGTH, _TYPE = "x-goog-upload-header-content-length", "x-goog-upload-header-content-type"
_NAME = "x-goog-upload-file-name"
_OFFSET, _STATUS = "x-goog-upload-offset", "x-goog-upload-status"
_RECEIVED, _URL = "x-goog-upload-size-received", "x-goog-upload-url"
_RESUMABLE, _START, _UPLOAD = "resumable", "start", "upload"
_FINALIZE, _QUERY, _CANCEL = "finalize", "query", "cancel"
_COMMANDS = frozenset({_UPLOAD, _FINALIZE, _QUERY, _CANCEL})
_ACTIVE = {_STATUS: "active"}
# Google's clients ask again unless there is a status.
_FINAL = {_STATUS: "final"}
_MAX_START = 64 << 10  # bytes of the body that begins an upload
_UNNAMED = "unnamed"


class FileFields(BaseModel):
    """The fields of a file that a caller may set."""

    model_config = ConfigDict(strict=True, extra="ignore", defer_build=True)

    displayName: str | None = Field(None, description="Name of the file.")
    mimeType: str | None = Field(None, description="MIME type.")

    _spelling = model_validator(mode="before")(gemini.camel_case)


class StartUploadBody(BaseModel):
    """The body of a request that begins an upload."""

    model_config = ConfigDict(strict=True, extra="ignore", defer_build=True)

    file: FileFields | None = Field(None, description="The file.")


_START_BODY: TypeAdapter[StartUploadBody] = TypeAdapter(StartUploadBody)


async def start(exchange: Exchange) -> Response:
    """Begin an upload; the response has the address for the content."""
    headers = exchange.headers
    if headers.get(_PROTOCOL) != _RESUMABLE:
        raise invalid(_PROTOCOL, f"{_PROTOCOL}: must be {_RESUMABLE}")
    if headers.get(_COMMAND) != _START:
        raise invalid(_COMMAND, f"{_COMMAND}: must be {_START}")
    size = parse_digits(headers.get(_LENGTH, "0"))
    if size is None:
        raise invalid(_LENGTH, f"{_LENGTH}: must be the size of the file in bytes")
    max_file_bytes = exchange.context.settings.limits.max_file_bytes
    if size > max_file_bytes:
        raise too_large(max_file_bytes)
    async with ReceivedBody(exchange, _MAX_START) as held:
        fields = read(_START_BODY, held.pop() or b"{}").file or FileFields()
    header = FileHeader(
        filename=fields.displayName or headers.get(_NAME) or _UNNAMED,
        mime_type=mime_type(headers.get(_TYPE) or fields.mimeType or ""),
    )
    assert exchange.caller is not None, "it has been authenticated"
    upload = exchange.context.uploads.begin(
        exchange.caller.user_id, exchange.api_key, header, exchange.charge()
    )
    address = f"{address_of(exchange)}/upload/v1beta/content/{upload.id}"
    return JsonResponse(b"{}", {_URL: address, **_ACTIVE})


async def receive(exchange: Exchange) -> Response:
    """Receive content of an upload, and store the file once it is complete."""
    try:
        return await _receive(exchange)
    except GatewayError as error:
        error.headers = {**error.headers, **_FINAL}
        raise


async def _receive(exchange: Exchange) -> Response:
    uploads = exchange.context.uploads
    upload = uploads.find(exchange.path_values["upload_id"])
    exchange.checked.api_key = upload.api_key
    await authenticate(exchange, credentials.GOOGLE)
    commands = {one.strip() for one in exchange.headers.get(_COMMAND, "").split(",")}
    if not commands or not commands <= _COMMANDS:
        raise invalid(_COMMAND, f"{_COMMAND}: must be `upload`, `upload, finalize` or `finalize`")
    if upload.is_busy:
        raise conflict(_COMMAND, f"{_COMMAND}: another request of this upload is in progress")
    if _QUERY in commands:
        return JsonResponse(b"{}", {**_ACTIVE, _RECEIVED: str(upload.received)})
    if _CANCEL in commands:
        uploads.end(upload)
        return JsonResponse(b"{}", {_STATUS: "cancelled"})
    _check_offset(exchange, upload)
    upload.is_busy, goes_on = True, False
    try:
        if _FINALIZE not in commands:
            await _hold(exchange, upload)
            goes_on = True
            return JsonResponse(b"{}", _ACTIVE)
        file = await _store(exchange, upload)
    finally:
        upload.is_busy = False
        if not goes_on:
            uploads.end(upload)
    return JsonResponse(gemini.render_created_file(file, address_of(exchange)), _FINAL)


def _check_offset(exchange: Exchange, upload: ResumableUpload) -> None:
    offset = parse_digits(exchange.headers.get(_OFFSET, "0"))
    if offset != upload.received:
        raise invalid(_OFFSET, f"{_OFFSET}: must be {upload.received}, the bytes received so far")


async def _hold(exchange: Exchange, upload: ResumableUpload) -> None:
    """Hold a piece of the content until the last one arrives."""
    max_file_bytes = exchange.context.settings.limits.max_file_bytes
    reader = PieceReader(exchange)
    while data := await reader.next(CHUNK):
        upload.received += len(data)
        if upload.received > max_file_bytes:
            raise too_large(max_file_bytes)
        upload.charge.reserve(len(data))
        upload.pieces.append(data)


async def _store(exchange: Exchange, upload: ResumableUpload) -> File:
    """Store the content that is held, followed by that of the request."""
    max_file_bytes = exchange.context.settings.limits.max_file_bytes
    create_file = exchange.context.files.CreateFile
    with FileUpload(partial(create_file, metadata=rpc_metadata(exchange))) as call:
        await call.add(upload.header)
        for piece in upload.pieces:
            await call.add(piece)
        reader = PieceReader(exchange)
        while data := await reader.next(CHUNK):
            upload.received += len(data)
            if upload.received > max_file_bytes:
                raise too_large(max_file_bytes)
            await call.add(data)
        return await call.finish(FileTrailer(purpose=PURPOSE_USER_DATA))


_FILE = open_object(
    {
        "name": described(STRING, "`files/` and an id."),
        "displayName": STRING,
        "mimeType": STRING,
        "sizeBytes": described(STRING, "Size in bytes, in digits."),
        "createTime": STRING,
        "expirationTime": STRING,
        "sha256Hash": STRING,
        "uri": described(STRING, "The `fileUri` in contents."),
        "state": STRING,
    }
)
_PAGE = (
    query_parameter("pageSize", {"type": "integer", "minimum": 1, "maximum": 100}),
    query_parameter("pageToken", STRING, "The `nextPageToken` of the previous page."),
)
_HEADERS: Any = (
    {
        "name": "X-Goog-Upload-Protocol",
        "in": "header",
        "required": True,
        "schema": {"const": _RESUMABLE},
    },
    {
        "name": "X-Goog-Upload-Command",
        "in": "header",
        "required": True,
        "schema": {"const": _START},
    },
)

ENDPOINTS = (
    EndpointSpec(
        method="POST",
        path="/upload/v1beta/files",
        handler=start,
        operation_id="startUploadOfGoogle",
        summary="Begin an upload in Google's resumable protocol",
        parameters=_HEADERS,
        body=Body(
            StartUploadBody,
            is_required=False,
            example={"file": {"displayName": "notes.txt"}},
        ),
        answer=Answer("The upload has begun; `x-goog-upload-url` has its address"),
    ),
    EndpointSpec(
        method="POST",
        path="/upload/v1beta/content/{upload_id}",
        handler=receive,
        operation_id="uploadContentOfGoogle",
        summary="Send content of an upload in Google's resumable protocol",
        parameters=[path_parameter("upload_id", STRING, "The secret in the upload's address.")],
        body=Body({"type": "string", "format": "binary"}, "application/octet-stream"),
        answer=Answer("The file, once complete", [open_object({"file": _FILE}), OBJECT]),
    ),
    EndpointSpec(
        method="GET",
        path="/v1beta/files",
        handler=files.list_files,
        operation_id="listFilesOfGoogle",
        summary="List the caller's files in Google's format",
        parameters=_PAGE,
        answer=Answer("A page of files"),
    ),
    EndpointSpec(
        method="GET",
        path="/v1beta/files/{file_id}",
        handler=files.get_file,
        operation_id="getFileOfGoogle",
        summary="Get a file in Google's format",
        answer=Answer("The file", [_FILE]),
    ),
    EndpointSpec(
        method="DELETE",
        path="/v1beta/files/{file_id}",
        handler=files.delete,
        operation_id="deleteFileOfGoogle",
        summary="Delete a file in Google's format",
        answer=Answer("The file was deleted"),
    ),
)
