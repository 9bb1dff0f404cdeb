"""Aliases of endpoint paths: `/v1/…` is the same as `/beta/v1/…`, and so are usual mistakes.

Some clients have OpenAI's or Anthropic's paths built in, and only their host can be configured.
Clients of OpenAI append `/chat/completions` to their base URL, and those of Anthropic
`/v1/messages`: a base URL meant for the other kind lacks the version, or has it twice. Logs and
metrics use the path under `/beta` for all names of an endpoint.
"""

import re
from collections.abc import Iterable, Iterator

_ALIASED = "/beta/v1"
# Prefixes that requests may have instead of `/beta/v1`: with a version, and without one.
_VERSIONED = ("/v1", "/v1/v1", "/beta/v1/v1", "/api/v1", "/api/v1/v1", "/openai/v1")
_UNVERSIONED = ("", "/beta")
# First segments after `/beta/v1`: a path without a version is an alias only if it has one of them.
AREAS = (
    *("chat", "messages", "responses", "embeddings", "models", "files", "uploads", "storage"),
    *("conversations", "memories", "memory", "usage", "batches"),
    "vector_stores",
    *("moderations", "images", "audio", "rerank", "completions"),
)
_CODING = "/coding/v1"
# Other versions of Google's API: its newest clients use `/v1`, whose paths of files and models are
# those of other dialects too.
_GOOGLE = re.compile(
    r"/v1alpha(?=/)|/v1(?=/models/.+:(?:generateContent|streamGenerateContent|countTokens"
    r"|embedContent|batchEmbedContents)$|/interactions(?:/|$))"
)
_GOOGLE_UPLOAD = re.compile(r"/upload/(?:v1|v1alpha)(?=/)")
_DOUBLED_CODING = f"{_CODING}/v1"
# Of Cohere's clients, whose first version has the usual path.
_RERANK = "/beta/v1/rerank"
_COHERE_RERANK = "/v2/rerank"


def _one_of(texts: Iterable[str]) -> str:
    """Return a pattern of some texts, of which the longest possible matches."""
    return f"(?:{'|'.join(sorted(texts, key=len, reverse=True))})"


_ALIAS = re.compile(
    rf"{_one_of(_VERSIONED)}(?=/|$)|{_one_of(_UNVERSIONED)}(?=/{_one_of(AREAS)}(?:/|$))"
)


def names_of(path: str) -> Iterator[str]:
    """Yield the path of an endpoint, and then its aliases, if any."""
    yield path
    if path.startswith(f"{_ALIASED}/"):
        for prefix in (*_VERSIONED, *_UNVERSIONED):
            yield prefix + path.removeprefix(_ALIASED)
        if path == _RERANK:
            yield _COHERE_RERANK
    elif path.startswith(f"{_CODING}/"):
        yield _DOUBLED_CODING + path.removeprefix(_CODING)


def route_of(path: str) -> str:
    """Return the path of an endpoint that `path` may be an alias of; other paths unchanged."""
    if match := _GOOGLE.match(path):
        return "/v1beta" + path[match.end() :]
    if match := _GOOGLE_UPLOAD.match(path):
        return "/upload/v1beta" + path[match.end() :]
    if match := _ALIAS.match(path):
        return _ALIASED + path[match.end() :]
    if path.startswith(f"{_DOUBLED_CODING}/"):
        return _CODING + path.removeprefix(_DOUBLED_CODING)
    return _RERANK if path == _COHERE_RERANK else path
