"""The files endpoints, in the format of the credential."""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

import grpc

from facade import credentials
from facade.bodies import PieceReader
from facade.credentials import ApiFormat, ListFormat
from facade.dialects import anthropic, file_schemas, gemini, openai, storage
from facade.dialects.json_schemas import STRING
from facade.dialects.purposes import PURPOSES
from facade.endpoint import Answer, Body, EndpointSpec, query_parameter
from facade.failures import error_response
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response, SizedResponse, WholeResponse
from facade.http_errors import unsupported_media_type
from facade.request_address import address_of
from facade.routes.generation import rpc_metadata
from facade.transfers import downloads
from facade.transfers.file_upload import CHUNK, FileUpload
from facade.transfers.multipart import boundary_of
from facade.transfers.upload_form import UploadForm, too_large
from gateway.errors.v1 import errors_pb2
from gateway.files.v1.files_pb2 import (
    DeleteFileRequest,
    File,
    GetFileRequest,
    GetStorageRequest,
    ListFilesRequest,
    ListFilesResponse,
)
from services.common.errors import from_rpc_error, invalid

log = logging.getLogger(__name__)

# Maximum bytes of a form beside its file.
_FORM = 1 << 20


async def create(exchange: Exchange) -> Response:
    """Store the file of a form, streaming its content."""
    form = _form(exchange)
    reader = PieceReader(exchange)
    files = exchange.context.files
    with FileUpload(partial(files.CreateFile, metadata=rpc_metadata(exchange))) as upload:
        while data := await reader.next(CHUNK):
            for piece in form.feed(data):
                await upload.add(piece)
        return _file(exchange, await upload.finish(form.close()))


async def list_files(exchange: Exchange) -> Response:
    """Return a page of the caller's files."""
    api_format = _api_format(exchange)
    if api_format is ApiFormat.GOOGLE:
        list_request = gemini.parse_file_list(exchange.query)
        page = await _list(exchange, list_request, gemini.GOOGLE_CURSORS)
        return JsonResponse(gemini.render_file_list(page, address_of(exchange)))
    if api_format is ApiFormat.OPENAI:
        page = await _list(exchange, openai.parse_file_list(exchange.query), openai.CURSORS)
        return JsonResponse(openai.render_file_list(page))
    pages = _is_anthropic_client(exchange)
    list_request = anthropic.parse_file_list(exchange.query, pages=pages)
    if anthropic.names_scope(exchange.query):
        page = ListFilesResponse()
    else:
        cursors = {"after_id": "page"} if pages and "page" in exchange.query else {}
        page = await _list(exchange, list_request, cursors)
    return JsonResponse(anthropic.render_file_list(page, pages=pages))


async def get_file(exchange: Exchange) -> Response:
    """Return the metadata of a file."""
    return _file(exchange, await _get(exchange))


async def delete(exchange: Exchange) -> Response:
    """Delete a file, with `force=true` also one that documents show."""
    file_id = _file_id(exchange)
    force = exchange.query.get("force", "false")
    if force not in ("true", "false"):
        raise invalid("force", "force: must be true or false")
    await exchange.context.files.DeleteFile(
        DeleteFileRequest(id=file_id, force=force == "true"), metadata=rpc_metadata(exchange)
    )
    match _api_format(exchange):
        case ApiFormat.OPENAI:
            return JsonResponse(openai.render_deleted_file(file_id))
        case ApiFormat.ANTHROPIC:
            return JsonResponse(anthropic.render_deleted_file(file_id))
        case ApiFormat.GOOGLE:
            return JsonResponse(gemini.render_deleted_file())


async def get_storage(exchange: Exchange) -> Response:
    """Return the size of the caller's files and the caller's quota."""
    files = exchange.context.files
    stored = await files.GetStorage(GetStorageRequest(), metadata=rpc_metadata(exchange))
    return JsonResponse(storage.render(stored, credentials.credential_format(exchange.headers)))


async def content(exchange: Exchange) -> Response:
    """Return the content of a file, or a range of it."""
    headers = exchange.headers
    if exchange.method == "HEAD" or "if-none-match" in headers or "if-range" in headers:
        file = await _get(exchange)
        if downloads.is_unchanged(headers, file):
            return WholeResponse(status=304, headers=downloads.headers(file))
        if exchange.method == "HEAD":
            response = SizedResponse(exchange, file.size_bytes, downloads.headers(file))
            await response.end()
            return response
        byte_range = headers.get("range", "") if downloads.may_be_partial(headers, file) else ""
    else:
        byte_range = headers.get("range", "")
    reading = downloads.read_request(exchange.path_values["file_id"], byte_range)
    call = exchange.context.files.ReadFile(reading, metadata=rpc_metadata(exchange))
    try:
        return await _relay(exchange, call, partial=downloads.is_range(reading))
    except grpc.aio.AioRpcError as error:
        failure = from_rpc_error(error)
        if failure.reason != errors_pb2.REASON_RANGE_NOT_SATISFIABLE:
            raise
        size = (await _get(exchange)).size_bytes
        failure.headers = {**failure.headers, "Content-Range": f"bytes */{size}"}
        return error_response(exchange, failure)
    finally:
        call.cancel()


