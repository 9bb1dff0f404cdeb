"""Authentication of gRPC calls, which all services and the facade share.

Each gRPC call carries the caller's own API key in the metadata entry
`authorization`. Accounts looks keys up; everybody else asks through `Identify`. Work that
the gateway does by itself has no key: it comes through the `ServiceAuthenticator`.
"""

import asyncio
import base64
import hashlib
import hmac
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial

from gateway.accounts.v1 import accounts_pb2
from gateway.accounts.v1.accounts_pb2 import Plan
from gateway.accounts.v1.limits_pb2 import SubjectLimits
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, invalid_api_key

_KEY_PREFIX = "gw-"
_KEY_LENGTH = len(_KEY_PREFIX) + 43
_BEARER = "bearer "
_ADMIN_KEY = re.compile(r"gwadmin-[A-Za-z0-9_-]{43}", re.ASCII)
_BEARER_ADMIN_KEY = re.compile(rf"(?i:{_BEARER})\s*({_ADMIN_KEY.pattern})\s*")
_BEARER_KEY = re.compile(rf"(?i:{_BEARER})\s*(gw-[A-Za-z0-9_-]{{43}})\s*")
_SERVICE = "Service "
# As the facade and most others write it.
_USUAL_BEARER = "Bearer "
# The part of the time for which a key is remembered, after which a failed look-up is repeated.
_ASKED_AGAIN_AFTER = 1 / 30


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of the key a call came with.

    Attributes:
        user_id: the user.
        team_id: the user's team, or "".
        plan: the team's plan where there is a team, else the user's.
        key_id: id of the key, for logs; "" where the call is the gateway's own. Callers with two
            keys of one user are equal.
        limits: those of the key, its user and the user's team, of those that have any.
    """

    user_id: str
    team_id: str
    plan: Plan.ValueType
    key_id: str = field(default="", compare=False)
    limits: Sequence[SubjectLimits] = field(default=(), compare=False)


# The user that a caller with an admin key counts as; ids of users begin with `user_`.
ADMINISTRATOR = "admin"

# Takes an API key; raises `invalid_api_key` when it belongs to nobody.
Identify = Callable[[str], Awaitable[Caller]]

# Takes an `authorization` value; raises `invalid_api_key` when it holds no admin key.
IdentifyAdmin = Callable[[str], Awaitable[Caller]]

# The field of a caller that has the id of what is changed, by its kind in the audit log.
_CALLER_FIELDS = {"key": "key_id", "user": "user_id", "team": "team_id"}

# The caller of the gRPC call that the current task serves, and the key the call came
# with, which goes along with every call that is made for the caller.
caller: ContextVar[Caller] = ContextVar("caller")
caller_key: ContextVar[str] = ContextVar("caller_key")


def is_key(text: str) -> bool:
    """Return whether `text` has the form of an API key."""
    # Every call comes here, and a pattern takes several times as long.
    return (
        len(text) == _KEY_LENGTH
        and text.startswith(_KEY_PREFIX)
        and text.isascii()
        and (text[len(_KEY_PREFIX) :].replace("-", "0").replace("_", "0")).isalnum()
    )


def bearer_key(header: str) -> str:
    """Return the key in an `Authorization` value, scheme in any case.

    Raises:
        GatewayError: `invalid_api_key` when there is none, or it cannot be a key of ours.
    """
    if header.startswith(_USUAL_BEARER) and is_key(key := header[len(_BEARER) :]):
        return key
    found = _BEARER_KEY.fullmatch(header)
    if found is not None:
        return found[1]
    if header[: len(_BEARER)].lower() != _BEARER:
        raise invalid_api_key("send the API key as `Authorization: Bearer <API_KEY>`")
    raise invalid_api_key()


def is_admin_key(text: str) -> bool:
    """Return whether `text` has the form of an admin key."""
    return _ADMIN_KEY.fullmatch(text) is not None


def bearer_admin_key(header: str) -> str:
    """Return the admin key in an `Authorization` value, scheme in any case.

    Raises:
        GatewayError: `invalid_api_key` when there is none.
    """
    found = _BEARER_ADMIN_KEY.fullmatch(header)
    if found is None:
        raise invalid_api_key("an admin key is needed: `Authorization: Bearer gwadmin-...`")
    return found[1]


async def know_no_admin(authorization: str) -> Caller:
    """Refuse every caller: the `IdentifyAdmin` of a gateway without an admin key.

    Raises:
        GatewayError: not_implemented, as for a service that does not exist.
    """
    raise GatewayError(errors_pb2.REASON_NOT_IMPLEMENTED, "this gateway does not serve that call")


def service_authorization(credential: bytes) -> str:
    """Return the `authorization` value of a call that the gateway makes by itself."""
    return _SERVICE + base64.urlsafe_b64encode(credential).rstrip(b"=").decode()


class ServiceAuthenticator:
    """Recognises the gateway's own calls among all others.

    Args:
        credential: the secret that such calls carry, 32 bytes; without one none is accepted.
    """

    def __init__(self, credential: bytes | None) -> None:
        self._expected = service_authorization(credential).encode() if credential else None

    def admit(self, authorization: str, user_id: str, *, is_for_user: bool = True) -> Caller:
        """Return the caller that a call with this `authorization` is made for.

        A call that is not `is_for_user` is made for the gateway itself, which is no user.

        Raises:
            GatewayError: `invalid_api_key` when it is not the gateway's own, or names nobody.
        """
        if self._expected is None or not hmac.compare_digest(
            authorization.encode(), self._expected
        ):
            raise invalid_api_key("this call is the gateway's own")
        if is_for_user and not user_id:
            raise invalid_api_key("this call is for nobody")
        return Caller(user_id, "", accounts_pb2.PLAN_UNSPECIFIED)


class CachingAuthenticator:
    """Remembers whose keys are, so that not every call looks them up.

    Only found owners are remembered, the latest `max_entries` of them, each for
    `ttl_s`, or until they are forgotten: a revocation counts within that time. Calls that ask
    for one key at once share one look-up. A key in use is looked up again, in the background, when
    half of the time is over: where nobody answers, it is known for the other half.
    """

    def __init__(
        self,
        identify: Identify,
        *,
        ttl_s: float,
        monotonic: Callable[[], float] = time.monotonic,
        max_entries: int = 10_000,
    ) -> None:
        self._identify = identify
        self._ttl_s = ttl_s
        self._monotonic = monotonic
        self._max_entries = max_entries
        # By hash, so that memory holds no keys; the least recently used one first.
        self._known: OrderedDict[bytes, _KnownOwner] = OrderedDict()
        self._known_until = float("-inf")
        self._asking: dict[bytes, asyncio.Task[Caller]] = {}
        # How often somebody was forgotten: a look-up that began before may be of the time before.
        self._forgotten = 0

    async def __call__(self, key: str) -> Caller:
        """Return the owner of `key`.

        Raises:
            GatewayError: what the look-up raises; invalid_api_key when nobody owns it.
        """
        hashed = hashlib.blake2s(key.encode()).digest()
        known = self._known.get(hashed)
        now = self._monotonic()
        if known is not None and now < known.ends_at:
            self._known.move_to_end(hashed)
            if now >= known.is_due_at and hashed not in self._asking:
                known.is_due_at = now + self._ttl_s * _ASKED_AGAIN_AFTER
                self._ask(key, hashed)
            return known.owner
        # One asker that leaves must not take the answer from the others.
        return await asyncio.shield(self._asking.get(hashed) or self._ask(key, hashed))

    @property
    def is_in_use(self) -> bool:
        """Whether the owner of any key is known, or being looked up."""
        return self.is_asking or self._monotonic() < self._known_until

    def forget(self, kind: str, subject_id: str) -> None:
        """Forget the owners of a key, or of the keys of a user or a team."""
        name = _CALLER_FIELDS.get(kind)
        if name is not None:
            self._forgotten += 1
            for hashed, known in list(self._known.items()):
                if getattr(known.owner, name) == subject_id:
                    del self._known[hashed]

    def forget_all(self) -> None:
        """Forget all owners."""
        self._forgotten += 1
        self._known.clear()

    @property
    def is_asking(self) -> bool:
        """Whether a look-up is under way."""
        return bool(self._asking)

    def _ask(self, key: str, hashed: bytes) -> asyncio.Task[Caller]:
        task = asyncio.create_task(self._look_up(key, hashed))
        self._asking[hashed] = task
        task.add_done_callback(partial(self._asked, hashed))
        return task

    def _asked(self, hashed: bytes, task: asyncio.Task[Caller]) -> None:
        del self._asking[hashed]
        if not task.cancelled():
            task.exception()  # seen here, for the case that every asker has left

    async def _look_up(self, key: str, hashed: bytes) -> Caller:
        asked = self._monotonic()
        forgotten = self._forgotten
        try:
            owner = await self._identify(key)
        except GatewayError as error:
            if error.reason == errors_pb2.REASON_INVALID_API_KEY:
                self._known.pop(hashed, None)
            raise
        if forgotten != self._forgotten:
            self._known.pop(hashed, None)
            return owner
        self._known_until = asked + self._ttl_s
        self._known[hashed] = _KnownOwner(owner, asked + self._ttl_s / 2, asked + self._ttl_s)
        self._known.move_to_end(hashed)
        if len(self._known) > self._max_entries:
            self._known.popitem(last=False)
        return owner


@dataclass(slots=True)
class _KnownOwner:
    """The owner of a key, and the times from which it is looked up again, and unknown."""

    owner: Caller
    is_due_at: float
    ends_at: float
