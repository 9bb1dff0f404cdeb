"""Resumable uploads in the tus protocol (tus.io/protocols/resumable-upload).

A client creates an upload, sends its content in one request or several, one of which may state the
size if it was unknown, and asks for the bytes received before it continues. The last byte makes the
file, whose id is in `x-gateway-file-id`. The statuses are those of the protocol, and errors have
OpenAI's format.
"""

from collections.abc import Awaitable, Callable
from functools import partial

from facade.bodies import PieceReader
from facade.dialects import tus
from facade.dialects.paths import CallerPaths, FieldNames, SourceMap
from facade.endpoint import Answer, Body, EndpointSpec
from facade.failures import to_gateway_error
from facade.http.exchange import Exchange
from facade.http.responses import Response, WholeResponse
from facade.http_errors import HttpExchangeError, unsupported_media_type
from facade.request_address import address_of
from facade.routes.generation import rpc_metadata
from facade.transfers.upload_content import add_content
from gateway.errors.v1 import errors_pb2
from gateway.files.v1.files_pb2 import (
    UPLOAD_STATUS_PENDING,
    CancelUploadRequest,
    CompleteUploadRequest,
    DeleteFileRequest,
    GetUploadRequest,
    SetUploadSizeRequest,
    Upload,
)
from services.common.errors import GatewayError, conflict, invalid

_CONTENT = "application/offset+octet-stream"
_FILE_ID = "x-gateway-file-id"
_RESUMABLE = "Tus-Resumable"
_OVERRIDE = "X-HTTP-Method-Override"
_NAMES = FieldNames(
    {
        "file": "Upload-Length",
        "chunk": "Upload-Length",
        "size_bytes": "Upload-Length",
        "offset": "Upload-Offset",
        "filename": "Upload-Metadata",
    }
)
_VERSIONED = {_RESUMABLE: tus.VERSION}

_Handler = Callable[[Exchange], Awaitable[WholeResponse]]


def _speaking_tus(handler: _Handler) -> Callable[[Exchange], Awaitable[Response]]:
    """Return a handler that checks the version of the protocol, and names it in each response."""

    async def handle(exchange: Exchange) -> Response:
        exchange.caller_paths = CallerPaths(_NAMES, SourceMap())
        try:
            if exchange.method != "OPTIONS":
                _check_version(exchange)
            response = await handler(exchange)
        except ConnectionError:
            raise  # the caller has left
        except Exception as error:
            failure = to_gateway_error(error, exchange)
            failure.headers = {**failure.headers, **_VERSIONED}
            raise failure from None
        response.headers = {**response.headers, **_VERSIONED}
        return response

    return handle


async def discover(exchange: Exchange) -> WholeResponse:
    """Describe the server."""
    max_file_bytes = exchange.context.settings.limits.max_file_bytes
    return WholeResponse(headers=tus.capabilities(max_file_bytes), status=204)


async def create(exchange: Exchange) -> WholeResponse:
    """Create an upload, perhaps with the beginning of its content."""
    rpc_request = tus.parse_creation(exchange.headers)
    files = exchange.context.files
    created = await files.CreateUpload(rpc_request, metadata=rpc_metadata(exchange))
    upload = created.upload
    location = f"{address_of(exchange)}{exchange.path.rstrip('/')}/{upload.id}"
    received = 0
    if exchange.headers.get("content-type") == _CONTENT:
        received = await _receive(exchange, upload, 0)
    headers = {**await _progress(exchange, upload, received), "Location": location}
    return WholeResponse(headers=headers, status=201)


async def describe(exchange: Exchange) -> WholeResponse:
    """Describe an upload: the bytes received, and the file that it has become."""
    upload = await _get(exchange)
    made = await _progress(exchange, upload, upload.received_bytes)
    return WholeResponse(headers={**tus.description(upload), **made})


async def receive(exchange: Exchange) -> WholeResponse:
    """Receive content that follows the bytes received."""
    if exchange.content_type != _CONTENT:
        raise unsupported_media_type(exchange.content_type, takes=_CONTENT)
    offset, size = tus.parse_offset(exchange.headers), tus.parse_size(exchange.headers)
    upload = await _get(exchange)
    if offset != upload.received_bytes:
        raise conflict(
            "Upload-Offset", f"Upload-Offset: must be {upload.received_bytes}, the bytes received"
        )
    if size is not None and (size != upload.size_bytes or not upload.HasField("size_bytes")):
        rpc_request = SetUploadSizeRequest(id=upload.id, size_bytes=size)
        sized = await exchange.context.files.SetUploadSize(
            rpc_request, metadata=rpc_metadata(exchange)
        )
        upload = sized.upload
    received = offset
    if upload.status == UPLOAD_STATUS_PENDING:
        received = await _receive(exchange, upload, offset)
    return WholeResponse(headers=await _progress(exchange, upload, received), status=204)


