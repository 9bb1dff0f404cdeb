"""The OpenAPI document of the gateway, parsed once a process, and only where a test needs it."""

from functools import cache
from typing import Any

import orjson

from facade.description import openapi
from facade.endpoints import ENDPOINTS


@cache
def openapi_document() -> Any:
    """Return the document; nobody changes it."""
    return orjson.loads(openapi.document(ENDPOINTS))
