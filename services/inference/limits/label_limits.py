"""The limits of callers together with those of the labels of their requests."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from gateway.accounts.v1.limits_pb2 import SubjectLimits
from services.common.errors import GatewayError
from services.common.grpc.authentication import Caller
from services.common.labels import END_USER, Labels, request_labels
from services.inference.allowances.lease_client import LimitClient
from services.inference.usage.label_reader import LabelReader

# Time after which changed limits of labels apply.
_TTL_S = 2.0
# Callers with labels whose limits are cached.
_MOST = 10_000


class _CachedLimits(NamedTuple):
    """The limits of a caller with labels.

    Attributes:
        expires_at: when they are read again, by the monotonic clock.
        of_caller: the limits in the caller's identity.
        of_labels: the limits of the labels.
        all: both; the same object while neither changes.
    """

    expires_at: float
    of_caller: Sequence[SubjectLimits]
    of_labels: Sequence[SubjectLimits]
    all: Sequence[SubjectLimits]


class LabelLimits:
    """Reads the labels of requests, and the limits that apply to them.

    Args:
        reader: reads the labels.
        client: client of the LimitService.
        monotonic: monotonic clock, in seconds.
    """

    def __init__(
        self, reader: LabelReader, client: LimitClient, monotonic: Callable[[], float]
    ) -> None:
        self._reader = reader
        self._client = client
        self._monotonic = monotonic
        self._cache: OrderedDict[tuple[str, Labels], _CachedLimits] = OrderedDict()

    async def begin(
        self, owner: Caller, metadata: Iterable[tuple[str, str | bytes]]
    ) -> Sequence[SubjectLimits]:
        """Set the labels of the current task's request; return all limits that apply to it.

        Raises:
            GatewayError: invalid_request, naming the key of the metadata; unavailable, the limits
                of the labels cannot be read.
        """
        labels = self._reader.read(owner, metadata)
        request_labels.set(labels)
        return await self._limits(owner, labels) if labels else owner.limits

    async def _limits(self, owner: Caller, labels: Labels) -> Sequence[SubjectLimits]:
        key, now = (owner.key_id or owner.user_id, labels), self._monotonic()
        cached = self._cache.get(key)
        if cached is not None and cached.of_caller is owner.limits and now < cached.expires_at:
            return cached.all
        tags = dict(labels)
        end_user = tags.pop(END_USER, "")
        try:
            of_labels = await self._client.label_limits(owner.user_id, tags, end_user)
        except GatewayError:
            if cached is None:
                raise
            of_labels = cached.of_labels
        if cached is None or cached.of_caller is not owner.limits or cached.of_labels != of_labels:
            cached = _CachedLimits(0.0, owner.limits, of_labels, (*owner.limits, *of_labels))
            if not of_labels:
                cached = cached._replace(all=owner.limits)
        self._cache[key] = cached._replace(expires_at=now + _TTL_S)
        if len(self._cache) > _MOST:
            self._cache.popitem(last=False)
        return cached.all
