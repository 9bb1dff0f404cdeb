"""The credential of a request, and the format of its responses.

The API key is sent in one of two headers, `Authorization: Bearer` or `x-api-key`; on the endpoints
of Google's dialect, the second is `x-goog-api-key`. Both together are an error, except on the
endpoints for coding agents, some of which send their key in both, and of Google's dialect. Document
editing accepts only `x-api-key`. Official Anthropic clients are recognized by `anthropic-version`,
whichever header has their key. Whether a version header is required depends on the endpoint.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from facade.aliases import route_of
from facade.sessions import CSRF_HEADER
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, invalid, invalid_api_key
from services.common.grpc.authentication import bearer_key
from services.common.key_format import is_issuer_token, is_key, malformed

COMPAT_VERSION = "2023-06-01"


class ApiFormat(Enum):
    """The format of responses and errors."""

    OPENAI = "OpenAI's"
    ANTHROPIC = "Anthropic's"
    GOOGLE = "Google's"
    ENVELOPE = "document editing's"


class KeyKind(Enum):
    """The kind of the key that an endpoint needs."""

    CALLER = "API key"
    ADMIN = "admin key"
    NONE = "no key"


# Formats that a credential can select, on all endpoints and on those of files and models.
Format = Literal[ApiFormat.OPENAI, ApiFormat.ANTHROPIC]
ListFormat = Literal[ApiFormat.OPENAI, ApiFormat.ANTHROPIC, ApiFormat.GOOGLE]
_GOOGLE_KEY = "x-goog-api-key"
# Error number of a missing key in document editing; not shown by other endpoints.
_KEY_MISSING = 40101


@dataclass(frozen=True, slots=True)
class Rules:
    """An endpoint's requirements on request headers.

    Attributes:
        api_format: the fixed response format, or None if the credential decides.
        version: whether a version header is needed: "always", "with x-api-key" or "never".
        takes_bearer: whether the key may come in `Authorization`.
        takes_both: whether the same key may come in both headers.
        key_headers: the headers of a key without a scheme.
        key: the kind of the key that is needed.
    """

    api_format: ApiFormat | None
    version: str
    takes_bearer: bool = True
    takes_both: bool = False
    key_headers: Sequence[str] = ("x-api-key",)
    key: KeyKind = KeyKind.CALLER


CHAT = Rules(api_format=ApiFormat.OPENAI, version="with x-api-key")
MESSAGES = Rules(api_format=ApiFormat.ANTHROPIC, version="always")
FILES_AND_MODELS = Rules(
    api_format=None, version="with x-api-key", key_headers=("x-api-key", _GOOGLE_KEY)
)
BY_CREDENTIAL = Rules(api_format=None, version="with x-api-key")
CODING_MESSAGES = Rules(api_format=ApiFormat.ANTHROPIC, version="never", takes_both=True)
CODING_MODELS = Rules(api_format=None, version="never", takes_both=True)
GOOGLE = Rules(
    api_format=ApiFormat.GOOGLE, version="never", takes_both=True, key_headers=(_GOOGLE_KEY,)
)
UPLOADS = Rules(api_format=ApiFormat.GOOGLE, version="never", key=KeyKind.NONE)
ADMIN = Rules(api_format=ApiFormat.OPENAI, version="never", key=KeyKind.ADMIN)
CONSOLE = Rules(api_format=ApiFormat.OPENAI, version="never", key=KeyKind.NONE)
PUBLIC = Rules(api_format=None, version="never", key=KeyKind.NONE)
ARTICLES = Rules(api_format=ApiFormat.ENVELOPE, version="never", takes_bearer=False)


def api_format_of(headers: Mapping[str, str], rules: Rules) -> ApiFormat:
    """Return the format of the response, even if it is an error."""
    return list_format(headers, rules) if rules.api_format is None else rules.api_format


def list_format(headers: Mapping[str, str], rules: Rules) -> ListFormat:
    """Return the response format of an endpoint of files or models."""
    if rules.api_format is ApiFormat.GOOGLE:
        return ApiFormat.GOOGLE
    is_google = _GOOGLE_KEY in rules.key_headers and _GOOGLE_KEY in headers
    return ApiFormat.GOOGLE if is_google else credential_format(headers, rules)


def credential_format(headers: Mapping[str, str], rules: Rules = BY_CREDENTIAL) -> Format:
    """Return the response format of a credential."""
    if "authorization" in headers:
        if "x-api-key" in headers and not rules.takes_both:
            return ApiFormat.OPENAI
        return ApiFormat.ANTHROPIC if "anthropic-version" in headers else ApiFormat.OPENAI
    # A session has no header of its own kind: the version selects the format.
    is_anthropic = "x-api-key" in headers or (
        CSRF_HEADER in headers and "compat-version" in headers
    )
    return ApiFormat.ANTHROPIC if is_anthropic else ApiFormat.OPENAI


def key_of(headers: Mapping[str, str], rules: Rules) -> str:
    """Return the API key of a request; its format is checked, its validity is not.

    Raises:
        GatewayError: invalid if both headers are sent to an endpoint that does not accept both, or
            with different keys; invalid_api_key if the key is missing or malformed.
    """
    authorization = headers.get("authorization")
    # Of two the first; each is a key of its own, which is verified.
    name = next((one for one in rules.key_headers if one in headers), rules.key_headers[0])
    api_key = headers.get(name)
    if authorization is not None and api_key is not None:
        return _key_of_both(authorization, name, api_key, rules)
    if authorization is not None and rules.takes_bearer:
        return bearer_key(authorization)
    if api_key is None:
        bearer = "`Authorization: Bearer <API_KEY>` or " if rules.takes_bearer else ""
        raise GatewayError(
            errors_pb2.REASON_INVALID_API_KEY,
            f"an API key is required: send {bearer}`{name}: <API_KEY>`",
            article_code=_KEY_MISSING,
        )
    if not is_key(api_key) and not is_issuer_token(api_key):
        raise invalid_api_key(malformed(api_key))
    return api_key


def _key_of_both(authorization: str, name: str, api_key: str, rules: Rules) -> str:
    names = f"Authorization, {name}"
    if not rules.takes_both:
        raise invalid("Authorization", f"{names}: send one of the two headers, not both")
    if authorization.partition(" ")[2].strip() != api_key:
        raise invalid(
            "Authorization",
            f"{names}: the two headers carry different keys; send one of them,"
            " or the same key in both",
        )
    return bearer_key(authorization)


def check_version(headers: Mapping[str, str], rules: Rules) -> None:
    """Check `compat-version`: reject a wrong value, and a missing one if it is required.

    A request with `anthropic-version` needs none: it comes from Anthropic's own client, which does
    not know `compat-version`.

    Raises:
        GatewayError: invalid, naming the header.
    """
    version = headers.get("compat-version")
    if version is not None:
        if version != COMPAT_VERSION:
            raise invalid("compat-version", f"compat-version: must be {COMPAT_VERSION}")
        return
    needed = rules.version == "always" or (
        rules.version == "with x-api-key" and "x-api-key" in headers
    )
    if needed and "anthropic-version" not in headers:
        raise invalid("compat-version", f"compat-version: is required and must be {COMPAT_VERSION}")


# Base URLs that clients are configured with; some clients send HEAD first.
BASE_PATHS = tuple(
    f"{path}{slash}"
    for path in ("/beta", "/beta/v1", "/coding", "/coding/v1")
    for slash in ("", "/")
)
_PUBLIC_PATHS = frozenset(
    {
        *("/", "/console", "/healthz", "/readyz", "/openapi.json", "/docs"),
        *BASE_PATHS,
    }
)
# Rules by path prefix, the first match wins; unknown paths have rules too.
_RULES = (
    ("/beta/v1/chat/", CHAT),
    ("/beta/v1/responses", CHAT),
    ("/beta/v1/conversations", CHAT),
    ("/beta/v1/messages", MESSAGES),
    ("/beta/v1/embeddings", CHAT),
    ("/beta/v1/uploads", CHAT),
    ("/beta/v1/batches", CHAT),
    ("/beta/v1/vector_stores", CHAT),
    ("/beta/v1/usage/requests", CHAT),
    ("/beta/v1/usage/activity", CHAT),
    ("/coding/v1/messages", CODING_MESSAGES),
    ("/coding/v1/", CODING_MODELS),
    ("/beta/v1/files", FILES_AND_MODELS),
    ("/beta/v1/models", FILES_AND_MODELS),
    ("/v1beta/", GOOGLE),
    # The address of an upload is its credential.
    ("/upload/v1beta/content/", UPLOADS),
    ("/upload/v1beta/", GOOGLE),
    ("/ws/google.ai.generativelanguage.", GOOGLE),
    ("/article/v1/", ARTICLES),
    ("/admin/", ADMIN),
    ("/console/", CONSOLE),
)


def rules_for(path: str) -> Rules:
    """Return the rules of an endpoint by its path, or by an alias of it."""
    return rules_of_route(route_of(path))


def rules_of_route(path: str) -> Rules:
    """Return the rules of an endpoint by its own path, with or without its variables' names."""
    if path in _PUBLIC_PATHS:
        return PUBLIC
    for prefix, rules in _RULES:
        if path.startswith(prefix):
            return rules
    return BY_CREDENTIAL
