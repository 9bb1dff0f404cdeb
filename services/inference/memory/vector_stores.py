"""Client of the vector stores, with the caller's own key."""

from collections.abc import Sequence

import grpc

from gateway.inference.v1.inference_pb2 import WebTool
from gateway.memory.v1 import vector_stores_pb2, vector_stores_pb2_grpc
from gateway.memory.v1.vector_stores_pb2 import FoundChunk, SearchVectorStoresRequest
from services.common.errors import from_rpc_error
from services.common.grpc.authentication import call_metadata, caller_key
from services.common.grpc.channels import Metadata
from services.common.process import logs


class VectorStoreClient:
    """Searches the caller's vector stores; see `FileSearches`."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = vector_stores_pb2_grpc.VectorStoreServiceStub(channel)

    async def check(self, store_ids: Sequence[str]) -> None:
        """Check that vector stores exist."""
        request = vector_stores_pb2.GetVectorStoresRequest(ids=store_ids)
        try:
            await self._stub.GetVectorStores(request, metadata=_metadata())
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None

    async def search(
        self, tool: WebTool, queries: Sequence[str], count: int
    ) -> Sequence[FoundChunk]:
        """Return the chunks that match queries best."""
        files = tool.files
        request = SearchVectorStoresRequest(
            vector_store_ids=files.vector_store_ids,
            queries=queries,
            filters=files.filters,
            max_results=count,
            score_threshold=files.score_threshold,
        )
        if files.HasField("vector_share"):
            request.vector_share = files.vector_share
        try:
            answer = await self._stub.SearchVectorStores(request, metadata=_metadata())
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
        return answer.results


def _metadata() -> Metadata:
    return call_metadata(caller_key.get(), logs.request_id.get())
