"""Tests of providers for administrators: a request for the list of models, within bounds."""

import asyncio
import os
from collections.abc import Callable, Mapping

from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import providers_pb2 as pb2
from services.common import http
from services.common.clock import Clock
from services.common.errors import GatewayError, UpstreamError, invalid
from services.common.provider_candidates import KINDS, candidate, storable_presets
from services.common.settings import SANDBOX, Provider, Settings
from services.inference.models import discovery
from services.inference.providers.address_guard import is_external, origins_of
from services.inference.providers.credentials.authorizers import Authorizers

_TIMEOUT_S = 10.0
_MAX_TESTS = 4
_MAX_ANSWER = 8 << 20
_KEY_REJECTED = (401, 403)
_NO_LIST = (404, 405, 501)


class ProviderTests:
    """Tests providers that are in use, and others that could be added.

    Args:
        providers: returns the providers in use, by name.
        trusted: returns those of the settings and of the environment, by name.
        settings: returns the settings in force.
        clock: measures how long tests take.
        environ: has the keys of providers.
    """

    def __init__(
        self,
        providers: Callable[[], Mapping[str, Provider]],
        trusted: Callable[[], Mapping[str, Provider]],
        settings: Callable[[], Settings],
        clock: Clock,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._providers = providers
        self._trusted = trusted
        self._settings = settings
        self._clock = clock
        self._environ = environ
        self._running = 0

    async def test(self, request: pb2.TestProviderRequest) -> pb2.TestProviderResponse:
        """Test a provider.

        Raises:
            GatewayError: invalid_request, not_found, rate_limited.
        """
        provider = self._provider_of(request)
        if self._running >= _MAX_TESTS:
            raise GatewayError(
                errors_pb2.REASON_RATE_LIMITED,
                f"{_MAX_TESTS} tests of providers run already; try again in some seconds",
                retry_after_s=1,
            )
        self._running += 1
        began = self._clock.monotonic()
        try:
            answer = await self._ask(request.name, provider)
        finally:
            self._running -= 1
        answer.name = request.name
        answer.duration_ms = round(1000 * (self._clock.monotonic() - began))
        return answer

    def _provider_of(self, request: pb2.TestProviderRequest) -> Provider:
        """Return the provider that a request describes.

        Raises:
            GatewayError: invalid_request, not_found.
        """
        in_use = self._providers().get(request.name)
        is_described = bool(request.kind or request.base_url)
        if not is_described and in_use is not None:
            if not request.HasField("api_key"):
                return in_use
            if in_use.kind not in KINDS:
                raise invalid("api_key", f"api_key: not tested for the kind {in_use.kind}")
            described = candidate(
                *(request.name, in_use.kind, in_use.base_url, request.api_key),
                self._settings().server,
                may_be_internal=True,  # the address is in use already
            )
            return described.settings()
        if not is_described and request.name not in dict(storable_presets()):
            raise GatewayError(errors_pb2.REASON_NOT_FOUND, "name: no such provider", param="name")
        if in_use is not None and not request.HasField("api_key"):
            raise invalid(
                "api_key", "api_key: required, since a key is not sent to another address"
            )
        return candidate(
            *(request.name, request.kind, request.base_url, request.api_key),
            self._settings().server,
            may_be_internal=self._settings().stored_providers.internal_addresses,
        ).settings()

    async def _ask(self, name: str, provider: Provider) -> pb2.TestProviderResponse:
        if provider.kind == SANDBOX:
            return pb2.TestProviderResponse(outcome=pb2.TEST_OUTCOME_VALID)
        if provider.missing_key(self._environ):
            return pb2.TestProviderResponse(outcome=pb2.TEST_OUTCOME_KEY_REJECTED)
        authorize = Authorizers().of(name, provider, provider.key(self._environ))
        try:
            async with asyncio.timeout(_TIMEOUT_S), self._client(provider) as client:
                response = await discovery.ask_models(
                    client, provider, environ=self._environ, authorize=authorize
                )
                status, listed = await discovery.read_list(response)
        except http.AddressNotAllowedError:
            return pb2.TestProviderResponse(outcome=pb2.TEST_OUTCOME_NOT_ALLOWED)
        except UpstreamError:  # there are no credentials
            return pb2.TestProviderResponse(outcome=pb2.TEST_OUTCOME_KEY_REJECTED)
        except (http.HttpError, TimeoutError, OSError):
            return pb2.TestProviderResponse(outcome=pb2.TEST_OUTCOME_UNREACHABLE)
        except ValueError:  # the list is too long
            return pb2.TestProviderResponse(outcome=pb2.TEST_OUTCOME_FAILED)
        models = discovery.listed_names(listed) if status == 200 else []
        is_list = models is not None or provider.kind not in KINDS
        return pb2.TestProviderResponse(
            outcome=_outcome(status, is_list=is_list), status=status, models=models or []
        )

    def _client(self, provider: Provider) -> http.Client:
        """Return a client for one test, which refuses internal addresses unless they are allowed.

        Its connections are not shared, so that tests of wrong addresses leave none behind.
        """
        settings = self._settings()
        origins = origins_of([provider])
        is_trusted = origins <= origins_of(self._trusted().values())
        is_free = is_trusted or settings.stored_providers.internal_addresses
        return http.Client(
            settings.limits.connect_timeout_s,
            max_answer_bytes=_MAX_ANSWER,
            may_connect=None if is_free else lambda _, host: is_external(host),
        )


def _outcome(status: int, *, is_list: bool) -> pb2.TestOutcome.ValueType:
    if status == 200:
        return pb2.TEST_OUTCOME_VALID if is_list else pb2.TEST_OUTCOME_NO_LIST
    if status in _KEY_REJECTED:
        return pb2.TEST_OUTCOME_KEY_REJECTED
    return pb2.TEST_OUTCOME_NO_LIST if status in _NO_LIST else pb2.TEST_OUTCOME_FAILED
