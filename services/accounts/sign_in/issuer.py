"""An OpenID Connect issuer: its addresses, its keys, and the verification of its tokens.

OpenID Connect Discovery 1.0, RFC 7517 (keys) and RFC 7519 (tokens). Its addresses and keys are
cached for an hour, and read again when a token names an unknown key, at most once in half a minute:
no request needs the network. While the issuer does not answer, its last keys are used for a day.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from yarl import URL

from gateway.errors.v1 import errors_pb2
from services.common.clock import Clock
from services.common.errors import GatewayError, invalid_api_key, unavailable
from services.common.extras import how_to_add
from services.common.http import Client, HttpError, fields, origin_of
from services.common.settings import Oidc
from services.common.settings.console import is_safe_address

# Bytes of an answer of the issuer.
MAX_ANSWER = 256 << 10
_MAX_KEYS = 100
_TIMEOUT_S = 10
_FRESH_S = 3600
_STALE_S = 86_400
_RETRY_S = 30
# Of an issuer that has not answered yet.
_RETRY_FIRST_S = 3
# Seconds by which the clocks of the issuer and the gateway may differ.
_LEEWAY_S = 60

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Metadata:
    """The addresses of an issuer, and its keys.

    Attributes:
        authorization_endpoint: where people sign in.
        token_endpoint: where codes are exchanged.
        userinfo_endpoint: where further claims are, or "".
        takes_basic: whether the token endpoint accepts the client's secret in `Authorization`.
        keys: its public keys (RFC 7517).
    """

    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str
    takes_basic: bool
    keys: Sequence[Mapping[str, Any]] = field(repr=False)


class Issuer:
    """The issuer of the settings.

    Args:
        settings: the settings of the issuer.
        clock: the clock.
        new_client: returns a new HTTP client, which is made when it is first needed.
    """

    def __init__(self, settings: Oidc, clock: Clock, new_client: Callable[[], Client]) -> None:
        self._settings = settings
        self._clock = clock
        self._new_client = new_client
        self._client: Client | None = None
        self._metadata: Metadata | None = None
        self._read_at = self._tried_at = float("-inf")
        self._lock = asyncio.Lock()

    async def metadata(self) -> Metadata:
        """Return the addresses and keys, at most an hour old if the issuer answers.

        Raises:
            GatewayError: unavailable, when the issuer does not answer.
        """
        return await self._load(_FRESH_S)

    async def verify(self, token: str, audiences: Sequence[str]) -> Mapping[str, Any]:
        """Return the claims of a token that the issuer made for one of `audiences`.

        Raises:
            GatewayError: invalid_api_key, when the token is not valid; unavailable, when the keys
                of the issuer are unknown, and it does not answer.
        """
        jwt = await import_jwt()
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise invalid_api_key("the issuer's token is malformed") from None
        algorithm = header.get("alg")
        if algorithm not in self._settings.algorithms:
            raise invalid_api_key("the issuer's token has an algorithm that is not accepted")
        key = _key(await self._load(_FRESH_S), header.get("kid"), algorithm)
        if key is None:
            key = _key(await self._load(_RETRY_S), header.get("kid"), algorithm)
        if key is None:
            raise invalid_api_key("the token is signed with a key that its issuer does not have")
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                jwt.PyJWK(dict(key), algorithm=algorithm),
                algorithms=[algorithm],
                audience=list(audiences),
                issuer=self._settings.issuer,
                leeway=_LEEWAY_S,
                options={"require": ["exp", "iss", "sub", "aud"]},
            )
        except jwt.ExpiredSignatureError:
            raise invalid_api_key("the issuer's token has expired; get a new one") from None
        except jwt.InvalidAudienceError:
            raise invalid_api_key("the issuer's token is for another audience") from None
        except jwt.PyJWTError:
            raise invalid_api_key("the issuer's token is not valid") from None
        return claims

    async def post(
        self, url: str, form: bytes, headers: Sequence[tuple[str, str]]
    ) -> tuple[int, Mapping[str, Any]]:
        """Send a form; return the status and the JSON object of the answer.

        Raises:
            GatewayError: unavailable.
        """
        lines = [("content-type", "application/x-www-form-urlencoded"), *headers]
        return await self._send("POST", url, lines, form)

    async def userinfo(self, access_token: str) -> Mapping[str, Any]:
        """Return the claims of the person for whom an access token was made.

        Raises:
            GatewayError: unavailable.
        """
        url = (await self.metadata()).userinfo_endpoint
        if not url:
            return {}
        return (await self._send("GET", url, [("authorization", f"Bearer {access_token}")]))[1]

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    async def _load(self, max_age_s: float) -> Metadata:
        async with self._lock:
            now = self._clock.monotonic()
            loaded = self._metadata
            if loaded is not None and now - self._read_at < max_age_s:
                return loaded
            if loaded is None and now - self._tried_at < _RETRY_FIRST_S:
                raise self._failed("it did not answer a moment ago")
            if loaded is not None and now - self._tried_at < _RETRY_S:
                return loaded
            self._tried_at = now
            try:
                self._metadata = loaded = await self._read()
                self._read_at = now
            except GatewayError:
                if loaded is None or now - self._read_at >= _STALE_S:
                    raise
            return loaded

    async def _read(self) -> Metadata:
        issuer = self._settings.issuer
        _, found = await self._send("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != issuer:
            raise self._failed(f"it calls itself {found.get('issuer')!r}")
        addresses = [
            str(found.get(name))
            for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")
        ]
        if not all(map(_is_address, addresses)):
            raise self._failed("an address of it is not an https:// address")
        userinfo = str(found.get("userinfo_endpoint", ""))
        methods = found.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        _, keys = await self._send("GET", addresses[2])
        listed = keys.get("keys")
        if not isinstance(listed, list):
            raise self._failed("it lists no keys")
        return Metadata(
            addresses[0],
            addresses[1],
            userinfo if _is_address(userinfo) else "",
            "client_secret_basic" in methods,
            [key for key in listed[:_MAX_KEYS] if isinstance(key, dict)],
        )

    async def _send(
        self, method: str, url: str, headers: Sequence[tuple[str, str]] = (), body: bytes = b""
    ) -> tuple[int, Mapping[str, Any]]:
        if self._client is None:
            self._client = self._new_client()
        address = URL(url)
        lines = fields([("accept", "application/json"), ("user-agent", "sluicegate"), *headers])
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                response = await self._client.send(
                    origin_of(address), method, address.raw_path_qs, lines, body
                )
                try:
                    content = bytearray()
                    while piece := await response.body.read():
                        content += piece
                finally:
                    response.body.release()
            parsed = orjson.loads(content)
        except (HttpError, TimeoutError, OSError, ValueError) as error:
            raise self._failed(f"{type(error).__name__}: {error}") from None
        if not isinstance(parsed, dict) or (method == "GET" and response.status != 200):
            raise self._failed(f"status {response.status}")
        return response.status, parsed

    def _failed(self, reason: str) -> GatewayError:
        log.warning("the issuer does not answer", extra={"reason": reason})
        return unavailable("the issuer of sign-ins does not answer; try again later")


async def import_jwt() -> Any:
    """Return the module `jwt`, which most gateways never load.

    Raises:
        GatewayError: unavailable, when it is not installed.
    """
    try:
        return await asyncio.to_thread(_import_jwt)
    except ImportError:
        raise GatewayError(
            errors_pb2.REASON_UNAVAILABLE,
            f"the gateway lacks a package for tokens of issuers; install it: {how_to_add('oidc')}",
        ) from None


def _import_jwt() -> Any:
    import cryptography.hazmat.primitives.asymmetric.rsa  # noqa: F401  (without it, jwt verifies HMAC only)
    import jwt

    return jwt


def _is_address(text: str) -> bool:
    return is_safe_address(text.partition("?")[0])


def _key(metadata: Metadata, key_id: Any, algorithm: str) -> Mapping[str, Any] | None:
    """Return the key that a token names, or the only one that fits if it names none."""
    fitting = [
        key
        for key in metadata.keys
        if key.get("kty") in ("RSA", "EC", "OKP")
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
    ]
    if key_id is None:
        return fitting[0] if len(fitting) == 1 else None
    return next((key for key in fitting if key.get("kid") == key_id), None)
