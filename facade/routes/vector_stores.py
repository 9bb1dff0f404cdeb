"""The endpoints of vector stores, in OpenAI's format."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from facade.bodies import ReceivedBody
from facade.dialects.json_schemas import NAME
from facade.dialects.openai import vector_store_files as files
from facade.dialects.openai import vector_store_schemas as schemas
from facade.dialects.openai import vector_stores as stores
from facade.dialects.paths import CallerPaths, FieldNames, SourceMap
from facade.dialects.queries import parse_limit
from facade.endpoint import Answer, Body, EndpointSpec, query_parameter
from facade.http.exchange import Exchange
from facade.http.responses import NO_HEADERS, JsonResponse, Response
from facade.routes.generation import check_json, rpc_metadata
from gateway.memory.v1 import vector_stores_pb2 as pb
from gateway.memory.v1 import vector_stores_pb2_grpc
from services.common.errors import invalid
from services.common.text.texts import parse_digits

# Maximum bytes of a body: 2,000 files with attributes.
_MAX_BODY: Final = 16 << 20
_MAX_TEXTS: Final = 200
# By themselves, OpenAI's clients wait for one second (Python) or five (Node).
_POLL_AFTER: Final[Mapping[str, str]] = {"openai-poll-after-ms": "500"}


async def create(exchange: Exchange) -> Response:
    """Create a vector store."""
    request = stores.parse_vector_store(await _json_body(exchange))
    _use_names(exchange, stores.STORE_NAMES)
    answer = await _service(exchange).CreateVectorStore(request, metadata=rpc_metadata(exchange))
    return JsonResponse(stores.render_vector_store(answer.vector_store))


async def list_stores(exchange: Exchange) -> Response:
    """Return a page of the caller's vector stores."""
    request = pb.ListVectorStoresRequest(page=stores.parse_page(exchange.query))
    _use_names(exchange, stores.STORE_NAMES)
    page = await _service(exchange).ListVectorStores(request, metadata=rpc_metadata(exchange))
    return JsonResponse(stores.render_vector_stores(page))


async def retrieve(exchange: Exchange) -> Response:
    """Return a vector store."""
    request = pb.GetVectorStoresRequest(ids=[_store_id(exchange)])
    _use_names(exchange, stores.STORE_NAMES)
    answer = await _service(exchange).GetVectorStores(request, metadata=rpc_metadata(exchange))
    return JsonResponse(stores.render_vector_store(answer.vector_stores[0]))


async def change(exchange: Exchange) -> Response:
    """Change a vector store."""
    request = stores.parse_change(_store_id(exchange), await _json_body(exchange))
    _use_names(exchange, stores.STORE_NAMES)
    answer = await _service(exchange).UpdateVectorStore(request, metadata=rpc_metadata(exchange))
    return JsonResponse(stores.render_vector_store(answer.vector_store))


async def delete(exchange: Exchange) -> Response:
    """Delete a vector store."""
    request = pb.DeleteVectorStoreRequest(id=_store_id(exchange))
    _use_names(exchange, stores.STORE_NAMES)
    await _service(exchange).DeleteVectorStore(request, metadata=rpc_metadata(exchange))
    return JsonResponse(stores.render_deleted("vector_store", request.id))


async def search(exchange: Exchange) -> Response:
    """Search a vector store."""
    request = stores.parse_search(_store_id(exchange), await _json_body(exchange))
    _use_names(exchange, stores.SEARCH_NAMES)
    answer = await _service(exchange).SearchVectorStores(request, metadata=rpc_metadata(exchange))
    return JsonResponse(stores.render_results(list(request.queries), answer))


async def add_file(exchange: Exchange) -> Response:
    """Add a file to a vector store."""
    request = files.parse_file(_store_id(exchange), await _json_body(exchange))
    _use_names(exchange, files.FILE_NAMES)
    answer = await _service(exchange).AddVectorStoreFiles(request, metadata=rpc_metadata(exchange))
    return JsonResponse(orjson.dumps(files.file_object(answer.files[0])))


async def list_files(exchange: Exchange) -> Response:
    """Return a page of the files of a vector store, or of a batch."""
    request = pb.ListVectorStoreFilesRequest(
        vector_store_id=_store_id(exchange),
        page=stores.parse_page(exchange.query),
        state=files.parse_state(exchange.query),
        batch_id=exchange.path_values.get("batch_id", ""),
    )
    _use_names(exchange, files.FILE_NAMES)
    page = await _service(exchange).ListVectorStoreFiles(request, metadata=rpc_metadata(exchange))
    objects = [files.file_object(file) for file in page.files]
    return JsonResponse(stores.render_page(objects, has_more=page.has_more))


async def retrieve_file(exchange: Exchange) -> Response:
    """Return a file of a vector store."""
    request = pb.GetVectorStoreFileRequest(
        vector_store_id=_store_id(exchange), file_id=_file_id(exchange)
    )
    answer = await _service(exchange).GetVectorStoreFile(request, metadata=rpc_metadata(exchange))
    return _polled(files.file_object(answer.file))


