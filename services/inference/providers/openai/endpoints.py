"""Paths and credentials of OpenAI's API, and of Azure's older one. Pure.

Source: https://learn.microsoft.com/azure/ai-foundry/openai/reference
"""

from collections.abc import Callable
from urllib.parse import quote

# Returns the path of an endpoint for a model.
PathOf = Callable[[str, str], str]


def headers(key: str, api_version: str = "") -> dict[str, str]:
    """Return the headers of every request; without a key there are none.

    Args:
        key: the key.
        api_version: the version of Azure's older API, which has a header of its own; or "".
    """
    if not key:
        return {}
    return {"api-key": key} if api_version else {"Authorization": f"Bearer {key}"}


def path_of(api_version: str) -> PathOf | None:
    """Return the paths of Azure's deployments in an older version; None for those of OpenAI."""
    if not api_version:
        return None

    def of_deployment(path: str, model: str) -> str:
        return f"/deployments/{quote(model, safe='')}{path}?api-version={api_version}"

    return of_deployment
