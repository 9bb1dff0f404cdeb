"""Settings of notifications about budgets."""

import os
from collections.abc import Mapping
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from services.common.settings.base import Section, VariableName, setting, without_variables


class Budgets(Section):
    """The webhook that is told about budgets."""

    webhook_url: str = setting(
        "", "address that gets a POST request when a soft limit is reached; empty: none"
    )
    webhook_secret: SecretStr = setting(
        SecretStr(""), "secret that signs the requests: whsec_ and 24 to 64 bytes in base64"
    )
    webhook_secret_env: VariableName = setting("", "variable with the secret")
    webhook_secret_file: str = setting("", "file with the secret")
    webhook_timeout_s: Annotated[float, Field(gt=0, le=60)] = setting(
        10, "time of one request, at most 60; one that fails is sent again", seen="nothing"
    )

    @field_validator("webhook_url", "webhook_secret", "webhook_secret_env", mode="before")
    @classmethod
    def _is_literal(cls, value: Any) -> Any:
        return without_variables(value)

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if not self.webhook_url:
            return self
        try:
            address = urlsplit(self.webhook_url)
            is_address = address.scheme in ("http", "https") and bool(address.hostname)
            is_address = is_address and address.username is None and address.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            raise ValueError("webhook_url: must be an http:// or https:// address without a user")
        if not (self.webhook_secret.get_secret_value() or self.webhook_secret_env):
            raise ValueError(
                "webhook_url: requires webhook_secret_env, webhook_secret_file or webhook_secret"
            )
        return self

    def secret(self, environ: Mapping[str, str] = os.environ) -> str:
        """Return the secret, or "" if the variable is not set."""
        return self.webhook_secret.get_secret_value() or environ.get(self.webhook_secret_env, "")