async def change_file(exchange: Exchange) -> Response:
    """Replace the attributes of a file of a vector store."""
    body = await _json_body(exchange)
    request = files.parse_file_change(_store_id(exchange), _file_id(exchange), body)
    _use_names(exchange, files.FILE_NAMES)
    service = _service(exchange)
    answer = await service.UpdateVectorStoreFile(request, metadata=rpc_metadata(exchange))
    return JsonResponse(orjson.dumps(files.file_object(answer.file)))


async def remove_file(exchange: Exchange) -> Response:
    """Remove a file from a vector store."""
    request = pb.RemoveVectorStoreFileRequest(
        vector_store_id=_store_id(exchange), file_id=_file_id(exchange)
    )
    await _service(exchange).RemoveVectorStoreFile(request, metadata=rpc_metadata(exchange))
    return JsonResponse(stores.render_deleted("vector_store.file", request.file_id))


async def content(exchange: Exchange) -> Response:
    """Return a part of the text of a file of a vector store."""
    first = parse_digits(exchange.query.get("page", "0"))
    if first is None:
        raise invalid("page", "page: must be the `next_page` of the page before")
    size = parse_limit(exchange.query, default=_MAX_TEXTS, largest=_MAX_TEXTS)
    request = pb.ReadVectorStoreFileRequest(
        vector_store_id=_store_id(exchange),
        file_id=_file_id(exchange),
        first=first,
        page_size=size,
    )
    answer = await _service(exchange).ReadVectorStoreFile(request, metadata=rpc_metadata(exchange))
    next_page = str(first + size) if answer.has_more else ""
    return JsonResponse(files.render_content(request.file_id, answer, next_page))


async def create_batch(exchange: Exchange) -> Response:
    """Add a batch of files to a vector store."""
    request, names = files.parse_batch(_store_id(exchange), await _json_body(exchange))
    _use_names(exchange, names)
    answer = await _service(exchange).AddVectorStoreFiles(request, metadata=rpc_metadata(exchange))
    return JsonResponse(orjson.dumps(files.batch_object(answer.batch)))


async def retrieve_batch(exchange: Exchange) -> Response:
    """Return a batch of files."""
    request = pb.GetVectorStoreFileBatchRequest(
        vector_store_id=_store_id(exchange), batch_id=exchange.path_values["batch_id"]
    )
    service = _service(exchange)
    answer = await service.GetVectorStoreFileBatch(request, metadata=rpc_metadata(exchange))
    return _polled(files.batch_object(answer.batch))


async def cancel_batch(exchange: Exchange) -> Response:
    """Cancel a batch of files."""
    request = pb.CancelVectorStoreFileBatchRequest(
        vector_store_id=_store_id(exchange), batch_id=exchange.path_values["batch_id"]
    )
    service = _service(exchange)
    answer = await service.CancelVectorStoreFileBatch(request, metadata=rpc_metadata(exchange))
    return JsonResponse(orjson.dumps(files.batch_object(answer.batch)))


def _polled(made: Mapping[str, Any]) -> Response:
    """Return an answer that clients ask for again while it is in progress, after a time."""
    headers = _POLL_AFTER if made["status"] == "in_progress" else NO_HEADERS
    return JsonResponse(orjson.dumps(made), headers)


def _service(exchange: Exchange) -> "vector_stores_pb2_grpc.VectorStoreServiceAsyncStub":
    return exchange.context.vector_stores


def _use_names(exchange: Exchange, names: FieldNames) -> None:
    """Have errors of the service name the caller's fields."""
    exchange.caller_paths = CallerPaths(names, SourceMap())


async def _json_body(exchange: Exchange) -> bytes:
    check_json(exchange)
    async with ReceivedBody(exchange, _MAX_BODY) as held:
        return held.pop()


def _store_id(exchange: Exchange) -> str:
    return exchange.path_values["vector_store_id"]


def _file_id(exchange: Exchange) -> str:
    return exchange.path_values["file_id"]


_PATH = "/beta/v1/vector_stores"
_ONE = f"{_PATH}/{{vector_store_id}}"
_FILES = f"{_ONE}/files"
_FILE = f"{_FILES}/{{file_id}}"
_BATCHES = f"{_ONE}/file_batches"
_BATCH = f"{_BATCHES}/{{batch_id}}"
_EXAMPLE_FILE = "file-01JZ6QXV9T2M4N8P0R3S5W7Y9B"
_PAGE = (
    query_parameter("limit", schemas.LIMIT),
    query_parameter("order", schemas.ORDER, "Whether the newest (desc) or the oldest come first."),
    query_parameter("after", NAME, "Id of the last element of the previous page."),
    query_parameter("before", NAME, "Id of the first element of the following page."),
)
_STATE = query_parameter("filter", schemas.STATE, "Only files in this state.")
_STORE_ANSWER = Answer("The vector store", [schemas.VECTOR_STORE])
_FILE_ANSWER = Answer("The file", [schemas.VECTOR_STORE_FILE])
_FILES_ANSWER = Answer("Success", [schemas.VECTOR_STORE_FILES])
_BATCH_ANSWER = Answer("The batch of files", [schemas.FILE_BATCH])
_DELETED = Answer("Success", [schemas.DELETED])

