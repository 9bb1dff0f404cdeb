"""The gRPC servicer of VectorStoreService: validates requests and converts results."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import grpc
import orjson

from gateway.memory.v1 import vector_stores_pb2 as pb
from gateway.memory.v1 import vector_stores_pb2_grpc
from services.common.attribute_filters import check_attributes
from services.common.errors import GatewayError, invalid
from services.common.grpc.authentication import caller
from services.common.grpc.channels import forwarded_metadata
from services.common.storage.disk import DiskReserve
from services.memory.vector_stores.file_repository import AddedFile, VectorStoreFileRepository
from services.memory.vector_stores.file_text import FileTexts
from services.memory.vector_stores.records import (
    MAX_DESCRIPTION,
    MAX_EXPIRY_DAYS,
    MAX_METADATA,
    MAX_NAME,
    check_chunking,
)
from services.memory.vector_stores.searching import VectorStoreSearch
from services.memory.vector_stores.store_repository import StoreRepository

SERVICE_NAME: Final = pb.DESCRIPTOR.services_by_name["VectorStoreService"].full_name
MAX_STORES: Final = 10
_MAX_CREATED_FILES: Final = 500
_MAX_FILES: Final = 2_000
_MAX_PAGE: Final = 100
_MAX_TEXTS: Final = 200
_MAX_QUERIES: Final = 8
_MAX_QUERY: Final = 10_000
_MAX_RESULTS: Final = 50
# Files that are looked up in the file store at a time.
_LOOKUPS: Final = 8

Context = grpc.aio.ServicerContext[Any, Any]


class VectorStoreServicer(vector_stores_pb2_grpc.VectorStoreServiceServicer):
    """Serves the RPCs of `vector_stores.proto`; failures are raised as GatewayError.

    Args:
        stores: the vector stores.
        files: their files.
        texts: describes files of the file store.
        search: searches.
        reserve: the free disk space that storing requires.
        on_added: called when there are new jobs.
    """

    def __init__(
        self,
        stores: StoreRepository,
        files: VectorStoreFileRepository,
        texts: FileTexts,
        search: VectorStoreSearch,
        reserve: DiskReserve,
        on_added: Callable[[], object],
    ) -> None:
        self._stores = stores
        self._files = files
        self._texts = texts
        self._search = search
        self._reserve = reserve
        self._on_added = on_added

    async def CreateVectorStore(
        self, request: pb.CreateVectorStoreRequest, context: Context
    ) -> pb.CreateVectorStoreResponse:
        """Create a vector store."""
        _check_texts(request.name, request.description, request.metadata)
        if request.HasField("expires_after_days"):
            _check_days(request.expires_after_days, 1)
        added = await self._described(request.files, _MAX_CREATED_FILES, context)
        self._reserve.check()
        store_id = await self._stores.create(caller.get().user_id, request)
        if added:
            await self._files.add(caller.get(), store_id, added, is_batch=False)
            self._on_added()
        return pb.CreateVectorStoreResponse(vector_store=await self._one(store_id))

    async def GetVectorStores(
        self, request: pb.GetVectorStoresRequest, context: Context
    ) -> pb.GetVectorStoresResponse:
        """Return vector stores."""
        _check_count(request.ids, "ids", MAX_STORES)
        stores = await self._stores.find(caller.get().user_id, request.ids)
        return pb.GetVectorStoresResponse(vector_stores=stores)

    async def ListVectorStores(
        self, request: pb.ListVectorStoresRequest, context: Context
    ) -> pb.ListVectorStoresResponse:
        """Return a page of vector stores."""
        _check_page(request.page)
        stores, has_more = await self._stores.page(caller.get().user_id, request.page)
        return pb.ListVectorStoresResponse(vector_stores=stores, has_more=has_more)

    async def UpdateVectorStore(
        self, request: pb.UpdateVectorStoreRequest, context: Context
    ) -> pb.UpdateVectorStoreResponse:
        """Change a vector store."""
        _check_texts(request.name, "", request.metadata)
        _check_days(request.expires_after_days, 0)
        await self._stores.change(caller.get().user_id, request)
        return pb.UpdateVectorStoreResponse(vector_store=await self._one(request.id))

    async def DeleteVectorStore(
        self, request: pb.DeleteVectorStoreRequest, context: Context
    ) -> pb.DeleteVectorStoreResponse:
        """Delete a vector store."""
        await self._stores.delete(caller.get().user_id, request.id)
        self._on_added()
        return pb.DeleteVectorStoreResponse()

    async def SearchVectorStores(
        self, request: pb.SearchVectorStoresRequest, context: Context
    ) -> pb.SearchVectorStoresResponse:
        """Search vector stores."""
        _check_count(request.vector_store_ids, "vector_store_ids", MAX_STORES)
        _check_count(request.queries, "queries", _MAX_QUERIES)
        for index, query in enumerate(request.queries):
            if not query.strip() or len(query) > _MAX_QUERY:
                name = f"queries[{index}]"
                raise invalid(name, f"{name}: must be 1 to {_MAX_QUERY:,} characters")
        if request.HasField("max_results") and not 1 <= request.max_results <= _MAX_RESULTS:
            raise invalid("max_results", f"max_results: must be 1 to {_MAX_RESULTS}")
        for field in ("score_threshold", "vector_share"):
            if not 0 <= getattr(request, field) <= 1:
                raise invalid(field, f"{field}: must be 0 to 1")
        chunks = await self._search.search(caller.get().user_id, request)
        return pb.SearchVectorStoresResponse(results=chunks)

    async def AddVectorStoreFiles(
        self, request: pb.AddVectorStoreFilesRequest, context: Context
    ) -> pb.AddVectorStoreFilesResponse:
        """Add files to a vector store."""
        _check_count(request.files, "files", _MAX_FILES)
        owner, store_id = caller.get(), request.vector_store_id
        await self._one(store_id)
        added = await self._described(request.files, _MAX_FILES, context)
        self._reserve.check()
        batch_id = await self._files.add(owner, store_id, added, is_batch=request.is_batch)
        self._on_added()
        answer = pb.AddVectorStoreFilesResponse()
        if batch_id:
            batch = await self._files.batch(owner.user_id, store_id, batch_id)
            answer.batch.CopyFrom(batch)
        else:
            for one in added:
                file = await self._files.find(owner.user_id, store_id, one.new.file_id)
                answer.files.append(file)
        return answer

    async def GetVectorStoreFile(
        self, request: pb.GetVectorStoreFileRequest, context: Context
    ) -> pb.GetVectorStoreFileResponse:
        """Return a file."""
        return pb.GetVectorStoreFileResponse(file=await self._file(request))

    async def ListVectorStoreFiles(
        self, request: pb.ListVectorStoreFilesRequest, context: Context
    ) -> pb.ListVectorStoreFilesResponse:
        """Return a page of files."""
        _check_page(request.page)
        files, has_more = await self._files.page(caller.get().user_id, request)
        return pb.ListVectorStoreFilesResponse(files=files, has_more=has_more)

    async def UpdateVectorStoreFile(
        self, request: pb.UpdateVectorStoreFileRequest, context: Context
    ) -> pb.UpdateVectorStoreFileResponse:
        """Replace the attributes of a file."""
        attributes = check_attributes(request.attributes, "attributes")
        await self._files.set_attributes(
            caller.get().user_id, request.vector_store_id, request.file_id, attributes
        )
        return pb.UpdateVectorStoreFileResponse(file=await self._file(request))

    async def RemoveVectorStoreFile(
        self, request: pb.RemoveVectorStoreFileRequest, context: Context
    ) -> pb.RemoveVectorStoreFileResponse:
        """Remove a file."""
        await self._files.remove(caller.get().user_id, request.vector_store_id, request.file_id)
        self._on_added()
        return pb.RemoveVectorStoreFileResponse()

    async def ReadVectorStoreFile(
        self, request: pb.ReadVectorStoreFileRequest, context: Context
    ) -> pb.ReadVectorStoreFileResponse:
        """Return a part of the text of a file."""
        if not 1 <= request.page_size <= _MAX_TEXTS:
            raise invalid("page_size", f"page_size: must be 1 to {_MAX_TEXTS}")
        texts, has_more = await self._files.texts(
            caller.get().user_id,
            request.vector_store_id,
            request.file_id,
            request.first,
            request.page_size,
        )
        return pb.ReadVectorStoreFileResponse(texts=texts, has_more=has_more)

    async def GetVectorStoreFileBatch(
        self, request: pb.GetVectorStoreFileBatchRequest, context: Context
    ) -> pb.GetVectorStoreFileBatchResponse:
        """Return a batch of files."""
        return pb.GetVectorStoreFileBatchResponse(batch=await self._batch(request))

    async def CancelVectorStoreFileBatch(
        self, request: pb.CancelVectorStoreFileBatchRequest, context: Context
    ) -> pb.CancelVectorStoreFileBatchResponse:
        """Cancel a batch of files."""
        await self._files.cancel_batch(
            caller.get().user_id, request.vector_store_id, request.batch_id
        )
        return pb.CancelVectorStoreFileBatchResponse(batch=await self._batch(request))

    async def _one(self, store_id: str) -> pb.VectorStore:
        [store] = await self._stores.find(caller.get().user_id, [store_id], "vector_store_id")
        return store

    async def _file(
        self, request: pb.GetVectorStoreFileRequest | pb.UpdateVectorStoreFileRequest
    ) -> pb.VectorStoreFile:
        return await self._files.find(
            caller.get().user_id, request.vector_store_id, request.file_id
        )

    async def _batch(
        self, request: pb.GetVectorStoreFileBatchRequest | pb.CancelVectorStoreFileBatchRequest
    ) -> pb.VectorStoreFileBatch:
        return await self._files.batch(
            caller.get().user_id, request.vector_store_id, request.batch_id
        )

    async def _described(
        self, files: Sequence[pb.NewVectorStoreFile], most: int, context: Context
    ) -> list[AddedFile]:
        """Check files to add, which the caller's own key must be able to read."""
        if len(files) > most:
            raise invalid("files", f"files: must have at most {most:,} files")
        seen: set[str] = set()
        for index, new in enumerate(files):
            path = f"files[{index}]"
            if new.file_id in seen:
                raise invalid(f"{path}.file_id", f"{path}.file_id: must be named once")
            seen.add(new.file_id)
            if new.HasField("chunking"):
                check_chunking(new.chunking, f"{path}.chunking")
            new.attributes = check_attributes(new.attributes, f"{path}.attributes")
        metadata, turns = forwarded_metadata(context), asyncio.Semaphore(_LOOKUPS)

        async def describe(index: int, new: pb.NewVectorStoreFile) -> AddedFile:
            async with turns:
                try:
                    file = await self._texts.describe(new.file_id, metadata)
                except GatewayError as error:
                    param = f"files[{index}].file_id"
                    error.message = error.message.replace("file_id", param, 1)
                    error.param = param
                    raise
            return AddedFile(new, file.filename)

        return await _all([describe(index, new) for index, new in enumerate(files)])


