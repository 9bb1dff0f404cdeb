"""Access tokens of Google, found and renewed by google-auth.

A file of a service account or of a workload identity, the credentials of gcloud
(`gcloud auth application-default login`), or the metadata server of Google's machines.
"""

import logging
import re
import warnings
from datetime import UTC, datetime
from typing import Any

from services.inference.providers.credentials.bearer import AccessToken
from services.inference.providers.credentials.renewal import Loaded

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
# Of the token endpoint, about the times in a signed assertion.
_CLOCK = re.compile(r"reasonable timeframe|\biat and exp\b|issued in the future|Token used too")


class GoogleSource:
    """Finds credentials with google-auth; see `renewal.Source`.

    Args:
        file: path of a file of credentials; "" for those that Google's own tools find.
    """

    cloud = "Google"
    extra = "google"
    advice = (
        "set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account or of a workload "
        "identity, or run `gcloud auth application-default login`"
    )

    def __init__(self, file: str) -> None:
        self._file = file
        self._credentials: Any = None

    def load(self) -> Loaded[AccessToken] | None:
        """Return a new access token; None without credentials."""
        # Imported when first used, in the thread.
        from google.auth.exceptions import DefaultCredentialsError
        from google.auth.transport.requests import Request

        # Their debug messages have assertions and tokens.
        for library in ("google.auth", "urllib3"):
            logging.getLogger(library).setLevel(logging.WARNING)
        # After a failure the file is read again.
        credentials, self._credentials = self._credentials, None
        if credentials is None:
            try:
                credentials = self._find()
            except DefaultCredentialsError:
                if self._file:
                    raise
                return None
        credentials.refresh(Request())
        self._credentials = credentials
        headers = [("authorization", f"Bearer {credentials.token}")]
        if project := getattr(credentials, "quota_project_id", None):
            headers.append(("x-goog-user-project", project))
        token = AccessToken(credentials.token, headers)
        if credentials.expiry is None:
            return Loaded(token, lambda seconds: False, renews=False)
        end = credentials.expiry.replace(tzinfo=UTC)
        return Loaded(
            token, lambda seconds: (end - datetime.now(UTC)).total_seconds() < seconds, renews=True
        )

    def _find(self) -> Any:
        import google.auth

        scopes = [_SCOPE]
        if self._file:
            load: Any = google.auth.load_credentials_from_file  # without types
            with warnings.catch_warnings():
                # It warns of files by strangers; this one is the operator's.
                warnings.simplefilter("ignore", DeprecationWarning)
                return load(self._file, scopes=scopes)[0]
        return google.auth.default(scopes=scopes)[0]

    def explain(self, error: Exception) -> str:
        """Return what an error means: a clock that is off, or credentials that are refused."""
        text = str(error)
        if _CLOCK.search(text):
            return (
                "Google rejected the times in the gateway's request for a token: the clock of the "
                "gateway is off by more than five minutes; the operator must set it"
            )
        if "invalid_grant" in text:
            return "Google rejected the credentials (invalid_grant); see the gateway's log"
        return ""
