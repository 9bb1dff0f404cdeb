"""Access tokens of clouds in requests."""

from collections.abc import Sequence
from typing import NamedTuple

from services.inference.providers.credentials.renewal import RenewedCredentials


class AccessToken(NamedTuple):
    """An access token.

    Attributes:
        secret: the token.
        headers: the headers of a request with it, names in lower case.
    """

    secret: str
    headers: Sequence[tuple[str, str]]


class BearerTokens:
    """Authorizes requests with the current access token; see `protocols.Authorize`.

    Args:
        tokens: the tokens.
    """

    covers_body = False

    def __init__(self, tokens: RenewedCredentials[AccessToken]) -> None:
        self._tokens = tokens

    @property
    def secrets(self) -> Sequence[str]:
        """The token that was sent last, if any."""
        token = self._tokens.latest
        return () if token is None else (token.secret,)

    async def headers(self, method: str, url: str, body: bytes) -> Sequence[tuple[str, str]]:
        """Return the headers that authorize a request.

        Raises:
            UpstreamError: there is no token.
        """
        return (await self._tokens.current()).headers
