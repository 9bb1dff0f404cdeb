"""The gRPC servicer of batches."""

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Any

import grpc
import orjson

from gateway.batches.v1 import batches_pb2, batches_pb2_grpc
from gateway.batches.v1.batches_pb2 import CreateBatchRequest
from gateway.conversation.v1.conversation_pb2 import Dialect
from gateway.files.v1 import files_pb2
from services.batches.file_calls import BatchFiles
from services.batches.records import MAX_CUSTOM_ID, too_many_requests
from services.batches.repository import BatchRepository, NewBatch
from services.common.errors import GatewayError, invalid
from services.common.grpc.authentication import caller
from services.common.grpc.channels import forwarded_metadata
from services.common.storage.disk import DiskReserve

SERVICE_NAME = batches_pb2.DESCRIPTOR.services_by_name["BatchService"].full_name

_MAX_PAGE = 1_000
_MAX_METADATA = 16 << 10
_MAX_HEADERS = 8 << 10
_MIN_TTL_S, _MAX_TTL_S = 3_600, 2_592_000

Context = grpc.aio.ServicerContext[Any, Any]


class BatchServicer(batches_pb2_grpc.BatchServiceServicer):
    """Serves the RPCs of `batches.proto`; failures are raised as GatewayError.

    Args:
        repository: the batches.
        files: the files of users.
        endpoints: the endpoints of each dialect.
        reserve: the free disk space that storing requires.
        on_created: called when a batch has been created, or cancelled.
        on_cancelled: called with the id of a batch that has been cancelled.
    """

    def __init__(
        self,
        repository: BatchRepository,
        files: BatchFiles,
        endpoints: Mapping[Dialect.ValueType, Collection[str]],
        reserve: DiskReserve,
        on_created: Callable[[], object],
        on_cancelled: Callable[[str], object],
    ) -> None:
        self._repository = repository
        self._files = files
        self._endpoints = endpoints
        self._reserve = reserve
        self._on_created = on_created
        self._on_cancelled = on_cancelled

    async def CreateBatch(
        self, request: CreateBatchRequest, context: Context
    ) -> batches_pb2.CreateBatchResponse:
        """Create a batch."""
        endpoints = self._endpoints.get(request.dialect)
        if endpoints is None:
            raise invalid("dialect", "dialect: must be DIALECT_OPENAI or DIALECT_ANTHROPIC")
        if request.endpoint not in endpoints:
            raise invalid("endpoint", f"endpoint: must be one of {', '.join(endpoints)}")
        _check(request)
        self._check_items(request)
        self._reserve.check()
        if request.input_file_id:
            await self._check_file(request.input_file_id, context)
        batch = await self._repository.create(NewBatch(caller.get(), request))
        self._on_created()
        return batches_pb2.CreateBatchResponse(batch=batch)

    async def GetBatch(
        self, request: batches_pb2.GetBatchRequest, context: Context
    ) -> batches_pb2.GetBatchResponse:
        """Return a batch."""
        batch = await self._repository.find(caller.get().user_id, request.id, request.dialect)
        return batches_pb2.GetBatchResponse(batch=batch)

    async def ListBatches(
        self, request: batches_pb2.ListBatchesRequest, context: Context
    ) -> batches_pb2.ListBatchesResponse:
        """Return a page of batches."""
        if not 1 <= request.page_size <= _MAX_PAGE:
            raise invalid("page_size", f"page_size: must be 1 to {_MAX_PAGE}")
        if request.after_id and request.before_id:
            raise invalid("before_id", "before_id: cannot be combined with after_id")
        batches, has_more = await self._repository.page(caller.get().user_id, request)
        return batches_pb2.ListBatchesResponse(batches=batches, has_more=has_more)

    async def CancelBatch(
        self, request: batches_pb2.CancelBatchRequest, context: Context
    ) -> batches_pb2.CancelBatchResponse:
        """Cancel a batch."""
        batch = await self._repository.cancel(caller.get().user_id, request.id, request.dialect)
        self._on_cancelled(batch.id)
        self._on_created()
        return batches_pb2.CancelBatchResponse(batch=batch)

    async def DeleteBatch(
        self, request: batches_pb2.DeleteBatchRequest, context: Context
    ) -> batches_pb2.DeleteBatchResponse:
        """Delete a batch that has ended."""
        await self._repository.delete(caller.get().user_id, request.id, request.dialect)
        return batches_pb2.DeleteBatchResponse()

    async def StreamResults(
        self, request: batches_pb2.StreamResultsRequest, context: Context
    ) -> AsyncIterator[batches_pb2.StreamResultsResponse]:
        """Yield the results of a batch."""
        pages = self._repository.results(caller.get().user_id, request.id, request.dialect)
        async for page in pages:
            yield batches_pb2.StreamResultsResponse(results=page)

    async def _check_file(self, file_id: str, context: Context) -> None:
        """Check the input file, which the caller's own key reads.

        Raises:
            GatewayError: not_found; too_large; invalid.
        """
        try:
            file = await self._files.find(file_id, forwarded_metadata(context))
        except GatewayError as error:
            error.param = "input_file_id"
            error.message = error.message.replace("file_id:", "input_file_id:", 1)
            raise
        if file.purpose != files_pb2.PURPOSE_BATCH:
            raise invalid("input_file_id", "input_file_id: must be a file with the purpose 'batch'")
        max_bytes = self._repository.limits.max_bytes
        if file.size_bytes > max_bytes:
            raise invalid(
                "input_file_id", f"input_file_id: must be a file of at most {max_bytes:,} bytes"
            )

    def _check_items(self, request: CreateBatchRequest) -> None:
        limits = self._repository.limits
        if len(request.items) > limits.max_requests:
            raise too_many_requests(limits.max_requests)
        if request.ByteSize() > limits.max_bytes:
            raise invalid("items", f"items: must have at most {limits.max_bytes:,} bytes in all")
        seen_ids: set[str] = set()
        for place, item in enumerate(request.items):
            path = f"items[{place}]"
            if not 1 <= len(item.custom_id) <= MAX_CUSTOM_ID or "\0" in item.custom_id:
                name = f"{path}.custom_id"
                raise invalid(name, f"{name}: must be 1 to {MAX_CUSTOM_ID} characters")
            if item.custom_id in seen_ids:
                name = f"{path}.custom_id"
                raise invalid(name, f"{name}: must be unique in the batch")
            seen_ids.add(item.custom_id)


def _check(request: CreateBatchRequest) -> None:
    if bool(request.items) == bool(request.input_file_id):
        raise invalid("items", "items: exactly one of items and input_file_id is required")
    if request.metadata:
        _check_metadata(request.metadata)
    if sum(len(name) + len(value) for name, value in request.headers.items()) > _MAX_HEADERS:
        raise invalid("headers", f"headers: must have at most {_MAX_HEADERS:,} characters")
    has_ttl = request.HasField("output_expires_after_s")
    if has_ttl and not _MIN_TTL_S <= request.output_expires_after_s <= _MAX_TTL_S:
        name = "output_expires_after_s"
        raise invalid(name, f"{name}: must be {_MIN_TTL_S} to {_MAX_TTL_S}")


def _check_metadata(metadata: bytes) -> None:
    try:
        is_object = isinstance(orjson.loads(metadata), dict)
    except orjson.JSONDecodeError:
        is_object = False
    if not is_object or len(metadata) > _MAX_METADATA:
        raise invalid(
            "metadata", f"metadata: must be a JSON object of at most {_MAX_METADATA} bytes"
        )
