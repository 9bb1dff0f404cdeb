"""Callers with a token of the issuer in place of an API key."""

from dataclasses import replace

from services.accounts.sign_in.claims import person_of
from services.accounts.sign_in.issuer import Issuer
from services.accounts.sign_in.people import People
from services.common.errors import invalid_api_key
from services.common.grpc.authentication import Caller, SignIn
from services.common.settings import Oidc


class IssuerTokens:
    """Identifies callers by tokens of the issuer.

    Args:
        settings: the settings of the issuer.
        issuer: the issuer.
        people: its people.
    """

    def __init__(self, settings: Oidc, issuer: Issuer, people: People) -> None:
        self._settings = settings
        self._issuer = issuer
        self._people = people

    async def identify(self, token: str) -> Caller:
        """Return the caller whom a token names, with the limits of the caller's key record.

        Raises:
            GatewayError: invalid_api_key, when the token is not valid, or no audience of tokens is
                configured; permission_denied, when the person has no access.
        """
        if not (self._settings.issuer and self._settings.audiences):
            raise invalid_api_key(
                "this gateway accepts no tokens of issuers (console.oidc.audiences); send an API "
                "key"
            )
        claims = await self._issuer.verify(token, self._settings.audiences)
        person = person_of(claims, self._settings)
        owner = await self._people.owner_of(person)
        role = self._people.role_of(person, owner.role)
        return replace(owner, sign_in=SignIn("", person.name, role))
