"""Authentication of gRPC calls, shared by all services and the facade.

Each gRPC call has the caller's API key in the metadata entry `authorization`. The accounts package
looks up the owners of keys; all other code uses an `Identify` function. Calls that the gateway
makes by itself have no API key; `ServiceAuthenticator` authenticates them.
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
from services.common.grpc.channels import REQUEST_ID_KEY, Metadata
from services.common.grpc.delegated_keys import is_delegated
from services.common.key_format import ADMIN_KEY, SESSION_PREFIX, is_issuer_token, malformed

_BEARER = "bearer "
_BEARER_ADMIN_KEY = re.compile(rf"(?i:{_BEARER})\s*({ADMIN_KEY.pattern})\s*")
_BEARER_KEY = re.compile(rf"(?i:{_BEARER})\s*(gw-[A-Za-z0-9_-]{{43}})\s*")
_SERVICE = "Service "
# Time until a failed background look-up is repeated, as a fraction of the TTL.
_ASKED_AGAIN_AFTER = 1 / 30


@dataclass(frozen=True, slots=True)
class SignIn:
    """How a caller without an API key has signed in.

    Attributes:
        session_id: id of the session of the console; "" of a caller with an issuer's token.
        user_name: name of the user.
        role: one of `roles.ROLES`.
        admin_key_id: id of the admin key that has unlocked administration, or "".
    """

    session_id: str
    user_name: str
    role: str
    admin_key_id: str = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of the API key of a call.

    Attributes:
        user_id: the user.
        team_id: the user's team, or "".
        plan: the team's plan, or the user's plan without a team.
        key_id: id of the key, for logs; "" for the gateway's own calls. It is ignored by
            comparisons: two keys of one user make equal callers.
        limits: limits of the key, its user and the user's team, if they have any.
        key_name: name of an administrator's key, or "".
        scopes: what an administrator's key permits.
        sign_in: how a person without an API key has signed in; None of callers with a key.
        role: the role that is set for the user, or "".
        is_for_sign_in: whether a sign-in with the key has that role.
    """

    user_id: str
    team_id: str
    plan: Plan.ValueType
    key_id: str = field(default="", compare=False)
    limits: Sequence[SubjectLimits] = field(default=(), compare=False)
    key_name: str = field(default="", compare=False)
    scopes: frozenset[str] = field(default=frozenset(), compare=False)
    sign_in: SignIn | None = field(default=None, compare=False)
    role: str = field(default="", compare=False)
    is_for_sign_in: bool = field(default=False, compare=False)

    @property
    def session_id(self) -> str:
        """The id of the session of the console, or ""."""
        return "" if self.sign_in is None else self.sign_in.session_id


# User id of callers with an admin key; the ids of users begin with `user_`.
ADMINISTRATOR = "admin"

# Returns the owner of an API key; raises `invalid_api_key` for an unknown key.
Identify = Callable[[str], Awaitable[Caller]]

# Authenticates an `authorization` value; raises `invalid_api_key` unless it has an admin key.
IdentifyAdmin = Callable[[str], Awaitable[Caller]]

# The field of `Caller` with the id of a changed subject, by the subject's kind in the audit log.
_CALLER_FIELDS = {
    "key": "key_id",
    "user": "user_id",
    "team": "team_id",
    "session": "session_id",
}

# The caller of the gRPC call that the current task serves, and its API key, which is forwarded
# with every call on behalf of the caller.
caller: ContextVar[Caller] = ContextVar("caller")
caller_key: ContextVar[str] = ContextVar("caller_key")


def caller_id() -> str:
    """Return the id of the current task's user, or ""."""
    current = caller.get(None)
    return "" if current is None else current.user_id


def call_metadata(key: str, request_id: str) -> Metadata:
    """Return the metadata of a call on behalf of the owner of `key`."""
    return (("authorization", f"Bearer {key}"), (REQUEST_ID_KEY, request_id))


def call_key(authorization: str) -> str:
    """Return the credential in an `authorization` value of a gRPC call.

    Calls also have delegated keys and tokens of sessions, which HTTP callers cannot send there.

    Raises:
        GatewayError: as `bearer_key`.
    """
    match = _BEARER_KEY.fullmatch(authorization)
    if match is not None:
        return match[1]
    _, _, token = authorization.partition("Bearer ")
    return token if is_delegated(token) or is_session(token) else bearer_key(authorization)


def signed_in_token(authorization: str) -> str:
    """Return the token of a session or an issuer in an `authorization` value, or ""."""
    _, _, token = authorization.partition("Bearer ")
    return token if is_session(token) or is_issuer_token(token) else ""


def is_session(token: str) -> bool:
    """Return whether a text is the token of a session."""
    return token.startswith(SESSION_PREFIX)


def bearer_key(header: str) -> str:
    """Return the API key in an `Authorization` value; the scheme is case-insensitive.

    A token of an issuer stands for a key.

    Raises:
        GatewayError: `invalid_api_key`, for a missing key, or one that is not a gateway key.
    """
    match = _BEARER_KEY.fullmatch(header)
    if match is not None:
        return match[1]
    if header[: len(_BEARER)].lower() != _BEARER:
        raise invalid_api_key("send the API key as `Authorization: Bearer <API_KEY>`")
    key = header[len(_BEARER) :].strip()
    if is_issuer_token(key):
        return key
    raise invalid_api_key(malformed(key))


def is_admin_key(text: str) -> bool:
    """Return whether `text` has the form of an admin key."""
    return ADMIN_KEY.fullmatch(text) is not None


