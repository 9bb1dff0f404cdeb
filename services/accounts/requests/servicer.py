"""The gRPC servicer of RequestLogService."""

from typing import Any

import grpc

from gateway.accounts.v1 import requests_pb2
from gateway.accounts.v1.requests_pb2 import (
    GetRequestRequest,
    GetRequestResponse,
    ListRequestsRequest,
    ListRequestsResponse,
    RecordRequestsRequest,
    RecordRequestsResponse,
)
from gateway.accounts.v1.requests_pb2_grpc import RequestLogServiceServicer
from gateway.errors.v1 import errors_pb2
from services.accounts.names import is_id
from services.accounts.requests.bodies import BodyStore
from services.accounts.requests.repository import RequestRepository
from services.common.errors import GatewayError, invalid
from services.common.storage.page_tokens import invalid_token

SERVICE_NAME = requests_pb2.DESCRIPTOR.services_by_name["RequestLogService"].full_name

_MAX_ENTRIES = 1_000
_MAX_PAGE_SIZE = 1_000

Context = grpc.aio.ServicerContext[Any, Any]


class RequestLogServicer(RequestLogServiceServicer):
    """Implements `requests.proto`."""

    def __init__(self, repository: RequestRepository, bodies: BodyStore) -> None:
        self._repository = repository
        self._bodies = bodies

    async def RecordRequests(
        self, request: RecordRequestsRequest, context: Context
    ) -> RecordRequestsResponse:
        """Add entries."""
        if not 1 <= len(request.requests) <= _MAX_ENTRIES:
            raise invalid("requests", f"requests: must contain 1 to {_MAX_ENTRIES:,} entries")
        for index, entry in enumerate(request.requests):
            if not is_id(entry.id) or entry.time_ms <= 0:
                raise invalid(f"requests[{index}]", f"requests[{index}]: id and time are required")
        if not all(is_id(one.id) for one in request.bodies):
            raise invalid("bodies", "bodies: must have the ids of entries")
        # Before the rows: an entry without its bodies would stay so.
        await self._bodies.put(request.bodies)
        await self._repository.add(request.requests, {one.id: one.text for one in request.bodies})
        return RecordRequestsResponse()

    async def ListRequests(
        self, request: ListRequestsRequest, context: Context
    ) -> ListRequestsResponse:
        """Return a page of entries."""
        if not 1 <= request.page_size <= _MAX_PAGE_SIZE:
            raise invalid("page_size", f"page_size: must be 1 to {_MAX_PAGE_SIZE:,}")
        if request.page_token and not is_id(request.page_token):
            raise invalid_token()
        page = await self._repository.page(request.filter, request.page_size, request.page_token)
        return ListRequestsResponse(requests=page.requests, next_page_token=page.next_token)

    async def GetRequest(self, request: GetRequestRequest, context: Context) -> GetRequestResponse:
        """Return an entry."""
        logged = await self._repository.get(request.id) if is_id(request.id) else None
        if logged is None:
            raise GatewayError(
                errors_pb2.REASON_NOT_FOUND,
                "no such entry of the request log; entries are deleted after `request_log.keep_s`",
                param="id",
            )
        bodies = await self._bodies.get(request.id) if logged.has_bodies else None
        return GetRequestResponse(request=logged, bodies=bodies)