async def _relay(exchange: Exchange, call: Any, *, partial: bool) -> Response:
    """Respond with the content of a ReadFile call.

    Raises:
        grpc.aio.AioRpcError: it failed before anything was sent.
    """
    opening = (await call.read()).opening
    headers, status = downloads.headers(opening.file), 200
    if partial and opening.length:
        last = opening.first + opening.length - 1
        status = 206
        headers["Content-Range"] = f"bytes {opening.first}-{last}/{opening.file.size_bytes}"
    response = SizedResponse(exchange, opening.length, headers, status)
    try:
        while (message := await call.read()) is not grpc.aio.EOF:
            await response.write(message.chunk)
    except grpc.aio.AioRpcError as error:
        # After the headers, a failure can only be signalled by ending before Content-Length.
        log.warning("download interrupted", extra={"reason": from_rpc_error(error).code})
    await response.end()
    return response


def _form(exchange: Exchange) -> UploadForm:
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
        raise too_large(max_file_bytes)
    return UploadForm(
        boundary, max_file_bytes=max_file_bytes, anthropic_client=_is_anthropic_client(exchange)
    )


async def _get(exchange: Exchange) -> File:
    files = exchange.context.files
    get_request = GetFileRequest(id=_file_id(exchange))
    return (await files.GetFile(get_request, metadata=rpc_metadata(exchange))).file


async def _list(
    exchange: Exchange, list_request: ListFilesRequest, cursors: Mapping[str, str]
) -> ListFilesResponse:
    """Call ListFiles; `cursors` maps the service's cursor names to the caller's."""
    try:
        return await exchange.context.files.ListFiles(list_request, metadata=rpc_metadata(exchange))
    except grpc.aio.AioRpcError as error:
        failure = from_rpc_error(error)
        name = cursors.get(failure.param)
        if name is None:
            raise
        raise invalid(name, f"{name}: no file has this id") from None


def _file(exchange: Exchange, file: File) -> Response:
    match _api_format(exchange):
        case ApiFormat.OPENAI:
            return JsonResponse(openai.render_file(file))
        case ApiFormat.ANTHROPIC:
            return JsonResponse(anthropic.render_file(file))
        case ApiFormat.GOOGLE:
            return JsonResponse(gemini.render_file(file, address_of(exchange)))


def _file_id(exchange: Exchange) -> str:
    """Return the id of the file that the path names."""
    name = exchange.path_values["file_id"]
    return gemini.file_id_in_path(name) if _api_format(exchange) is ApiFormat.GOOGLE else name


def _is_anthropic_client(exchange: Exchange) -> bool:
    return "anthropic-version" in exchange.headers


def _api_format(exchange: Exchange) -> ListFormat:
    return credentials.list_format(exchange.headers, credentials.rules_for(exchange.path))


_PAGE = (
    query_parameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": 10_000},
        "At most 1000 in the Anthropic format.",
    ),
    query_parameter(
        "after", STRING, "OpenAI format only: id of the last file of the previous page."
    ),
    query_parameter(
        "order", {"enum": ["asc", "desc"]}, "OpenAI format only; newest first if omitted."
    ),
    query_parameter("purpose", {"enum": list(PURPOSES)}, "OpenAI format only."),
    query_parameter("after_id", STRING, "Anthropic format only; not together with `before_id`."),
    query_parameter("before_id", STRING, "Anthropic format only; not together with `after_id`."),
    query_parameter(
        "page",
        STRING,
        "For clients that send `anthropic-version`: the `next_page` of the previous page.",
    ),
    query_parameter(
        "ids[]",
        {"type": "array", "items": STRING, "maxItems": 100},
        "Anthropic format only; only these files, without paging.",
    ),
    query_parameter(
        "scope_id", STRING, "Anthropic format only; files belong to no scope: the list is empty."
    ),
)
_FILE = Answer("The file", (file_schemas.OPENAI_FILE, file_schemas.ANTHROPIC_FILE))

ENDPOINTS = (
    EndpointSpec(
        method="POST",
        path="/beta/v1/files",
        handler=create,
        operation_id="createFile",
        summary="Upload a file",
        body=Body(file_schemas.FORM, "multipart/form-data"),
        answer=_FILE,
    ),
    EndpointSpec(
        method="GET",
        path="/beta/v1/files",
        handler=list_files,
        operation_id="listFiles",
        summary="List the caller's files",
        parameters=_PAGE,
        answer=Answer("A page of files"),
    ),
    EndpointSpec(
        method="GET",
        path="/beta/v1/files/{file_id}",
        handler=get_file,
        operation_id="getFile",
        summary="Get a file",
        answer=_FILE,
    ),
    EndpointSpec(
        method="DELETE",
        path="/beta/v1/files/{file_id}",
        handler=delete,
        operation_id="deleteFile",
        summary="Delete a file",
        parameters=[
            query_parameter(
                "force",
                {"enum": ["true", "false"], "default": "false"},
                "Whether it is deleted although documents show it, which is 409 otherwise.",
            )
        ],
        answer=Answer("The file was deleted"),
    ),
    EndpointSpec(
        method="GET",
        path="/beta/v1/files/{file_id}/content",
        handler=content,
        operation_id="getFileContent",
        summary="Download a file; supports Range, If-Range and If-None-Match",
        answer=Answer("The content", [{}], "*/*"),
        other_answers={
            206: Answer("The requested range", [{}], "*/*"),
            304: Answer("Not modified", []),
        },
    ),
    EndpointSpec(
        method="GET",
        path="/beta/v1/storage",
        handler=get_storage,
        operation_id="getStorage",
        summary="Get the storage used by the caller's files, and its quota",
        answer=Answer("The storage", [storage.STORAGE]),
    ),
)
