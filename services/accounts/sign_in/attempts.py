"""Attempts to sign in at an issuer: what the browser keeps until it comes back. Pure.

An attempt is in a cookie, so that any worker finishes it, and only the browser that began it. It is
signed, so that nobody else can make one.
"""

import base64
import hashlib
import hmac
import json
import re
from typing import NamedTuple

from services.common.errors import GatewayError, invalid

# Seconds for which an attempt can be finished.
LIFETIME_S = 600
HOME = "/console"
# Paths to which the browser may return: of the console alone, and without `//` or a backslash.
_RETURN = re.compile(r"/console(?:/[A-Za-z0-9_.~%+-]+)*/?(?:\?[A-Za-z0-9_.~?=&%+-]*)?", re.ASCII)
_MAX_RETURN = 512
_MAX_SEALED = 4096


class SignInAttempt(NamedTuple):
    """An attempt to sign in.

    Attributes:
        state: identifies it in the issuer's answer.
        nonce: identifies it in the issuer's token.
        verifier: proves that whoever exchanges the code began the attempt (RFC 7636).
        return_to: path of the console to which the browser returns.
        ends_at: when it can no longer be finished, in Unix seconds.
        invitation_id: id of the invitation that the person accepts, or "".
    """

    state: str
    nonce: str
    verifier: str
    return_to: str
    ends_at: int
    invitation_id: str = ""

    @property
    def challenge(self) -> str:
        """The challenge of the verifier, by the method S256."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def safe_return(path: str) -> str:
    """Return a path of the console, or `/console` instead of any other."""
    return path if len(path) <= _MAX_RETURN and _RETURN.fullmatch(path) else HOME


def seal(attempt: SignInAttempt, secret: bytes) -> str:
    """Return an attempt as text of the characters of base64url and a dot."""
    content = base64.urlsafe_b64encode(json.dumps(attempt).encode()).decode()
    return f"{content}.{_signature(content, secret)}"


def unseal(sealed: str, state: str, secret: bytes, now: float) -> SignInAttempt:
    """Return the attempt that `seal` made text of, if the issuer answers with its `state`.

    Raises:
        GatewayError: invalid_request.
    """
    content, _, signature = sealed.partition(".")
    if len(sealed) > _MAX_SEALED or not _is_equal(signature, _signature(content, secret)):
        raise _unknown()
    attempt = SignInAttempt(*json.loads(base64.urlsafe_b64decode(content)))
    if not _is_equal(state, attempt.state):
        raise _unknown()
    if attempt.ends_at <= now:
        raise invalid("attempt", "attempt: the sign-in took longer than 10 minutes; begin again")
    return attempt


def _unknown() -> GatewayError:
    return invalid("attempt", "attempt: this browser has not begun the sign-in; begin again")


def _is_equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _signature(content: str, secret: bytes) -> str:
    return hmac.new(secret, content.encode(), hashlib.sha256).hexdigest()
