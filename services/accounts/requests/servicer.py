"""The gRPC servicer of RequestLogService."""

from typing import Any

import grpc

from gateway.errors.v1 import errors_pb2
from gateway.requests.v1 import requests_pb2
from gateway.requests.v1.requests_pb2 import (
    GetRequestRequest,
    GetRequestResponse,
    ListRequestsRequest,
    ListRequestsResponse,
    RecordRequestsRequest,
    RecordRequestsResponse,
    RequestFilter,
)
from gateway.requests.v1.requests_pb2_grpc import RequestLogServiceServicer
from services.accounts.names import is_id
from services.accounts.requests.bodies import BodyStore
from services.accounts.requests.repository import RequestRepository
from services.common.errors import GatewayError, invalid
from services.common.grpc.authentication import caller
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
        return await self._page(request, request.filter)

    async def ListOwnRequests(
        self, request: ListRequestsRequest, context: Context
    ) -> ListRequestsResponse:
        """Return a page of entries of the caller's user."""
        own = RequestFilter()
        own.CopyFrom(request.filter)
        own.user_id = caller.get().user_id
        return await self._page(request, own)

    async def GetRequest(self, request: GetRequestRequest, context: Context) -> GetRequestResponse:
        """Return an entry."""
        return await self._entry(request.id)

    async def GetOwnRequest(
        self, request: GetRequestRequest, context: Context
    ) -> GetRequestResponse:
        """Return an entry of the caller's user."""
        return await self._entry(request.id, caller.get().user_id)

    async def _page(
        self, request: ListRequestsRequest, request_filter: RequestFilter
    ) -> ListRequestsResponse:
        if not 1 <= request.page_size <= _MAX_PAGE_SIZE:
            raise invalid("page_size", f"page_size: must be 1 to {_MAX_PAGE_SIZE:,}")
        if request.page_token and not is_id(request.page_token):
            raise invalid_token()
        page = await self._repository.page(request_filter, request.page_size, request.page_token)
        return ListRequestsResponse(requests=page.requests, next_page_token=page.next_token)

    async def _entry(self, entry_id: str, user_id: str = "") -> GetRequestResponse:
        logged = await self._repository.get(entry_id, user_id) if is_id(entry_id) else None
        if logged is None:
            raise GatewayError(
                errors_pb2.REASON_NOT_FOUND,
                "id: no such entry of the request log; entries are deleted after "
                "`request_log.keep_s`",
                param="id",
            )
        bodies = await self._bodies.get(entry_id) if logged.has_bodies else None
        return GetRequestResponse(request=logged, bodies=bodies)
