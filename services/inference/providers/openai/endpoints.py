"""Paths and credentials of OpenAI's API, of Azure's older one, and of Cohere. Pure.

Sources: https://learn.microsoft.com/azure/ai-foundry/openai/reference,
https://docs.cohere.com/docs/compatibility-api, https://docs.cohere.com/v1/reference/rerank
"""

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from msgspec import Raw
from msgspec.json import Decoder

# The end of the address of Cohere's API in OpenAI's format, which does not rerank, and the paths
# from there to Cohere's own, which does.
_COHERE: Final = "/compatibility/v1"
_RERANK: Final = "/rerank"
_COHERE_RERANK: Final = "/../../v2/rerank"
_COHERE_OLDER_RERANK: Final = "/../../v1/rerank"
# Fields of Cohere's first version alone, which also takes objects as documents.
_OLDER_FIELDS: Final = frozenset({"rank_fields", "return_documents", "max_chunks_per_doc"})
_OBJECT_FIRST: Final = re.compile(rb"\s*\[\s*\{")
_FIELDS: Final = Decoder(dict[str, Raw])

# Returns the path of an endpoint for a model and a JSON body.
PathOf = Callable[[str, str, bytes], str]


def headers(key: str, api_version: str = "") -> dict[str, str]:
    """Return the headers of every request; without a key there are none.

    Args:
        key: the key.
        api_version: the version of Azure's older API, which has a header of its own; or "".
    """
    if not key:
        return {}
    return {"api-key": key} if api_version else {"Authorization": f"Bearer {key}"}


def path_of(base_url: str, api_version: str) -> PathOf | None:
    """Return the paths of a server, if they are not OpenAI's: of Cohere, or of Azure's deployments.

    Args:
        base_url: the address of the server.
        api_version: an older version of Azure's API, or "".
    """
    if base_url.rstrip("/").endswith(_COHERE):
        return _path_of_cohere
    if not api_version:
        return None

    def of_deployment(path: str, model: str, body: bytes) -> str:
        return f"/deployments/{quote(model, safe='')}{path}?api-version={api_version}"

    return of_deployment


def _path_of_cohere(path: str, model: str, body: bytes) -> str:
    if path != _RERANK:
        return path
    fields = _FIELDS.decode(body)
    is_older = fields.keys() & _OLDER_FIELDS or _OBJECT_FIRST.match(fields.get("documents", b""))
    return _COHERE_OLDER_RERANK if is_older else _COHERE_RERANK
