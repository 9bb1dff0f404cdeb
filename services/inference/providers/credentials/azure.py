"""Access tokens of Microsoft Entra ID, found and renewed by azure-identity.

Its default chain is used: environment variables (a secret or a certificate), workload identity,
managed identity, and the command lines of developers.
"""

import logging
import re
import time
from typing import Any

from services.inference.providers.credentials.bearer import AccessToken
from services.inference.providers.credentials.renewal import Loaded

# Entra ID's errors about the times in a signed assertion.
_CLOCK = re.compile(r"AADSTS(?:700024|50013)|not within its valid time range")
# Begins the error of a chain in which no source has credentials.
_NONE = "failed to retrieve a token from the included credentials"
_CODE = re.compile(r"AADSTS\d+")


class AzureSource:
    """Finds credentials with azure-identity; see `renewal.Source`.

    Args:
        scope: of the tokens, such as `https://cognitiveservices.azure.com/.default`.
    """

    cloud = "Azure"
    extra = "azure"
    advice = (
        "set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, use a workload or managed "
        "identity, or run `az login`"
    )

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._credential: Any = None

    def load(self) -> Loaded[AccessToken]:
        """Return an access token, a new one if it ends soon."""
        # Imported when first used, in the thread.
        from azure.identity import DefaultAzureCredential

        # Their messages have the headers of requests.
        for library in ("azure", "msal", "urllib3"):
            logging.getLogger(library).setLevel(logging.WARNING)
        credential, self._credential = self._credential, None
        if credential is None:
            credential = DefaultAzureCredential()
        made = credential.get_token(self._scope)
        self._credential = credential
        token = AccessToken(made.token, [("authorization", f"Bearer {made.token}")])
        return Loaded(token, lambda seconds: made.expires_on - time.time() < seconds, renews=True)

    def explain(self, error: Exception) -> str:
        """Return what an error means: a clock that is off, or the code of Entra ID."""
        text = str(error)
        if _CLOCK.search(text):
            return (
                "Entra ID rejected the times in the gateway's request for a token: the clock of "
                "the gateway is off by more than five minutes; the operator must set it"
            )
        if code := _CODE.search(text):
            return f"Entra ID rejected the credentials ({code[0]}); see the gateway's log"
        return self.advice if _NONE in text else ""
