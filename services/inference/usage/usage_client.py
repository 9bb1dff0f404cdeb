"""Client of UsageService: stores usage records, with the gateway's own credential."""

from collections.abc import Sequence

import grpc

from gateway.accounts.v1 import usage_pb2_grpc
from gateway.accounts.v1.usage_pb2 import RecordUsageRequest, UsageRecord
from services.common.authentication import service_authorization
from services.common.errors import from_rpc_error

_TIMEOUT_S = 30.0


class UsageClient:
    """Stores batches of usage records."""

    def __init__(self, channel: grpc.aio.Channel, credential: bytes) -> None:
        self._stub = usage_pb2_grpc.UsageServiceStub(channel)
        self._metadata = (("authorization", service_authorization(credential)),)

    async def send(self, records: Sequence[UsageRecord]) -> None:
        """Store records, those that are stored already left as they are.

        Raises:
            GatewayError: none is stored; unavailable or timeout, if they may be later.
        """
        try:
            await self._stub.RecordUsage(
                RecordUsageRequest(records=records), metadata=self._metadata, timeout=_TIMEOUT_S
            )
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
