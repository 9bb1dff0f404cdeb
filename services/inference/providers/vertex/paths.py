"""Paths of Vertex AI. Pure."""

import re

from services.common.errors import model_not_found

# Names have versions such as `@20250929` or `-001`, and may be those of a path.
_MODEL = re.compile(
    r"(?:publishers/[a-z0-9-]{1,60}/models/|endpoints/|models/)?[A-Za-z0-9][A-Za-z0-9._@-]{0,200}",
    re.ASCII,
)
_CLAUDE = "claude"
_OF_ANTHROPIC = "publishers/anthropic/"


def is_claude(upstream: str) -> bool:
    """Return whether a model is Anthropic's."""
    return upstream.removeprefix("models/").startswith((_CLAUDE, _OF_ANTHROPIC))


def model_path(upstream: str, publisher: str = "") -> str:
    """Return the path of a model below a location.

    Args:
        upstream: the model's name, or a path of `publishers`, `models` or `endpoints`.
        publisher: of a name without a path; "" for the maker of the model.

    Raises:
        GatewayError: model_not_found, if the name is malformed.
    """
    if not _MODEL.fullmatch(upstream):
        raise model_not_found(upstream)
    if upstream.startswith(("publishers/", "endpoints/")):
        return upstream
    name = upstream.removeprefix("models/")
    maker = publisher or ("anthropic" if is_claude(name) else "google")
    return f"publishers/{maker}/models/{name}"


def base_url(address: str, project: str, region: str) -> str:
    """Return the URL below which the models of a project are.

    Args:
        address: the address of the server.
        project: the Google Cloud project.
        region: the location, such as `global` or `europe-west1`.
    """
    return f"{address.rstrip('/')}/v1/projects/{project}/locations/{region}"
