"""Usual mistakes in providers' base URLs: other base URLs that were probably meant. Pure."""

import re
from collections.abc import Iterator

from yarl import URL

from services.common.settings.presets import PRESETS

# Paths that are appended to a base URL.
_ENDPOINT = re.compile(
    r"/(?:chat/completions|completions|responses|embeddings|messages|models)/?$"
    r"|/models/[^/]+:\w+$"
)
_VERSIONS = {"openai": "/v1", "gemini": "/v1beta"}
_REPEATED_VERSION = re.compile(r"(/v1(?:beta)?)(?:\1)+$")
_VERSION_AT_END = re.compile(r"/v1(?:beta)?$")


def without_endpoint(kind: str, base_url: str) -> str:
    """Return a base URL without the path of an endpoint at its end, or "" if it has none."""
    shortened = _ENDPOINT.sub("", base_url)
    if shortened == base_url:
        return ""
    # The adapter of Anthropic's API appends the version itself.
    return _VERSION_AT_END.sub("", shortened) if kind == "anthropic" else shortened


def alternatives(kind: str, base_url: str) -> list[str]:
    """Return base URLs that may be right where `base_url` is not, the most probable first."""
    candidates = dict.fromkeys(_alternatives(kind, base_url.rstrip("/")))
    return [url for url in candidates if url not in (base_url, base_url.rstrip("/"))]


def _alternatives(kind: str, base_url: str) -> Iterator[str]:
    url = without_endpoint(kind, base_url) or base_url
    version = _VERSIONS.get(kind, "")
    yield url
    url = _REPEATED_VERSION.sub(r"\1", url)
    bare = _VERSION_AT_END.sub("", url)
    if kind == "anthropic":
        yield bare
        return
    yield url
    origin = URL(url).origin()
    for preset in PRESETS.values():
        if preset.kind == kind and "{" not in preset.base_url:
            if URL(preset.base_url).origin() == origin:
                yield preset.base_url
    yield bare + version
    yield str(origin).rstrip("/") + version