async def terminate(exchange: Exchange) -> WholeResponse:
    """Cancel an upload, and delete its content, or the file that it has become."""
    files, metadata = exchange.context.files, rpc_metadata(exchange)
    upload_id = exchange.path_values["upload_id"]
    upload = (await files.GetUpload(GetUploadRequest(id=upload_id), metadata=metadata)).upload
    if upload.status == UPLOAD_STATUS_PENDING:
        await files.CancelUpload(CancelUploadRequest(id=upload_id), metadata=metadata)
    elif upload.HasField("file"):
        await files.DeleteFile(DeleteFileRequest(id=upload.file.id), metadata=metadata)
    return WholeResponse(status=204)


async def override(exchange: Exchange) -> WholeResponse:
    """Serve the method that a header names, for clients that cannot send it."""
    name = exchange.headers.get(_OVERRIDE.lower(), "").upper()
    if name not in _OVERRIDES:
        raise invalid(_OVERRIDE, f"{_OVERRIDE}: must be one of {', '.join(_OVERRIDES)}")
    return await _OVERRIDES[name](exchange)


def _check_version(exchange: Exchange) -> None:
    if exchange.headers.get(_RESUMABLE.lower()) != tus.VERSION:
        error = HttpExchangeError(
            412, "precondition_failed", f"{_RESUMABLE}: must be {tus.VERSION}", _RESUMABLE
        )
        error.headers = {"Tus-Version": tus.VERSION}
        raise error


async def _get(exchange: Exchange) -> Upload:
    """Return the upload that the path names.

    Raises:
        GatewayError: gone, it was cancelled, or its file was deleted.
    """
    files = exchange.context.files
    rpc_request = GetUploadRequest(id=exchange.path_values["upload_id"])
    upload = (await files.GetUpload(rpc_request, metadata=rpc_metadata(exchange))).upload
    if upload.status != UPLOAD_STATUS_PENDING and not upload.HasField("file"):
        raise GatewayError(
            errors_pb2.REASON_GONE, "upload_id: this upload was deleted", param="upload_id"
        )
    return upload


async def _receive(exchange: Exchange, upload: Upload, offset: int) -> int:
    """Add the body to an upload; return the number of bytes received."""
    header = exchange.headers.get("upload-checksum")
    checksum = None if header is None else tus.Checksum(header)
    start = partial(exchange.context.files.AddUploadPart, metadata=rpc_metadata(exchange))
    return await add_content(PieceReader(exchange), start, upload.id, offset, checksum)


async def _progress(exchange: Exchange, upload: Upload, received: int) -> dict[str, str]:
    """Return the headers of an upload's progress; make its file if all has been received.

    A process may have been killed between the last byte and the file: then the next request for
    the upload makes it.
    """
    headers = tus.progress(upload, received)
    if upload.HasField("size_bytes") and received == upload.size_bytes:
        if upload.status == UPLOAD_STATUS_PENDING:
            files = exchange.context.files
            rpc_request = CompleteUploadRequest(id=upload.id)
            completed = await files.CompleteUpload(rpc_request, metadata=rpc_metadata(exchange))
            upload = completed.upload
        if upload.HasField("file"):
            headers[_FILE_ID] = upload.file.id
    return headers


_OVERRIDES: dict[str, _Handler] = {"DELETE": terminate, "HEAD": describe, "PATCH": receive}
_ID = "/beta/v1/uploads/tus/{upload_id}"

ENDPOINTS = (
    EndpointSpec(
        method="OPTIONS",
        path="/beta/v1/uploads/tus",
        handler=_speaking_tus(discover),
        operation_id="describeTus",
        summary="Describe what of the tus protocol the gateway serves",
        answer_status=204,
        answer=Answer("Described by headers", []),
    ),
    EndpointSpec(
        method="POST",
        path="/beta/v1/uploads/tus",
        handler=_speaking_tus(create),
        operation_id="createTusUpload",
        summary="Create an upload in the tus protocol",
        answer_status=201,
        answer=Answer("The address is in `Location`", []),
    ),
    EndpointSpec(
        method="HEAD",
        path=_ID,
        handler=_speaking_tus(describe),
        operation_id="getTusUpload",
        summary="Get the bytes received of an upload in the tus protocol",
        answer=Answer("Described by headers", []),
    ),
    EndpointSpec(
        method="PATCH",
        path=_ID,
        handler=_speaking_tus(receive),
        operation_id="addTusContent",
        summary="Send content of an upload in the tus protocol",
        body=Body({"type": "string", "format": "binary"}, _CONTENT),
        answer_status=204,
        answer=Answer("Received; `x-gateway-file-id` names the file, once complete", []),
    ),
    EndpointSpec(
        method="DELETE",
        path=_ID,
        handler=_speaking_tus(terminate),
        operation_id="cancelTusUpload",
        summary="Delete an upload in the tus protocol, or the file that it has become",
        answer_status=204,
        answer=Answer("The upload was deleted", []),
    ),
    EndpointSpec(
        method="POST",
        path=_ID,
        handler=_speaking_tus(override),
        operation_id="overrideTusMethod",
        summary=f"Send the method that `{_OVERRIDE}` names, for clients that cannot: "
        f"{', '.join(_OVERRIDES)}",
        body=Body({"type": "string", "format": "binary"}, _CONTENT, is_required=False),
        answer_status=204,
        answer=Answer("As of the method", []),
        other_answers={200: Answer("As of `HEAD`: described by headers", [])},
    ),
)
