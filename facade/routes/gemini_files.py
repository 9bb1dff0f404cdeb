"""Google's files: uploads in its resumable protocol.

The first request names the file and gets an address, to which the content is sent in one request or
several, at any worker. The address stands for the caller: Google's clients send no key there.
All other requests are those of `facade.routes.files`, in Google's format.

Source: ai.google.dev/gemini-api/docs/files and the requests of Google's clients.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import grpc
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from facade import credentials
from facade.bodies import PieceReader, ReceivedBody
from facade.dialects import gemini
from facade.dialects.json_schemas import OBJECT, STRING, described, open_object
from facade.dialects.mime_types import mime_type
from facade.dialects.paths import CallerPaths, FieldNames, SourceMap
from facade.dialects.validation import read
from facade.endpoint import Answer, Body, EndpointSpec, path_parameter, query_parameter
from facade.failures import to_gateway_error
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.request_address import address_of
from facade.request_context import authenticate
from facade.routes import files
from facade.routes.generation import rpc_metadata
from facade.transfers.key_shares import divide, unite
from facade.transfers.upload_content import add_content
from gateway.errors.v1 import errors_pb2
from gateway.files.v1.files_pb2 import (
    PURPOSE_USER_DATA,
    UPLOAD_STATUS_PENDING,
    CancelUploadRequest,
    CompleteUploadRequest,
    CreateUploadRequest,
    FileHeader,
    FileTrailer,
    GetUploadKeyShareRequest,
    GetUploadRequest,
    Upload,
)
from services.common.errors import GatewayError, from_rpc_error, invalid
from services.common.grpc.channels import REQUEST_ID_KEY
from services.common.text.texts import INT64_DIGITS, parse_digits

_PROTOCOL, _COMMAND = "x-goog-upload-protocol", "x-goog-upload-command"
_LENGTH, _TYPE = "x-goog-upload-header-content-length", "x-goog-upload-header-content-type"
_NAME = "x-goog-upload-file-name"
_OFFSET, _STATUS = "x-goog-upload-offset", "x-goog-upload-status"
_RECEIVED, _URL = "x-goog-upload-size-received", "x-goog-upload-url"
_RESUMABLE, _START, _UPLOAD = "resumable", "start", "upload"
_FINALIZE, _QUERY, _CANCEL = "finalize", "query", "cancel"
_COMMANDS = frozenset({_UPLOAD, _FINALIZE, _QUERY, _CANCEL})
_ACTIVE = {_STATUS: "active"}
# Google's clients send a piece again unless there is a status.
_FINAL = {_STATUS: "final"}
_MAY_RETRY = frozenset((429, *range(500, 600)))
_MAX_START = 64 << 10  # bytes of the body that begins an upload
_UNNAMED = "unnamed"
_NAMES = FieldNames(
    {"offset": _OFFSET, "chunk": "file", "size_bytes": _LENGTH, "filename": "file.displayName"}
)


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
    async with ReceivedBody(exchange, _MAX_START) as held:
        fields = read(_START_BODY, held.pop() or b"{}").file or FileFields()
    stored_share, address_share = divide(exchange.api_key)
    rpc_request = CreateUploadRequest(
        header=FileHeader(
            filename=fields.displayName or headers.get(_NAME) or _UNNAMED,
            mime_type=mime_type(headers.get(_TYPE) or fields.mimeType or ""),
        ),
        trailer=FileTrailer(purpose=PURPOSE_USER_DATA),
        size_bytes=_size(headers),
        key_share=stored_share,
    )
    exchange.caller_paths = CallerPaths(_NAMES, SourceMap())
    store = exchange.context.files
    created = await store.CreateUpload(rpc_request, metadata=rpc_metadata(exchange))
    token = f"{created.upload.id}.{address_share}"
    address = f"{address_of(exchange)}/upload/v1beta/content/{token}"
    return JsonResponse(b"{}", {_URL: address, **_ACTIVE})


async def receive(exchange: Exchange) -> Response:
    """Receive content of an upload, and make the file once it is complete."""
    exchange.caller_paths = CallerPaths(_NAMES, SourceMap())
    try:
        return await _receive(exchange)
    except ConnectionError:
        raise  # the caller has left
    except Exception as error:
        failure = to_gateway_error(error, exchange)
        if failure.http_status not in _MAY_RETRY:
            failure.headers = {**failure.headers, **_FINAL}
        raise failure from None


async def _receive(exchange: Exchange) -> Response:
    upload_id = await _authenticate(exchange)
    commands = {one.strip() for one in exchange.headers.get(_COMMAND, "").split(",")}
    if not commands or not commands <= _COMMANDS:
        raise invalid(_COMMAND, f"{_COMMAND}: must be `upload`, `upload, finalize` or `finalize`")
    store, metadata = exchange.context.files, rpc_metadata(exchange)
    if _CANCEL in commands:
        await store.CancelUpload(CancelUploadRequest(id=upload_id), metadata=metadata)
        return JsonResponse(b"{}", {_STATUS: "cancelled"})
    described = await store.GetUpload(GetUploadRequest(id=upload_id), metadata=metadata)
    upload = described.upload
    is_pending = upload.status == UPLOAD_STATUS_PENDING
    if _QUERY in commands:
        status = _ACTIVE if is_pending else _FINAL
        return JsonResponse(b"{}", {**status, _RECEIVED: str(upload.received_bytes)})
    if is_pending:
        await _add_content(exchange, upload)
        if _FINALIZE not in commands:
            return JsonResponse(b"{}", _ACTIVE)
        # Of a completed one the answer may have been lost.
        finalize = CompleteUploadRequest(id=upload_id)
        upload = (await store.CompleteUpload(finalize, metadata=metadata)).upload
    if not upload.HasField("file"):
        raise _over()
    return JsonResponse(gemini.render_created_file(upload.file, address_of(exchange)), _FINAL)


async def _authenticate(exchange: Exchange) -> str:
    """Authenticate the caller who made the address; return the id of its upload.

    Raises:
        GatewayError: not_found, the address is none of an upload; as `authenticate`.
    """
    upload_id, _, address_share = exchange.path_values["upload_token"].partition(".")
    try:
        stored = await exchange.context.files.GetUploadKeyShare(
            GetUploadKeyShareRequest(id=upload_id),
            metadata=((REQUEST_ID_KEY, exchange.request_id),),
        )
    except grpc.aio.AioRpcError as error:
        failure = from_rpc_error(error)
        if failure.reason == errors_pb2.REASON_NOT_FOUND:
            raise _over() from None
        raise failure from None
    api_key = unite(stored.key_share, address_share)
    if not api_key:
        raise _over()
    exchange.checked.api_key = api_key
    await authenticate(exchange, credentials.GOOGLE)
    return upload_id


async def _add_content(exchange: Exchange, upload: Upload) -> None:
    """Add the body of a request to an upload, which must continue where the last one ended."""
    offset = parse_digits(exchange.headers.get(_OFFSET, "0"), INT64_DIGITS)
    if offset != upload.received_bytes:
        raise invalid(
            _OFFSET, f"{_OFFSET}: must be {upload.received_bytes}, the bytes received so far"
        )
    add_part = partial(exchange.context.files.AddUploadPart, metadata=rpc_metadata(exchange))
    await add_content(PieceReader(exchange), add_part, upload.id, offset)


def _size(headers: Mapping[str, str]) -> int | None:
    """Return the size of the file, or None if it is unknown.

    Raises:
        GatewayError: invalid.
    """
    if _LENGTH not in headers:
        return None
    size = parse_digits(headers[_LENGTH], INT64_DIGITS)
    if size is None:
        raise invalid(_LENGTH, f"{_LENGTH}: must be the size of the file in bytes")
    return size


def _over() -> GatewayError:
    return GatewayError(
        errors_pb2.REASON_NOT_FOUND,
        "this upload has ended or expired; begin again with POST /upload/v1beta/files",
    )


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
        path="/upload/v1beta/content/{upload_token}",
        handler=receive,
        operation_id="uploadContentOfGoogle",
        summary="Send content of an upload in Google's resumable protocol",
        parameters=[path_parameter("upload_token", STRING, "The end of the upload's address.")],
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
