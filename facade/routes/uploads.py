"""OpenAI's uploads: files in parts, which any worker takes in any order."""

from functools import partial

from facade.bodies import PieceReader, ReceivedBody
from facade.dialects import file_schemas, openai
from facade.dialects.paths import CallerPaths, FieldNames, SourceMap
from facade.endpoint import Answer, Body, EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.http_errors import unsupported_media_type
from facade.routes.generation import check_json, rpc_metadata
from facade.transfers.file_upload import CHUNK, PartUpload
from facade.transfers.multipart import boundary_of
from facade.transfers.part_form import PartForm
from facade.transfers.upload_form import too_large
from gateway.files.v1.files_pb2 import CancelUploadRequest, UploadPartHeader

# Maximum bytes of a JSON body, and of a form beside its content.
_MAX_BODY = 256 << 10
_FORM = 64 << 10


async def create(exchange: Exchange) -> Response:
    """Begin an upload."""
    rpc_request = openai.parse_upload(await _json_body(exchange))
    _use_names(exchange, openai.UPLOAD_NAMES)
    files = exchange.context.files
    created = await files.CreateUpload(rpc_request, metadata=rpc_metadata(exchange))
    return JsonResponse(openai.render_upload(created.upload))


async def add_part(exchange: Exchange) -> Response:
    """Add a part to an upload, streaming its content."""
    form = _form(exchange)
    _use_names(exchange, openai.PART_NAMES)
    reader = PieceReader(exchange)
    start = partial(exchange.context.files.AddUploadPart, metadata=rpc_metadata(exchange))
    with PartUpload(start) as call:
        await call.add(UploadPartHeader(upload_id=exchange.path_values["upload_id"]))
        while data := await reader.next(CHUNK):
            for piece in form.feed(data):
                await call.add(piece)
        form.close()
        return JsonResponse(openai.render_part(await call.finish()))


async def complete(exchange: Exchange) -> Response:
    """Make a file of the parts of an upload."""
    upload_id = exchange.path_values["upload_id"]
    rpc_request = openai.parse_completion(upload_id, await _json_body(exchange))
    _use_names(exchange, openai.PART_NAMES)
    files = exchange.context.files
    completed = await files.CompleteUpload(rpc_request, metadata=rpc_metadata(exchange))
    return JsonResponse(openai.render_upload(completed.upload))


async def cancel(exchange: Exchange) -> Response:
    """Cancel an upload."""
    rpc_request = CancelUploadRequest(id=exchange.path_values["upload_id"])
    files = exchange.context.files
    cancelled = await files.CancelUpload(rpc_request, metadata=rpc_metadata(exchange))
    return JsonResponse(openai.render_upload(cancelled.upload))


def _use_names(exchange: Exchange, names: FieldNames) -> None:
    """Have errors of the service name the caller's fields."""
    exchange.caller_paths = CallerPaths(names, SourceMap())


async def _json_body(exchange: Exchange) -> bytes:
    check_json(exchange)
    async with ReceivedBody(exchange, _MAX_BODY) as held:
        return held.pop()


def _form(exchange: Exchange) -> PartForm:
    """Start parsing the form of a request.

    Raises:
        GatewayError: 415 for another content type, 400 without a boundary, 413 if Content-Length is
            too large.
    """
    if exchange.content_type != "multipart/form-data":
        raise unsupported_media_type(exchange.content_type, takes="multipart/form-data")
    boundary = boundary_of(exchange.headers["content-type"])
    max_file_bytes = exchange.context.settings.limits.max_file_bytes
    if exchange.content_length > max_file_bytes + _FORM:
        raise too_large(max_file_bytes, "data")
    return PartForm(boundary)


_UPLOAD = Answer("The upload", [file_schemas.UPLOAD])

ENDPOINTS = (
    EndpointSpec(
        method="POST",
        path="/beta/v1/uploads",
        handler=create,
        operation_id="createUpload",
        summary="Begin the upload of a file in parts",
        body=Body(openai.UploadBody, example=openai.UPLOAD_EXAMPLE),
        answer=_UPLOAD,
    ),
    EndpointSpec(
        method="POST",
        path="/beta/v1/uploads/{upload_id}/parts",
        handler=add_part,
        operation_id="addUploadPart",
        summary="Add a part to an upload",
        body=Body(file_schemas.PART_FORM, "multipart/form-data"),
        answer=Answer("The part", [file_schemas.UPLOAD_PART]),
    ),
    EndpointSpec(
        method="POST",
        path="/beta/v1/uploads/{upload_id}/complete",
        handler=complete,
        operation_id="completeUpload",
        summary="Make a file of the parts of an upload",
        body=Body(openai.UploadCompletionBody, example={"part_ids": ["part_01JEXAMPLE"]}),
        answer=_UPLOAD,
    ),
    EndpointSpec(
        method="POST",
        path="/beta/v1/uploads/{upload_id}/cancel",
        handler=cancel,
        operation_id="cancelUpload",
        summary="Cancel an upload, and delete its parts",
        answer=_UPLOAD,
    ),
)
