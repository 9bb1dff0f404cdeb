"""The gRPC servicer of StoredProviderService."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from gateway.accounts.v1 import stored_providers_pb2 as pb2
from gateway.accounts.v1 import stored_providers_pb2_grpc
from services.accounts.admin.audit import Actor
from services.accounts.providers.repository import NewProvider, StoredProviderRepository
from services.common.client_address import TrustedProxies
from services.common.errors import GatewayError
from services.common.grpc.authentication import caller
from services.common.grpc.peers import caller_address
from services.common.process import logs
from services.common.provider_candidates import storable_presets

SERVICE_NAME = pb2.DESCRIPTOR.services_by_name["StoredProviderService"].full_name

log = logging.getLogger(__name__)

Context = grpc.aio.ServicerContext[Any, Any]


class StoredProviderServicer(stored_providers_pb2_grpc.StoredProviderServiceServicer):
    """Implements `stored_providers.proto`; errors are raised as GatewayError.

    Args:
        providers: the stored providers.
        apply: applies a change to this process at once; other processes read of it.
        proxies: the proxies whose headers name callers.
    """

    def __init__(
        self,
        providers: StoredProviderRepository,
        apply: Callable[[], Awaitable[None]],
        proxies: TrustedProxies,
    ) -> None:
        self._providers = providers
        self._apply = apply
        self._proxies = proxies

    async def ListStoredProviders(
        self, request: pb2.ListStoredProvidersRequest, context: Context
    ) -> pb2.ListStoredProvidersResponse:
        """Return all stored providers."""
        return pb2.ListStoredProvidersResponse(
            providers=await self._providers.list_all(),
            can_store=self._providers.can_store,
            presets=[
                pb2.ProviderPreset(
                    name=name,
                    kind=preset.kind,
                    base_url=preset.base_url,
                    key_variable=preset.key_variable,
                )
                for name, preset in storable_presets()
            ],
        )

    async def SetStoredProvider(
        self, request: pb2.SetStoredProviderRequest, context: Context
    ) -> pb2.SetStoredProviderResponse:
        """Create or change a provider."""
        new = NewProvider(
            request.name,
            request.kind,
            request.base_url,
            request.api_key if request.HasField("api_key") else None,
        )
        stored = await self._providers.set(new, self._actor(context))
        await self._apply_now()
        return pb2.SetStoredProviderResponse(provider=stored)

    async def DeleteStoredProvider(
        self, request: pb2.DeleteStoredProviderRequest, context: Context
    ) -> pb2.DeleteStoredProviderResponse:
        """Delete a provider."""
        await self._providers.delete(request.name, self._actor(context))
        await self._apply_now()
        return pb2.DeleteStoredProviderResponse()

    async def _apply_now(self) -> None:
        """Apply a change that is committed; if the database fails now, it is read of later."""
        try:
            await self._apply()
        except GatewayError as error:
            log.warning("stored providers could not be read", extra={"error": error.message})

    def _actor(self, context: Context) -> Actor:
        """Return the administrator of a call."""
        administrator = caller.get()
        return Actor(
            administrator.key_id,
            logs.request_id.get(),
            administrator.key_name,
            caller_address(context, self._proxies),
        )
