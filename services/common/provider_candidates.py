"""Providers that administrators describe: checked, and completed by presets. Pure."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from pydantic import SecretStr
from yarl import URL

from services.common.errors import invalid
from services.common.key_format import is_key
from services.common.settings import Provider, Server
from services.common.settings.presets import PRESETS, Preset

# The kinds of which a key and an address are all that is needed.
KINDS: Final = ("openai", "anthropic", "gemini")
MAX_BASE_URL = 2_048
_KEY = re.compile(r"[\x21-\x7e]{1,4096}", re.ASCII)


class Candidate(NamedTuple):
    """A provider that is stored, or could be.

    Attributes:
        kind: one of `KINDS`.
        base_url: the address of the API.
        api_key: the key; "" for none.
    """

    kind: str
    base_url: str
    api_key: str

    def __repr__(self) -> str:
        """Return a text without the key."""
        return f"Candidate({self.kind!r}, {self.base_url!r})"

    def settings(self) -> Provider:
        """Return the provider as a section of the settings."""
        return Provider.model_validate(
            {
                "kind": self.kind,
                "base_url": self.base_url,
                "api_key": SecretStr(self.api_key),
            }
        )


def storable_presets() -> Sequence[tuple[str, Preset]]:
    """Return the presets that need nothing but a key, by name."""
    return [
        (name, preset)
        for name, preset in sorted(PRESETS.items())
        if preset.kind in KINDS and not preset.place_variable
    ]


def candidate(
    name: str, kind: str, base_url: str, api_key: str, server: Server, *, may_be_internal: bool
) -> Candidate:
    """Return the provider that an administrator describes, completed by the preset of its name.

    Raises:
        GatewayError: invalid_request, naming the field.
    """
    preset = dict(storable_presets()).get(name)
    if not kind and not base_url and preset is not None:
        kind, base_url = preset.kind, preset.base_url
        if not api_key:
            raise invalid("api_key", f"api_key: required for {name}")
    if kind not in KINDS:
        raise invalid("kind", f"kind: must be one of {', '.join(KINDS)}")
    check_address(base_url, server, may_be_internal=may_be_internal)
    if api_key:
        check_key(api_key)
    return Candidate(kind, base_url.rstrip("/"), api_key)


def check_key(api_key: str) -> None:
    """Check the form of a provider's key.

    Raises:
        GatewayError: invalid_request; the message does not repeat the key.
    """
    if not _KEY.fullmatch(api_key):
        raise invalid(
            "api_key", "api_key: must be 1 to 4,096 printable ASCII characters without spaces"
        )
    if is_key(api_key):
        raise invalid("api_key", "api_key: is a key of a gateway, not of a provider")


def check_address(base_url: str, server: Server, *, may_be_internal: bool) -> None:
    """Check the form of the address of an API.

    Raises:
        GatewayError: invalid_request.
    """
    schemes = ("https", "http") if may_be_internal else ("https",)
    try:
        url = URL(base_url)
        is_address = url.scheme in schemes and bool(url.raw_host) and url.port != 0
    except ValueError:
        is_address = False
    if not is_address or len(base_url) > MAX_BASE_URL:
        remedy = "" if may_be_internal else " (stored_providers.internal_addresses allows http://)"
        begins = " or ".join(f"{scheme}://" for scheme in schemes)
        raise invalid(
            "base_url",
            f"base_url: must be an address of at most {MAX_BASE_URL:,} characters that begins with "
            f"{begins}{remedy}",
        )
    if url.user is not None or url.password is not None or url.raw_query_string or url.fragment:
        raise invalid("base_url", "base_url: must not have a user, a query or a fragment")
    if server.is_at(base_url):
        raise invalid("base_url", "base_url: is the gateway's own address")