def bearer_admin_key(header: str) -> str:
    """Return the admin key in an `Authorization` value; the scheme is case-insensitive.

    Raises:
        GatewayError: `invalid_api_key`, without an admin key.
    """
    match = _BEARER_ADMIN_KEY.fullmatch(header)
    if match is None:
        raise invalid_api_key(
            "an admin key is required: `Authorization: Bearer gwadmin-...`; `gateway admin-key "
            "create` creates one, and API keys (gw-...) are valid for other endpoints"
        )
    return match[1]


async def reject_admin(authorization: str) -> Caller:
    """Reject every caller: the `IdentifyAdmin` of a gateway without an admin key.

    Raises:
        GatewayError: not_implemented, as for a service that does not exist.
    """
    raise GatewayError(
        errors_pb2.REASON_NOT_IMPLEMENTED, "this gateway does not implement this call"
    )


def service_authorization(credential: bytes) -> str:
    """Return the `authorization` value of a call that the gateway makes by itself."""
    return _SERVICE + base64.urlsafe_b64encode(credential).rstrip(b"=").decode()


class ServiceAuthenticator:
    """Authenticates calls that the gateway makes by itself.

    Args:
        credential: the secret of such calls, 32 bytes; None rejects all calls.
    """

    def __init__(self, credential: bytes | None) -> None:
        self._expected = service_authorization(credential).encode() if credential else None

    def authenticate(self, authorization: str, user_id: str, *, is_for_user: bool = True) -> Caller:
        """Return the caller on whose behalf the gateway makes a call.

        Args:
            authorization: the `authorization` value of the call.
            user_id: the `x-user-id` value, or "".
            is_for_user: whether the call must be for a user; other calls are for the gateway.

        Raises:
            GatewayError: `invalid_api_key`, when the credential is wrong or the user is missing.
        """
        if self._expected is None or not hmac.compare_digest(
            authorization.encode(), self._expected
        ):
            raise invalid_api_key("this call is reserved for the gateway itself")
        if is_for_user and not user_id:
            raise invalid_api_key("this call requires a user")
        return Caller(user_id, "", accounts_pb2.PLAN_UNSPECIFIED)


class CachingAuthenticator:
    """Cache for the owners of API keys.

    Only successful look-ups are cached: the most recently used `max_entries`, each for `ttl_s`
    seconds or until `forget`, so a revocation takes effect within that time. Concurrent calls with
    the same key share one look-up. When half of the TTL has passed, the next call with the key
    refreshes the entry in the background; if that fails, the entry remains valid for the rest.
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
        # By hash, so that no keys are in memory; least recently used first.
        self._known: OrderedDict[bytes, _KnownOwner] = OrderedDict()
        self._known_until = float("-inf")
        self._asking: dict[bytes, asyncio.Task[Caller]] = {}
        # Number of `forget` calls: a look-up that began before one may have read old data.
        self._forgotten = 0

    async def __call__(self, key: str) -> Caller:
        """Return the owner of `key`.

        Raises:
            GatewayError: raised by the look-up; invalid_api_key for an unknown key.
        """
        hashed = hashlib.blake2s(key.encode()).digest()
        entry = self._known.get(hashed)
        now = self._monotonic()
        if entry is not None and now < entry.ends_at:
            self._known.move_to_end(hashed)
            if now >= entry.is_due_at and hashed not in self._asking:
                entry.is_due_at = now + self._ttl_s * _ASKED_AGAIN_AFTER
                self._ask(key, hashed)
            return entry.owner
        # Shielded: a caller that is cancelled must not cancel the look-up of the others.
        return await asyncio.shield(self._asking.get(hashed) or self._ask(key, hashed))

    @property
    def is_in_use(self) -> bool:
        """Whether any owner is cached or being looked up."""
        return self.is_asking or self._monotonic() < self._known_until

    def forget(self, kind: str, subject_id: str) -> None:
        """Invalidate the entries of a key, or of the keys of a user or a team."""
        name = _CALLER_FIELDS.get(kind)
        if name is not None:
            self._forgotten += 1
            for hashed, entry in list(self._known.items()):
                if getattr(entry.owner, name) == subject_id:
                    del self._known[hashed]

    def forget_all(self) -> None:
        """Invalidate all entries."""
        self._forgotten += 1
        self._known.clear()

    @property
    def is_asking(self) -> bool:
        """Whether a look-up is running."""
        return bool(self._asking)

    def _ask(self, key: str, hashed: bytes) -> asyncio.Task[Caller]:
        task = asyncio.create_task(self._look_up(key, hashed))
        self._asking[hashed] = task
        task.add_done_callback(partial(self._asked, hashed))
        return task

    def _asked(self, hashed: bytes, task: asyncio.Task[Caller]) -> None:
        del self._asking[hashed]
        if not task.cancelled():
            task.exception()  # retrieved, in case that every caller was cancelled

    async def _look_up(self, key: str, hashed: bytes) -> Caller:
        asked_at = self._monotonic()
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
        self._known_until = asked_at + self._ttl_s
        self._known[hashed] = _KnownOwner(owner, asked_at + self._ttl_s / 2, asked_at + self._ttl_s)
        self._known.move_to_end(hashed)
        if len(self._known) > self._max_entries:
            self._known.popitem(last=False)
        return owner


@dataclass(slots=True)
class _KnownOwner:
    """A cached owner, with the monotonic times of its refresh and of its expiry."""

    owner: Caller
    is_due_at: float
    ends_at: float
