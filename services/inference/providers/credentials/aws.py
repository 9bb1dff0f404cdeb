"""AWS credentials, found and renewed by botocore.

Every source that botocore knows is tried in its order: environment variables, assumed roles and web
identities, shared profiles, single sign-on, processes, containers and the metadata service of an
instance.
"""

import logging
from typing import Any, Protocol

from services.inference.providers.credentials.renewal import Loaded


class Keys(Protocol):
    """The parts of credentials, as `botocore.credentials.ReadOnlyCredentials` has them."""

    access_key: str
    secret_key: str
    token: str | None


class AwsSource:
    """Finds credentials with botocore; see `renewal.Source`.

    Args:
        profile: name of a shared profile; "" for the default.
    """

    cloud = "AWS"
    extra = "aws"
    advice = (
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE or a role, or an API key in "
        "AWS_BEARER_TOKEN_BEDROCK"
    )

    def __init__(self, profile: str) -> None:
        self._profile = profile
        self._renewing: Any = None  # credentials that botocore renews

    def load(self) -> Loaded[Keys] | None:
        """Return valid credentials, renewed if they end soon; None without any."""
        # Imported when first used, in the thread.
        import botocore.auth
        import botocore.awsrequest
        import botocore.session

        # Its debug messages have session tokens.
        logging.getLogger("botocore").setLevel(logging.WARNING)

        credentials = self._renewing
        if credentials is None:
            credentials = botocore.session.Session(profile=self._profile or None).get_credentials()
            if credentials is None:
                return None
        keys = credentials.get_frozen_credentials()
        if not hasattr(credentials, "refresh_needed"):
            return Loaded(keys, lambda seconds: False, renews=False)
        self._renewing = credentials
        return Loaded(keys, credentials.refresh_needed, renews=True)

    def explain(self, error: Exception) -> str:
        """Return "": errors of sources name profiles and roles."""
        return ""