async def _all(describing: Sequence[Any]) -> list[AddedFile]:
    """Return the results of coroutines; the first error ends the others."""
    tasks = [asyncio.ensure_future(one) for one in describing]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _check_texts(name: str, description: str, metadata: bytes) -> None:
    for field, text, most in (
        ("name", name, MAX_NAME),
        ("description", description, MAX_DESCRIPTION),
    ):
        if len(text) > most or "\0" in text:
            raise invalid(field, f"{field}: must have at most {most} characters, without NUL")
    if not metadata:
        return
    try:
        is_object = isinstance(orjson.loads(metadata), dict)
    except orjson.JSONDecodeError:
        is_object = False
    if not is_object or len(metadata) > MAX_METADATA:
        raise invalid("metadata", f"metadata: must be an object of at most {MAX_METADATA:,} bytes")


def _check_days(days: int, least: int) -> None:
    if not least <= days <= MAX_EXPIRY_DAYS:
        name = "expires_after_days"
        raise invalid(name, f"{name}: must be {least} to {MAX_EXPIRY_DAYS}")


def _check_page(page: pb.PageRequest) -> None:
    if not 1 <= page.page_size <= _MAX_PAGE:
        raise invalid("page_size", f"page_size: must be 1 to {_MAX_PAGE}")
    if page.after_id and page.before_id:
        raise invalid("before_id", "before_id: cannot be combined with the other cursor")


def _check_count(items: Sequence[object], field: str, most: int) -> None:
    if not 1 <= len(items) <= most:
        raise invalid(field, f"{field}: must have 1 to {most:,} elements")
