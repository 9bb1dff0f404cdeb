"""HTTP headers that belong to a dialect, such as `OpenAI-Beta` or `anthropic-ratelimit-*`.

Between a caller and a provider of the same dialect, these headers are forwarded. Of a caller's
headers, only those on a list of harmless ones are: a header may select an account, or a container,
a session or a conversation at the provider, where all callers share the operator's account. Of a
provider's headers all but those that name an account are forwarded, as providers add new ones.
Between different dialects no headers are forwarded, and `x-gateway-dropped` does not list them:
they are optional, every client sends some, and other APIs do not know them.

`anthropic-ratelimit-unified-*`, the limits of a subscription, are forwarded like all limits. Claude
Code shows them; without them it takes an exhausted quota for temporary throttling and retries for
ever.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_ANTHROPIC,
    DIALECT_GEMINI,
    DIALECT_OPENAI,
    DIALECT_RESPONSES,
    Dialect,
)

# Limits per request, and per response.
MAX_HEADERS: Final = 32
MAX_NAME: Final = 64
MAX_VALUE: Final = 1_024
MAX_BYTES: Final = 4_096  # names and values together

_NAME = re.compile(rf"[a-z0-9_-]{{1,{MAX_NAME}}}", re.ASCII)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}", re.ASCII)
# Words in names of a provider's headers that name an account or a part of it, or contain a
# credential: `openai-organization`, `openai-project`, `anthropic-organization-id`,
# `anthropic-workspace-id`, `anthropic-user-profile-id`.
_OF_ACCOUNTS = re.compile(
    r"(?:organi[sz]ations?|orgs?|projects?|workspaces?|accounts?|tenants?|profiles?|admin|billing"
    r"|subscriptions?|keys?|apikey|token|auth|authorization|credentials?|secrets?|cookies?)"
)
# Headers of requests that neither select nor name anything stored at a provider, in lower case.
# The gateway writes `anthropic-version`, and `anthropic-beta` from `GenerateRequest.betas`.
_OPENAI_REQUESTS = frozenset({"openai-beta"})
_GEMINI_REQUESTS = frozenset({"x-goog-api-client"})
_ANTHROPIC_REQUESTS = frozenset(
    {
        *("anthropic-client-name", "anthropic-client-platform", "anthropic-client-version"),
        "anthropic-dangerous-direct-browser-access",
    }
)


@dataclass(frozen=True, slots=True)
class _Family:
    """Headers of one dialect.

    Attributes:
        requests: names of headers that are forwarded from callers, in lower case.
        initials: possible first characters of such a name.
        answers: prefixes of names in responses.
        answer_initials: possible first characters of a name with one of these prefixes.
        request_ids: response headers with the id of the request.
    """

    requests: frozenset[str]
    initials: str
    answers: tuple[str, ...]
    answer_initials: str
    request_ids: tuple[str, ...]


_OPENAI = _Family(
    _OPENAI_REQUESTS,
    "oO",
    ("openai-", "x-ratelimit-"),
    "oOxX",
    ("x-request-id", "request-id"),
)
_FAMILIES: Mapping[Dialect.ValueType, _Family] = {
    DIALECT_ANTHROPIC: _Family(
        _ANTHROPIC_REQUESTS,
        "aA",
        ("anthropic-",),
        "aA",
        ("request-id", "x-request-id"),
    ),
    DIALECT_OPENAI: _OPENAI,
    DIALECT_RESPONSES: _OPENAI,
    DIALECT_GEMINI: _Family(
        _GEMINI_REQUESTS,
        "xX",
        ("x-gemini-",),
        "xX",
        ("x-request-id", "x-goog-request-id"),
    ),
}


def of_request(dialect: Dialect.ValueType, headers: Mapping[str, str]) -> dict[str, str]:
    """Return a caller's headers for providers of its dialect.

    Args:
        dialect: the caller's dialect.
        headers: headers of the request, names in any case, including all repeated ones.
    """
    # Called for every request; most have no such header.
    family = _FAMILIES[dialect]
    initials = family.initials
    dialect_fields = [field for field in headers.items() if field[0][0] in initials]
    return to_provider(dialect, dialect_fields) if dialect_fields else {}


def to_provider(dialect: Dialect.ValueType, headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the `headers` that may be sent to a provider of a dialect, names in lower case.

    Headers beyond a limit, and those with a value that is not visible ASCII, are left out.
    """
    family = _FAMILIES.get(dialect)
    if family is None:
        return {}
    allowed = family.requests
    return _bounded(
        (name.lower(), value)
        for name, value in headers
        if len(name) <= MAX_NAME and name.lower() in allowed
    )


def of_answer(
    dialect: Dialect.ValueType,
    headers: Mapping[str, str] | None,
    caller_dialect: Dialect.ValueType,
) -> tuple[dict[str, str], str]:
    """Return the headers of a provider's response for a caller, and the provider's request id.

    The limits are those of requests. The id is "" if the provider sent none that is safe to repeat.

    Args:
        dialect: the provider's dialect.
        headers: the headers of the response; None before the response, and without HTTP.
        caller_dialect: the caller's dialect; a caller of another one gets no headers.
    """
    family = _FAMILIES.get(dialect)
    if family is None or headers is None:
        return {}, ""
    request_id = ""
    for name in family.request_ids:
        if value := headers.get(name):
            request_id = value if _REQUEST_ID.fullmatch(value) else ""
            break
    if dialect != caller_dialect:
        return {}, request_id
    passed_fields = []
    for name, value in headers.items():
        # Called for every response; most have few such headers.
        if name[:1] in family.answer_initials and len(name) <= MAX_NAME:
            if own_name := _name_of(name, family.answers):
                passed_fields.append((own_name, value))
    return _bounded(passed_fields) if passed_fields else {}, request_id


def _bounded(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    bounded: dict[str, str] = {}
    remaining = MAX_BYTES
    for name, value in headers:
        if not 0 < len(value) <= MAX_VALUE:
            continue
        # Visible ASCII, with spaces only inside.
        if not (value.isascii() and value.isprintable()) or " " in (value[0], value[-1]):
            continue
        # Repeated fields form one list (RFC 9110, section 5.3).
        before = bounded.get(name)
        size = len(value) + (len(name) if before is None else len(", "))
        if size > remaining or (before is None and len(bounded) == MAX_HEADERS):
            continue
        remaining -= size
        bounded[name] = value if before is None else f"{before}, {value}"
    return bounded


# Cached: the same few short names recur.
@lru_cache(maxsize=1_024)
def _name_of(field_name: str, prefixes: tuple[str, ...]) -> str:
    """Return a name in lower case; "" without a prefix, if unsafe to send, or for an account."""
    name = field_name.lower()
    if not name.startswith(prefixes) or not _NAME.fullmatch(name):
        return ""
    # `x-ratelimit-limit-project-tokens` is the limit of a project, but does not name the project.
    if name.startswith("x-") or not any(map(_OF_ACCOUNTS.fullmatch, name.split("-"))):
        return name
    return ""


def interleaves_thinking(betas: Iterable[str]) -> bool:
    """Return whether the model may think between tool calls, with one budget for all thinking.

    The budget may then exceed `max_tokens` (Anthropic's page on extended thinking).
    """
    return any(name.startswith("interleaved-thinking-") for name in betas)