ENDPOINTS = (
    EndpointSpec(
        method="POST",
        path=_PATH,
        handler=create,
        operation_id="createVectorStore",
        summary="Create a vector store",
        body=Body(
            stores.VectorStoreBody,
            example={"name": "Manuals", "file_ids": [_EXAMPLE_FILE]},
        ),
        answer=_STORE_ANSWER,
    ),
    EndpointSpec(
        method="GET",
        path=_PATH,
        handler=list_stores,
        operation_id="listVectorStores",
        summary="List vector stores",
        parameters=_PAGE,
        answer=Answer("Success", [schemas.VECTOR_STORES]),
    ),
    EndpointSpec(
        method="GET",
        path=_ONE,
        handler=retrieve,
        operation_id="getVectorStore",
        summary="Get a vector store",
        answer=_STORE_ANSWER,
    ),
    EndpointSpec(
        method="POST",
        path=_ONE,
        handler=change,
        operation_id="updateVectorStore",
        summary="Change a vector store",
        body=Body(stores.VectorStoreChange, example={"name": "Manuals of 2026"}),
        answer=_STORE_ANSWER,
    ),
    EndpointSpec(
        method="DELETE",
        path=_ONE,
        handler=delete,
        operation_id="deleteVectorStore",
        summary="Delete a vector store; its files stay in the file store",
        answer=_DELETED,
    ),
    EndpointSpec(
        method="POST",
        path=f"{_ONE}/search",
        handler=search,
        operation_id="searchVectorStore",
        summary="Search a vector store",
        body=Body(
            stores.VectorStoreSearch,
            example={"query": "How is the filter changed?", "max_num_results": 3},
        ),
        answer=Answer("The results, the best first", [schemas.SEARCH_RESULTS]),
    ),
    EndpointSpec(
        method="POST",
        path=_FILES,
        handler=add_file,
        operation_id="addVectorStoreFile",
        summary="Add a file to a vector store",
        body=Body(
            files.VectorStoreFileBody,
            example={"file_id": _EXAMPLE_FILE, "attributes": {"year": 2026}},
        ),
        answer=_FILE_ANSWER,
    ),
    EndpointSpec(
        method="GET",
        path=_FILES,
        handler=list_files,
        operation_id="listVectorStoreFiles",
        summary="List the files of a vector store",
        parameters=[*_PAGE, _STATE],
        answer=_FILES_ANSWER,
    ),
    EndpointSpec(
        method="GET",
        path=_FILE,
        handler=retrieve_file,
        operation_id="getVectorStoreFile",
        summary="Get a file of a vector store",
        answer=_FILE_ANSWER,
    ),
    EndpointSpec(
        method="POST",
        path=_FILE,
        handler=change_file,
        operation_id="updateVectorStoreFile",
        summary="Replace the attributes of a file of a vector store",
        body=Body(files.VectorStoreFileChange, example={"attributes": {"year": 2027}}),
        answer=_FILE_ANSWER,
    ),
    EndpointSpec(
        method="DELETE",
        path=_FILE,
        handler=remove_file,
        operation_id="removeVectorStoreFile",
        summary="Remove a file from a vector store; it stays in the file store",
        answer=_DELETED,
    ),
    EndpointSpec(
        method="GET",
        path=f"{_FILE}/content",
        handler=content,
        operation_id="getVectorStoreFileContent",
        summary="Get the text of a file of a vector store, as its chunks",
        parameters=[
            query_parameter("page", NAME, "The `next_page` of the page before."),
            query_parameter("limit", {**schemas.LIMIT, "maximum": _MAX_TEXTS, "default": 200}),
        ],
        answer=Answer("Success", [schemas.FILE_CONTENT]),
    ),
    EndpointSpec(
        method="POST",
        path=_BATCHES,
        handler=create_batch,
        operation_id="createVectorStoreFileBatch",
        summary="Add a batch of files to a vector store",
        body=Body(files.FileBatchBody, example={"file_ids": [_EXAMPLE_FILE]}),
        answer=_BATCH_ANSWER,
    ),
    EndpointSpec(
        method="GET",
        path=_BATCH,
        handler=retrieve_batch,
        operation_id="getVectorStoreFileBatch",
        summary="Get a batch of files",
        answer=_BATCH_ANSWER,
    ),
    EndpointSpec(
        method="POST",
        path=f"{_BATCH}/cancel",
        handler=cancel_batch,
        operation_id="cancelVectorStoreFileBatch",
        summary="Cancel the files of a batch that are not indexed yet",
        answer=_BATCH_ANSWER,
    ),
    EndpointSpec(
        method="GET",
        path=f"{_BATCH}/files",
        handler=list_files,
        operation_id="listVectorStoreFileBatchFiles",
        summary="List the files of a batch",
        parameters=[*_PAGE, _STATE],
        answer=_FILES_ANSWER,
    ),
)
