"""Settings of the providers that administrators store in the database."""

import base64
import os
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import SecretStr, field_validator

from services.common.settings.base import (
    Section,
    SettingsError,
    VariableName,
    setting,
    without_variables,
)

KEY_BYTES = 32
# More keys than a rotation needs are a mistake.
_MAX_KEYS = 8


class StoredProviders(Section):
    """Providers that administrators add while the gateway runs (docs/stored-providers.md)."""

    encryption_keys: SecretStr = setting(
        SecretStr(""),
        "keys that encrypt the providers' keys in the database, separated by spaces or lines: 32 "
        "bytes in base64 each. The first encrypts, the others only decrypt; without any, no "
        "providers can be stored",
    )
    encryption_keys_env: VariableName = setting(
        "GATEWAY_ENCRYPTION_KEYS", "variable with these keys"
    )
    encryption_keys_file: str = setting(
        "", "file with these keys, reloaded on SIGHUP", example="/run/secrets/encryption_keys"
    )
    internal_addresses: bool = setting(
        False,
        "whether stored providers may have http:// addresses, and addresses in internal networks; "
        "administrators could then send requests there",
    )

    @field_validator("encryption_keys", "encryption_keys_env", mode="before")
    @classmethod
    def _is_literal(cls, value: Any) -> Any:
        return without_variables(value)

    def keys(self, environ: Mapping[str, str] = os.environ) -> Sequence[bytes]:
        """Return the encryption keys, the one that encrypts first.

        Raises:
            SettingsError: a key is malformed; the message does not repeat it.
        """
        text = self.encryption_keys.get_secret_value()
        if not text and self.encryption_keys_env:
            text = environ.get(self.encryption_keys_env, "")
        words = text.split()
        if len(words) > _MAX_KEYS:
            raise SettingsError(
                f"stored_providers.encryption_keys: must be at most {_MAX_KEYS} keys"
            )
        return [_key(word, number) for number, word in enumerate(words)]


def _key(word: str, number: int) -> bytes:
    try:
        key = base64.b64decode(word, validate=True)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise SettingsError(
            f"stored_providers.encryption_keys[{number}]: must be {KEY_BYTES} bytes in base64, as "
            f"`openssl rand -base64 {KEY_BYTES}` prints them"
        )
    return key
