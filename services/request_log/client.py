"""Client of RequestLogService: stores entries, with the gateway's own credential."""

from collections.abc import Sequence

import grpc

from gateway.requests.v1 import requests_pb2_grpc
from gateway.requests.v1.requests_pb2 import LoggedRequest, RecordRequestsRequest, RequestBodies
from services.common.errors import from_rpc_error
from services.common.grpc.authentication import service_authorization

_TIMEOUT_S = 30.0


class RequestLogClient:
    """Stores batches of entries."""

    def __init__(self, channel: grpc.aio.Channel, credential: bytes) -> None:
        self._stub: requests_pb2_grpc.RequestLogServiceAsyncStub = (
            requests_pb2_grpc.RequestLogServiceStub(channel)
        )
        self._metadata = (("authorization", service_authorization(credential)),)

    async def send(
        self, requests: Sequence[LoggedRequest], bodies: Sequence[RequestBodies]
    ) -> None:
        """Store entries, and bodies of some; entries that are already stored are skipped.

        Raises:
            GatewayError: nothing was stored; unavailable or timeout if a later call may succeed.
        """
        try:
            await self._stub.RecordRequests(
                RecordRequestsRequest(requests=requests, bodies=bodies),
                metadata=self._metadata,
                timeout=_TIMEOUT_S,
            )
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
