"""Client of UsageService: stores usage records, with the gateway's own credential."""

from operator import methodcaller

import grpc

from gateway.accounts.v1 import usage_pb2
from gateway.accounts.v1.usage_pb2 import RecordUsageResponse
from services.common.errors import from_rpc_error
from services.common.grpc.authentication import service_authorization
from services.common.messages.usage_batch import UsageBatch

_SERVICE = usage_pb2.DESCRIPTOR.services_by_name["UsageService"]
_RECORD_USAGE = f"/{_SERVICE.full_name}/{_SERVICE.methods_by_name['RecordUsage'].name}"
_TIMEOUT_S = 30.0


class UsageClient:
    """Stores batches of usage records."""

    def __init__(self, channel: grpc.aio.Channel, credential: bytes) -> None:
        # The generated stub accepts only the message itself.
        self._record_usage = channel.unary_unary(
            _RECORD_USAGE,
            request_serializer=methodcaller("SerializeToString"),
            response_deserializer=RecordUsageResponse.FromString,
        )
        self._metadata = (("authorization", service_authorization(credential)),)

    async def send(self, batch: UsageBatch) -> None:
        """Store records; records that are already stored are skipped.

        Raises:
            GatewayError: nothing was stored; unavailable or timeout if a later call may succeed.
        """
        try:
            await self._record_usage(batch, metadata=self._metadata, timeout=_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
