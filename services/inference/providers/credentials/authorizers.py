"""The authorizers of providers, shared by everything that calls them."""

from collections.abc import Hashable

from services.common.settings import Provider as ProviderSettings
from services.common.settings.clouds import BEDROCK
from services.inference.providers.credentials.aws import AwsSource
from services.inference.providers.credentials.aws_signing import RequestSigner
from services.inference.providers.credentials.azure import AzureSource
from services.inference.providers.credentials.bearer import BearerTokens
from services.inference.providers.credentials.google import GoogleSource
from services.inference.providers.credentials.renewal import RenewedCredentials
from services.inference.providers.protocols import Authorize


class Authorizers:
    """Makes one authorizer a provider, kept while its settings are the same.

    Credentials therefore outlive a reload of the settings.
    """

    def __init__(self) -> None:
        self._made: dict[str, tuple[Hashable, Authorize]] = {}

    def of(self, name: str, settings: ProviderSettings, key: str) -> Authorize | None:
        """Return the authorizer of a provider's requests; None if its headers are enough.

        Args:
            name: the provider's name in the settings.
            settings: its settings.
            key: its API key, or "".
        """
        signs = settings.kind == BEDROCK and not (key or settings.has_credential_headers)
        if not (signs or settings.tokens_of):
            return None
        identity: Hashable = (
            *(settings.kind, settings.tokens_of, settings.region, settings.profile),
            *(settings.credentials_file, settings.base_url),
        )
        made = self._made.get(name)
        if made is None or made[0] != identity:
            made = self._made[name] = identity, _authorizer(name, settings)
        return made[1]


def _authorizer(name: str, settings: ProviderSettings) -> Authorize:
    match settings.tokens_of:
        case "google":
            google = GoogleSource(settings.credentials_file)
            return BearerTokens(RenewedCredentials(name, google))
        case "azure":
            return BearerTokens(RenewedCredentials(name, AzureSource(settings.token_scope)))
        case "":
            keys = RenewedCredentials(name, AwsSource(settings.profile))
            return RequestSigner(keys, settings.region)
