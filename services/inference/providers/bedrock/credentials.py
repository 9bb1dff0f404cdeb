"""AWS credentials, found and renewed by botocore in a thread, ahead of their end.

Every source that botocore knows is tried in its order: environment variables, assumed roles and web
identities, shared profiles, single sign-on, processes, containers and the metadata service of an
instance. Nothing blocks the event loop, and no request waits while the current credentials are
valid.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from services.common import extras
from services.common.errors import UpstreamError
from services.inference.providers.bedrock.errors import no_credentials

log = logging.getLogger(__name__)

# Credentials are renewed this long before they end, by requests that do not wait for it, and
# awaited if they end sooner than the second one.
_RENEW_AHEAD_S = 15 * 60
_AWAIT_AHEAD_S = 30
# Minimum interval after a success: credentials without an end are read again too, as their file may
# have changed. And after a failure, or if the credentials end soon.
_PAUSE_S = 60.0
_RETRY_S = 5.0
_ADVICE = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE or a role, or an API key in "
    "AWS_BEARER_TOKEN_BEDROCK"
)


class Keys(Protocol):
    """The parts of credentials, as `botocore.credentials.ReadOnlyCredentials` has them."""

    access_key: str
    secret_key: str
    token: str | None


class Loaded(NamedTuple):
    """Loaded credentials.

    Attributes:
        keys: the credentials.
        ends_within: returns whether they end within a number of seconds.
        renews: whether they end, and are renewed by their source.
    """

    keys: Keys
    ends_within: Callable[[float], bool]
    renews: bool


class CredentialChain:
    """Finds credentials with botocore; blocks.

    Args:
        profile: name of a shared profile; "" for the default.
    """

    def __init__(self, profile: str) -> None:
        self._profile = profile
        self._renewing: Any = None  # credentials that botocore renews

    def load(self) -> Loaded | None:
        """Return valid credentials, renewed if they end soon; None without any.

        Raises:
            Exception: a source failed, as its library reports it.
        """
        # Imported when first used, in the thread.
        import botocore.auth
        import botocore.awsrequest
        import botocore.session

        # Its debug messages have session tokens.
        logging.getLogger("botocore").setLevel(logging.WARNING)

        credentials = self._renewing
        if credentials is None:
            credentials = botocore.session.Session(profile=self._profile or None).get_credentials()
            if credentials is None:
                return None
        keys = credentials.get_frozen_credentials()
        if not hasattr(credentials, "refresh_needed"):
            return Loaded(keys, lambda seconds: False, renews=False)
        self._renewing = credentials
        return Loaded(keys, credentials.refresh_needed, renews=True)


class AwsCredentials:
    """The current credentials of a provider.

    Args:
        provider: the provider's name in the settings, for errors.
        load: returns credentials; called in a thread, once at a time.
        now: returns seconds of a monotonic clock.
    """

    def __init__(
        self,
        provider: str,
        load: Callable[[], Loaded | None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._provider = provider
        self._load = load
        self._now = now
        self._loaded: Loaded | None = None
        self._load_at = 0.0  # not loaded again before
        self._loading: asyncio.Task[None] | None = None
        self._failure: UpstreamError | None = None

    async def current(self) -> Keys:
        """Return valid credentials.

        Raises:
            UpstreamError: there are none, or their source failed.
        """
        if self._is_due() and self._loading is None and self._now() >= self._load_at:
            self._loading = asyncio.create_task(self._renew())
        loaded = self._loaded
        if loaded is None or loaded.ends_within(_AWAIT_AHEAD_S):
            if self._loading is not None:
                await asyncio.shield(self._loading)
            loaded = self._loaded
        if loaded is None or (self._failure is not None and loaded.ends_within(0)):
            raise self._failure or no_credentials(self._provider, _ADVICE)
        return loaded.keys

    def _is_due(self) -> bool:
        loaded = self._loaded
        return loaded is None or not loaded.renews or loaded.ends_within(_RENEW_AHEAD_S)

    async def _renew(self) -> None:
        try:
            loaded = await asyncio.to_thread(self._load)
            if loaded is None:
                self._failed(_ADVICE)
            else:
                self._loaded, self._failure = loaded, None
                is_short = loaded.ends_within(2 * _PAUSE_S)
                self._load_at = self._now() + (_RETRY_S if is_short else _PAUSE_S)
        except ImportError:
            self._failed(f"install the extra `aws`: {extras.how_to_add('aws')}")
        except Exception as error:
            # Sources raise errors of many libraries. Requests fail with the name of the error; its
            # text, which may name profiles and roles, is for the operator.
            self._failed(f"their source failed ({type(error).__name__}); see the gateway's log")
            log.warning("no AWS credentials", extra={"provider": self._provider}, exc_info=True)
        finally:
            self._loading = None

    def _failed(self, advice: str) -> None:
        self._failure = no_credentials(self._provider, advice)
        self._load_at = self._now() + _RETRY_S
