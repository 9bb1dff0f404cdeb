"""The authorization code flow with PKCE (OpenID Connect Core 1.0, section 3.1; RFC 7636)."""

import base64
import hmac
import secrets as randomness
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from gateway.errors.v1 import errors_pb2
from services.accounts.sign_in.attempts import LIFETIME_S, SignInAttempt, safe_return, seal, unseal
from services.accounts.sign_in.claims import Person, person_of
from services.accounts.sign_in.issuer import Issuer
from services.common.clock import Clock
from services.common.errors import GatewayError, invalid
from services.common.settings import Console

_MAX_CODE = 4096
_RANDOM_BYTES = 32
# Sign-ins of a process that wait for the issuer at once.
_MAX_WAITING = 32


class BegunSignIn(NamedTuple):
    """A sign-in that has begun: where the browser goes, and what it keeps."""

    authorization_url: str
    attempt: str


class SignedIn(NamedTuple):
    """A person whom the issuer has signed in.

    Attributes:
        person: the person.
        return_to: path to which the browser returns.
        invitation_id: id of the invitation that the person accepts, or "".
    """

    person: Person
    return_to: str
    invitation_id: str


class CodeFlow:
    """Signs people in at the issuer of the settings.

    Args:
        settings: the settings of the console.
        issuer: the issuer.
        secret: signs attempts.
        clock: the clock.
        random_text: source of random text, by the number of its bytes.
    """

    def __init__(
        self,
        settings: Console,
        issuer: Issuer,
        secret: bytes,
        clock: Clock,
        random_text: Callable[[int], str] = randomness.token_urlsafe,
    ) -> None:
        self._settings = settings
        self._oidc = settings.oidc
        self._issuer = issuer
        self._secret = secret
        self._clock = clock
        self._random_text = random_text
        self._waiting = 0

    async def begin(self, return_to: str, invitation_id: str = "") -> BegunSignIn:
        """Begin a sign-in; the browser returns to `return_to` if that is a path of the console.

        Args:
            return_to: the path.
            invitation_id: id of the invitation that the person accepts, or "".

        Raises:
            GatewayError: unavailable, when the issuer does not answer.
        """
        metadata = await self._issuer.metadata()
        state, nonce, verifier = (self._random_text(_RANDOM_BYTES) for _ in range(3))
        ends_at = int(self._clock.now()) + LIFETIME_S
        attempt = SignInAttempt(
            state, nonce, verifier, safe_return(return_to), ends_at, invitation_id
        )
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self._oidc.client_id,
                "redirect_uri": self._settings.redirect_uri,
                "scope": " ".join(self._oidc.scopes),
                "state": state,
                "nonce": nonce,
                "code_challenge": attempt.challenge,
                "code_challenge_method": "S256",
            }
        )
        address = metadata.authorization_endpoint
        separator = "&" if "?" in address else "?"
        return BegunSignIn(f"{address}{separator}{query}", seal(attempt, self._secret))

    async def finish(self, sealed: str, state: str, code: str, issuer: str) -> SignedIn:
        """Return the person whom the issuer has signed in.

        Args:
            sealed: the attempt that the browser keeps.
            state: the parameter `state` of the issuer's answer.
            code: its parameter `code`, "" if the issuer has refused the sign-in.
            issuer: its parameter `iss`, or "".

        Raises:
            GatewayError: invalid_request, permission_denied, rate_limited or unavailable.
        """
        attempt = unseal(sealed, state, self._secret, self._clock.now())
        if issuer and issuer != self._oidc.issuer:
            # An answer of another issuer (RFC 9207).
            raise invalid("iss", "iss: the answer is not of the issuer of the settings")
        if not 0 < len(code) <= _MAX_CODE:
            raise invalid("code", "code: the issuer has refused the sign-in")
        if self._waiting >= _MAX_WAITING:
            raise GatewayError(
                errors_pb2.REASON_RATE_LIMITED,
                "too many people are signing in; try again",
                retry_after_s=1,
            )
        self._waiting += 1
        try:
            claims = await self._claims(code, attempt)
        finally:
            self._waiting -= 1
        return SignedIn(person_of(claims, self._oidc), attempt.return_to, attempt.invitation_id)

    async def _claims(self, code: str, attempt: SignInAttempt) -> Mapping[str, Any]:
        """Return the verified claims for a code, with those of the issuer's userinfo endpoint."""
        token, access_token = await self._exchange(code, attempt.verifier)
        claims = await self._issuer.verify(token, [self._oidc.client_id])
        is_ours = claims.get("azp", self._oidc.client_id) == self._oidc.client_id
        if not is_ours or not hmac.compare_digest(
            str(claims.get("nonce")).encode(), attempt.nonce.encode()
        ):
            raise invalid("code", "code: the issuer's token is of another sign-in")
        if self._has_all(claims, is_invited=attempt.invitation_id != "") or not access_token:
            return claims
        further = await self._issuer.userinfo(access_token)
        # Those of somebody else must not be taken (OpenID Connect Core 1.0, section 5.3.2).
        return {**further, **claims} if further.get("sub") == claims["sub"] else claims

    def _has_all(self, claims: Mapping[str, Any], *, is_invited: bool) -> bool:
        """Return whether a token has every claim that the settings or an invitation name."""
        if is_invited and not {"email", "email_verified"} <= claims.keys():
            return False
        names = (self._oidc.user_claim, self._oidc.team_claim, self._oidc.role_claim)
        return all(name in claims or name.partition(".")[0] in claims for name in names if name)

    async def _exchange(self, code: str, verifier: str) -> tuple[str, str]:
        """Return the ID token and the access token, or "", for a code."""
        metadata = await self._issuer.metadata()
        client_id, secret = self._oidc.client_id, self._oidc.secret()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._settings.redirect_uri,
            "code_verifier": verifier,
        }
        headers: list[tuple[str, str]] = []
        if secret and metadata.takes_basic:
            # Both parts are form-encoded before (RFC 6749, section 2.3.1).
            pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
            headers = [("authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")]
        else:
            form |= {"client_id": client_id, **({"client_secret": secret} if secret else {})}
        status, answer = await self._issuer.post(
            metadata.token_endpoint, urlencode(form).encode(), headers
        )
        token = answer.get("id_token")
        if status != 200 or not isinstance(token, str):
            raise invalid(
                "code", f"code: the issuer rejects it ({str(answer.get('error'))[:64]!r})"
            )
        access_token = answer.get("access_token")
        return token, access_token if isinstance(access_token, str) else ""
