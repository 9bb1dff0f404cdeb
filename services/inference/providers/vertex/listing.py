"""The models of Vertex AI's Model Garden.

Source: `publishers.models.list` of `v1beta1`, as google-genai asks for it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from yarl import URL

from services.common import http
from services.common.settings import Provider as ProviderSettings
from services.inference.providers.protocols import Authorize

PUBLISHERS = ("google", "anthropic")
_PAGE_SIZE = 100
# What generates text or vectors; Google lists its models of all kinds.
_SERVED = ("gemini-", "text-embedding-", "text-multilingual-embedding-", "claude-")


async def ask(
    client: http.Client,
    provider: ProviderSettings,
    publisher: str,
    page: str,
    authorize: Authorize | None,
) -> http.Response:
    """Request a page of a list; return the response with its body unread.

    Args:
        client: sends the request.
        provider: the provider's settings.
        publisher: one of PUBLISHERS.
        page: the token of the page; "" for the first.
        authorize: authorizes the request, if it has no key.

    Raises:
        UpstreamError: the gateway has no credentials.
        HttpError: connecting failed, or no valid response arrived.
        TimeoutError: connecting timed out.
    """
    url = URL(provider.base_url).joinpath("v1beta1", "publishers", publisher, "models")
    query = {"pageSize": str(_PAGE_SIZE)} | ({"pageToken": page} if page else {})
    url = url.with_query(query)
    headers = dict(provider.headers)
    if key := provider.key():
        headers.setdefault("x-goog-api-key", key)
    if authorize is not None:
        # Lists are of no project; this one is asked whether it may use the API.
        headers |= {"x-goog-user-project": provider.project}
        headers |= dict(await authorize.headers("GET", str(url), b""))
    fields = http.fields(headers.items())
    return await client.send(http.origin_of(url), "GET", url.raw_path_qs, fields)


def names_of(publisher: str, listed: Mapping[str, Any]) -> Iterator[object]:
    """Yield the names in a page of a list, without their paths and versions."""
    prefix = f"publishers/{publisher}/models/"
    for model in listed.get("publisherModels") or ():
        match model:
            case {"name": str(name)} if name.removeprefix(prefix).startswith(_SERVED):
                yield name.removeprefix(prefix)
