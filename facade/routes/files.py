"""The files endpoints, in the format of the credential."""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

import grpc
from aiohttp import web

from facade import credentials, downloads
from facade.bodies import PieceReader
from facade.context import CONTEXT
from facade.credentials import ApiFormat, Format
from facade.dialects import anthropic, openai
from facade.failures import error_response
from facade.file_upload import CHUNK, FileUpload
from facade.http.responses import JsonResponse
from facade.http_errors import unsupported_media_type
from facade.middlewares import EXCHANGE, to_web_response
from facade.multipart import boundary_of
from facade.routes.generation import metadata
from facade.uploads import UploadForm, too_large
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


async def create(request: web.Request) -> web.StreamResponse:
    """Store the file of a form, streaming its content."""
    form = _form(request)
    reader = PieceReader(request[EXCHANGE])
    files = request.app[CONTEXT].files
    with FileUpload(partial(files.CreateFile, metadata=metadata(request))) as upload:
        while data := await reader.next(CHUNK):
            for piece in form.feed(data):
                await upload.add(piece)
        return _file(request, await upload.finish(form.close()))


async def list_files(request: web.Request) -> web.StreamResponse:
    """Return a page of the caller's files."""
    if _api_format(request) is ApiFormat.OPENAI:
        page = await _list(request, openai.parse_file_list(request.query), openai.CURSORS)
        return _json(request, openai.render_file_list(page))
    pages = _is_anthropic_client(request)
    wanted = anthropic.parse_file_list(request.query, pages=pages)
    cursors = {"after_id": "page"} if pages and "page" in request.query else {}
    page = await _list(request, wanted, cursors)
    return _json(request, anthropic.render_file_list(page, pages=pages))


async def get_file(request: web.Request) -> web.StreamResponse:
    """Return the metadata of a file."""
    return _file(request, await _get(request))


async def delete(request: web.Request) -> web.StreamResponse:
    """Delete a file."""
    file_id = request.match_info["file_id"]
    await request.app[CONTEXT].files.DeleteFile(
        DeleteFileRequest(id=file_id), metadata=metadata(request)
    )
    match _api_format(request):
        case ApiFormat.OPENAI:
            return _json(request, openai.render_deleted_file(file_id))
        case ApiFormat.ANTHROPIC:
            return _json(request, anthropic.render_deleted_file(file_id))


async def storage(request: web.Request) -> web.StreamResponse:
    """Return the size of the caller's files and the caller's quota."""
    files = request.app[CONTEXT].files
    stored = await files.GetStorage(GetStorageRequest(), metadata=metadata(request))
    match _api_format(request):
        case ApiFormat.OPENAI:
            return _json(request, openai.render_storage(stored))
        case ApiFormat.ANTHROPIC:
            return _json(request, anthropic.render_storage(stored))


async def content(request: web.Request) -> web.StreamResponse:
    """Return the content of a file, or a range of it."""
    headers = request.headers
    if request.method == "HEAD" or "If-None-Match" in headers or "If-Range" in headers:
        file = await _get(request)
        if downloads.is_unchanged(headers, file):
            return web.Response(status=304, headers=downloads.headers(file))
        if request.method == "HEAD":
            return _opened(file, file.size_bytes)
        wanted = headers.get("Range", "") if downloads.may_be_partial(headers, file) else ""
    else:
        wanted = headers.get("Range", "")
    reading = downloads.read_request(request.match_info["file_id"], wanted)
    call = request.app[CONTEXT].files.ReadFile(reading, metadata=metadata(request))
    try:
        return await _relay(request, call, partial=downloads.is_range(reading))
    except grpc.aio.AioRpcError as error:
        failure = from_rpc_error(error)
        if failure.reason != errors_pb2.REASON_RANGE_NOT_SATISFIABLE:
            raise
        response = error_response(request[EXCHANGE], failure)
        response.headers["Content-Range"] = f"bytes */{(await _get(request)).size_bytes}"
        return to_web_response(request[EXCHANGE], response)
    finally:
        call.cancel()


async def _relay(request: web.Request, call: Any, *, partial: bool) -> web.StreamResponse:
    """Respond with the content of a ReadFile call.

    Raises:
        grpc.aio.AioRpcError: it failed before anything was sent.
    """
    opening = (await call.read()).opening
    response = _opened(opening.file, opening.length)
    if partial and opening.length:
        last = opening.first + opening.length - 1
        response.set_status(206)
        response.headers["Content-Range"] = (
            f"bytes {opening.first}-{last}/{opening.file.size_bytes}"
        )
    await response.prepare(request)
    try:
        while (message := await call.read()) is not grpc.aio.EOF:
            await response.write(message.chunk)
    except grpc.aio.AioRpcError as error:
        # After the headers, a failure can only be signalled by ending before Content-Length.
        log.warning("download interrupted", extra={"reason": from_rpc_error(error).code})
        response.force_close()
    return response


def _opened(file: File, length: int) -> web.StreamResponse:
    response = web.StreamResponse(headers=downloads.headers(file))
    response.content_length = length
    return response


def _form(request: web.Request) -> UploadForm:
    """Start parsing the form of a request.

    Raises:
        GatewayError: 415 for another content type, 400 without a boundary, 413 if Content-Length is
            too large.
    """
    if request.content_type != "multipart/form-data":
        raise unsupported_media_type(request.content_type, takes="multipart/form-data")
    boundary = boundary_of(request.headers["Content-Type"])
    max_file_bytes = request.app[CONTEXT].settings.limits.max_file_bytes
    if (request.content_length or 0) > max_file_bytes + _FORM:
        raise too_large(max_file_bytes)
    return UploadForm(
        boundary, max_file_bytes=max_file_bytes, anthropic_client=_is_anthropic_client(request)
    )


async def _get(request: web.Request) -> File:
    files = request.app[CONTEXT].files
    wanted = GetFileRequest(id=request.match_info["file_id"])
    return (await files.GetFile(wanted, metadata=metadata(request))).file


async def _list(
    request: web.Request, wanted: ListFilesRequest, cursors: Mapping[str, str]
) -> ListFilesResponse:
    """Call ListFiles; `cursors` maps the service's cursor names to the caller's."""
    try:
        return await request.app[CONTEXT].files.ListFiles(wanted, metadata=metadata(request))
    except grpc.aio.AioRpcError as error:
        failure = from_rpc_error(error)
        name = cursors.get(failure.param)
        if name is None:
            raise
        raise invalid(name, f"{name}: no file has this id") from None


def _file(request: web.Request, file: File) -> web.StreamResponse:
    match _api_format(request):
        case ApiFormat.OPENAI:
            return _json(request, openai.render_file(file))
        case ApiFormat.ANTHROPIC:
            return _json(request, anthropic.render_file(file))


def _json(request: web.Request, body: bytes) -> web.StreamResponse:
    return to_web_response(request[EXCHANGE], JsonResponse(body, {}))


def _is_anthropic_client(request: web.Request) -> bool:
    return "anthropic-version" in request.headers


def _api_format(request: web.Request) -> Format:
    return credentials.credential_format(request.headers)
