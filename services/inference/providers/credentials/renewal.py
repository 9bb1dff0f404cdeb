"""Credentials that end: loaded in a thread, and renewed ahead of their end.

Nothing blocks the event loop, and no request waits while the current credentials are valid.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from gateway.errors.v1 import errors_pb2
from services.common import extras
from services.common.errors import UpstreamError

log = logging.getLogger(__name__)

# Credentials are renewed this long before they end, by requests that do not wait for it, and
# awaited if they end sooner than the second one.
_RENEW_AHEAD_S = 15 * 60
_AWAIT_AHEAD_S = 30
# Minimum interval after a success: credentials without an end are read again too, as their file may
# have changed. And after a failure, or if the credentials end soon.
_PAUSE_S = 60.0
_RETRY_S = 5.0

Value = TypeVar("Value")


class Loaded(NamedTuple, Generic[Value]):
    """Loaded credentials.

    Attributes:
        value: the credentials.
        ends_within: returns whether they end within a number of seconds.
        renews: whether they end, and are renewed by their source.
    """

    value: Value
    ends_within: Callable[[float], bool]
    renews: bool


class Source(Protocol[Value]):
    """A source of credentials.

    Attributes:
        cloud: whose credentials they are, in words.
        extra: the extra of the package that it needs.
        advice: what the operator can do if there are none.
    """

    cloud: str
    extra: str
    advice: str

    def load(self) -> Loaded[Value] | None:
        """Return valid credentials, renewed if they end soon; None without any. Blocks.

        Raises:
            Exception: the source failed, as its library reports it.
        """

    def explain(self, error: Exception) -> str:
        """Return what an error of `load` means, for callers; "" if only the log may say it."""


class RenewedCredentials(Generic[Value]):
    """The current credentials of a provider.

    Args:
        provider: the provider's name in the settings, for errors.
        source: loads credentials; called in a thread, once at a time.
        now: returns seconds of a monotonic clock.
    """

    def __init__(
        self,
        provider: str,
        source: Source[Value],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._provider = provider
        self._source = source
        self._now = now
        self._loaded: Loaded[Value] | None = None
        self._load_at = 0.0  # not loaded again before
        self._loading: asyncio.Task[None] | None = None
        self._failure: UpstreamError | None = None

    @property
    def latest(self) -> Value | None:
        """The credentials that were loaded last; they may have ended."""
        return None if self._loaded is None else self._loaded.value

    async def current(self) -> Value:
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
            raise self._failure or self._error(self._source.advice)
        return loaded.value

    def _is_due(self) -> bool:
        loaded = self._loaded
        return loaded is None or not loaded.renews or loaded.ends_within(_RENEW_AHEAD_S)

    async def _renew(self) -> None:
        try:
            loaded = await asyncio.to_thread(self._source.load)
            if loaded is None:
                self._failed(self._source.advice)
            else:
                self._loaded, self._failure = loaded, None
                is_short = loaded.ends_within(2 * _PAUSE_S)
                self._load_at = self._now() + (_RETRY_S if is_short else _PAUSE_S)
        except ImportError:
            extra = self._source.extra
            self._failed(f"install the extra `{extra}`: {extras.how_to_add(extra)}")
        except Exception as error:
            # Sources raise errors of many libraries. Requests fail with the name of the error; its
            # text, which may name profiles and roles, is for the operator.
            name = type(error).__name__
            meaning = self._source.explain(error)
            self._failed(meaning or f"their source failed ({name}); see the gateway's log")
            what = f"no {self._source.cloud} credentials"
            log.warning(what, extra={"provider": self._provider}, exc_info=True)
        finally:
            self._loading = None

    def _failed(self, advice: str) -> None:
        self._failure = self._error(advice)
        self._load_at = self._now() + _RETRY_S

    def _error(self, advice: str) -> UpstreamError:
        return UpstreamError(
            errors_pb2.REASON_UPSTREAM_AUTH,
            f"the gateway has no {self._source.cloud} credentials for the provider "
            f"{self._provider}; {advice}",
        )
