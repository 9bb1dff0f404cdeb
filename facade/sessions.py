"""The cookie of a session of the console, and the token that shows that a page of ours sends it.

The cookie is `HttpOnly` and `SameSite=Strict`. It alone opens nothing but `GET /console/session`:
any other request also needs the header `x-csrf-token`, whose value only a page of the same origin
can read there, and which pages of other origins cannot send.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping

from services.common.errors import invalid_api_key

CSRF_HEADER = "x-csrf-token"
_PORT = re.compile(r":([0-9]{1,5})$", re.ASCII)
_TOKEN = re.compile(r"gwsession-[A-Za-z0-9_-]{43}", re.ASCII)
# Headers that have another credential, which counts.
_CREDENTIALS = ("authorization", "x-api-key", "x-goog-api-key")


def session_cookie(headers: Mapping[str, str], is_secure: bool) -> str:
    """Return the token in the cookie of the session, or ""."""
    return cookie(headers, _name(headers, is_secure), _TOKEN)


def cookie(headers: Mapping[str, str], name: str, form: re.Pattern[str]) -> str:
    """Return the value of a cookie, or "" if there is none of that form."""
    for pair in headers.get("cookie", "").split(";"):
        key, _, value = pair.strip().partition("=")
        if key == name and form.fullmatch(value):
            return value
    return ""


def csrf_token(token: str) -> str:
    """Return the value of `x-csrf-token` for a session."""
    return hashlib.sha256(f"csrf\n{token}".encode()).hexdigest()


def session_token(headers: Mapping[str, str], is_secure: bool) -> str:
    """Return the token of the session that sends a request, or "" if it has another credential.

    Raises:
        GatewayError: invalid_api_key, when the session has ended in the browser, or another one has
            begun.
    """
    sent = headers.get(CSRF_HEADER)
    if sent is None or any(name in headers for name in _CREDENTIALS):
        return ""
    token = session_cookie(headers, is_secure)
    if not token or not hmac.compare_digest(sent.encode(), csrf_token(token).encode()):
        raise invalid_api_key("the session has ended; sign in again")
    return token


def set_cookie(headers: Mapping[str, str], is_secure: bool, token: str, max_age_s: int) -> str:
    """Return the value of `Set-Cookie` with the token of a session; "" and 0 remove it."""
    name = _name(headers, is_secure)
    return cookie_line(name, token, max_age_s, is_secure, same_site="Strict")


def cookie_line(name: str, value: str, max_age_s: int, is_secure: bool, *, same_site: str) -> str:
    """Return the value of `Set-Cookie` (RFC 6265)."""
    secure = "; Secure" if is_secure else ""
    return f"{name}={value}; Max-Age={max_age_s}; Path=/; HttpOnly; SameSite={same_site}{secure}"


def _name(headers: Mapping[str, str], is_secure: bool) -> str:
    """Return the name of the cookie.

    Cookies of a host are sent to all its ports, so those of several gateways need different names.
    """
    port = _PORT.search(headers.get("host", ""))
    suffix = f"_{port[1]}" if port else ""
    return f"{host_prefix(is_secure)}gateway_session{suffix}"


def host_prefix(is_secure: bool) -> str:
    """Return the prefix of cookies that the host itself sets over TLS, or "" without TLS.

    Browsers accept them from no other host of the domain (RFC 6265bis, section 4.1.3.2).
    """
    return "__Host-" if is_secure else ""
