"""Settings of the tools that the gateway runs for models."""

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from services.common.settings.base import Section, VariableName, setting, without_variables

# Variables in which the backends' own clients look for a key.
_SEARCH_KEY_VARIABLES = {"brave": "BRAVE_API_KEY", "tavily": "TAVILY_API_KEY"}


class WebSearch(Section):
    """The backend for web searches; without a backend they are not available."""

    backend: Literal["", "searxng", "brave", "tavily"] = setting("", "searxng | brave | tavily")
    url: str = setting(
        "",
        "of the SearXNG server, which needs `json` in its search.formats; for brave and "
        "tavily, only to use another address than their own",
    )
    api_key: SecretStr = setting(SecretStr(""), "the key itself")
    api_key_env: VariableName = setting(
        "",
        "variable with the key; if no key is set: BRAVE_API_KEY or TAVILY_API_KEY. For "
        "SearXNG, a bearer token for a proxy in front of it",
    )
    api_key_file: str = setting("", "file with the key")
    max_results: Annotated[int, Field(ge=1, le=20)] = setting(
        8, "results of a search, at most 20", seen="fewer results"
    )
    timeout_s: Annotated[float, Field(gt=0)] = setting(
        10, "time of one search", seen="the model reads that the search failed"
    )

    @field_validator("url", "api_key", "api_key_env", mode="before")
    @classmethod
    def _is_literal(cls, value: Any) -> Any:
        return without_variables(value)

    @model_validator(mode="after")
    def _has_address(self) -> Self:
        if self.url and not self.backend:
            raise ValueError("backend: must be searxng, brave or tavily if url is set")
        if (self.url or self.backend == "searxng") and not self._leads_somewhere():
            raise ValueError("url: must be the http:// or https:// address of the backend")
        return self

    def _leads_somewhere(self) -> bool:
        try:
            address = urlsplit(self.url)
            return address.scheme in ("http", "https") and bool(address.hostname)
        except ValueError:
            return False

    @property
    def key_variable(self) -> str:
        """The environment variable with the key, or "" for a backend without keys."""
        return self.api_key_env or _SEARCH_KEY_VARIABLES.get(self.backend, "")

    def key(self, environ: Mapping[str, str] = os.environ) -> str:
        """Return the backend's key, or "" if it has none."""
        return self.api_key.get_secret_value() or environ.get(self.key_variable, "")


class Tools(Section):
    """Tools that the gateway runs for models."""

    web_search: WebSearch = setting(WebSearch(), "search backend for models; empty: no web search")
