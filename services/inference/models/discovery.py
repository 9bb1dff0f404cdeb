"""The models that servers list, which are queried periodically in the background."""

import asyncio
import logging
import os
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from yarl import URL

from services.common import http
from services.common.errors import GatewayError
from services.common.settings import SANDBOX, Provider
from services.common.settings.clouds import BEDROCK, VERTEX
from services.inference.facts import base_urls
from services.inference.facts.lifecycle import NO_END, ModelLifecycle, ModelLifecycles, lifecycle_of
from services.inference.providers import anthropic, gemini, openai, vertex
from services.inference.providers.bedrock import listing
from services.inference.providers.credentials.authorizers import Authorizers
from services.inference.providers.protocols import Authorize

log = logging.getLogger(__name__)

_PROBE_TIMEOUT_S = 2.0
_MAX_LIST_BYTES = 4 << 20
_MAX_MODELS = 1_000  # maximum page size of Anthropic and Google
_MAX_PAGES = 10
# Required methods of Google's models.
_SERVED = ("generateContent", "embedContent")
_MAX_MODEL_NAME = 200  # maximum length of a model name
_KEY_REFUSED = (401, 403)
# Statuses of a server without this path.
_NO_SUCH_PATH = (404, 405)


async def learn(
    client: http.Client,
    providers: Mapping[str, Provider],
    authorizers: Authorizers | None = None,
    lifecycles: ModelLifecycles | None = None,
) -> dict[str, list[str]]:
    """Return the model names of each provider that responds.

    Args:
        client: sends the requests.
        providers: the providers by name.
        authorizers: authorize the requests to clouds; new ones if None.
        lifecycles: gets the dates of models by provider and name, if the provider says them.
    """
    authorizers = authorizers or Authorizers()
    listed = await asyncio.gather(
        *(
            _models_of(client, name, one, authorizers.of(name, one, one.key()), lifecycles)
            for name, one in providers.items()
        )
    )
    return {
        name: models for name, models in zip(providers, listed, strict=True) if models is not None
    }


async def _models_of(
    client: http.Client,
    name: str,
    provider: Provider,
    authorize: Authorize | None,
    lifecycles: ModelLifecycles | None,
) -> list[str] | None:
    if provider.kind == SANDBOX or provider.missing_key():
        return None
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT_S):
            match provider.kind:
                case "gemini":
                    return await _gemini_models(client, provider, authorize)
                case "bedrock":
                    listed = await _bedrock_lists(client, provider, authorize)
                    if listed and lifecycles is not None:
                        ends = listing.lifecycles_of(listed)
                        lifecycles.update(((name, model), one) for model, one in ends)
                    return _bedrock_names(listed)
                case "vertex":
                    return await _vertex_models(client, provider, authorize)
            _, listed = await _ask(client, provider, authorize=authorize)
    except (GatewayError, http.HttpError, TimeoutError, ValueError):
        return None
    match listed:
        case {"data": [*models]}:
            if lifecycles is not None:
                lifecycles.update(_lifecycles(name, models))
            return _names(models, "id")
    return None


def _lifecycles(
    provider: str, models: list[Any]
) -> Iterator[tuple[tuple[str, str], ModelLifecycle]]:
    """Yield the models of a list that end, with their dates."""
    for model in models[:_MAX_MODELS]:
        if isinstance(model, dict) and (lifecycle := lifecycle_of(model)) != NO_END:
            for name in _names([model], "id"):
                yield (provider, name), lifecycle


async def _gemini_models(
    client: http.Client, provider: Provider, authorize: Authorize | None
) -> list[str] | None:
    """Return the chat and embedding models; Google's list is paginated."""
    names: list[str] = []
    token = ""
    for _ in range(_MAX_PAGES):
        match (await _ask(client, provider, token, authorize=authorize))[1]:
            case {"models": [*models], **more}:
                names += _names([one for one in models if _is_served(one)], "name")
            case {**more} if not more.get("error"):
                pass  # an empty page omits the list
            case _:
                return None
        following = more.get("nextPageToken")
        if not isinstance(following, str) or not following:
            break
        token = following
    return [name.removeprefix("models/") for name in names][:_MAX_MODELS]


async def _bedrock_lists(
    client: http.Client, provider: Provider, authorize: Authorize | None
) -> list[dict[str, Any]]:
    """Return the lists of models and of inference profiles; none without the first one."""
    lists: list[dict[str, Any]] = []
    for path in (listing.MODELS, listing.PROFILES):
        response = await listing.ask(client, provider, provider.key(), path, authorize)
        status, listed = await read_list(response)
        if status == 200 and isinstance(listed, dict):
            lists.append(listed)
        elif path == listing.MODELS:
            return []
    return lists


def _bedrock_names(lists: list[dict[str, Any]]) -> list[str] | None:
    """Return the models and the inference profiles that write text or vectors."""
    if not lists:
        return None
    names = (name for listed in lists for name in listing.names_of(listed))
    return _names([{"name": name} for name in names], "name")


async def _vertex_models(
    client: http.Client, provider: Provider, authorize: Authorize | None
) -> list[str] | None:
    """Return the models of Google and of Anthropic in Model Garden."""
    names: list[Any] = []
    for publisher in vertex.PUBLISHERS:
        token = ""
        for _ in range(_MAX_PAGES):
            response = await vertex.ask(client, provider, publisher, token, authorize)
            status, listed = await read_list(response)
            if status != 200 or not isinstance(listed, dict):
                break
            names += vertex.names_of(publisher, listed)
            token = listed.get("nextPageToken") or ""
            if not isinstance(token, str) or not token:
                break
        if publisher == vertex.PUBLISHERS[0] and status != 200:
            return None
    return _names([{"name": name} for name in names], "name")


def listed_names(listed: Any) -> list[str] | None:
    """Return the names in the first page of a list of models; None if it is no such list."""
    match listed:
        case {"data": [*models]}:
            return _names(models, "id")
        case {"models": [*models]}:
            return [name.removeprefix("models/") for name in _names(models, "name")]
    return None


def _is_served(model: Any) -> bool:
    methods = model.get("supportedGenerationMethods") if isinstance(model, dict) else None
    return not isinstance(methods, list) or any(one in methods for one in _SERVED)


def _names(models: list[Any], field: str) -> list[str]:
    """Return the names in a list of models, up to a limit."""
    return [
        model[field]
        for model in models
        if isinstance(model, dict)
        and isinstance(model.get(field), str)
        and 0 < len(model[field]) <= _MAX_MODEL_NAME
    ][:_MAX_MODELS]


async def answering_base_url(
    client: http.Client,
    provider: Provider,
    environ: Mapping[str, str] = os.environ,
    authorize: Authorize | None = None,
) -> str:
    """Return the base URL that was probably meant by one without an API, or "".

    That is one of `base_urls.alternatives` at which the server has a list of models, while at the
    provider's own it has none.
    """
    if provider.kind in (SANDBOX, BEDROCK, VERTEX) or provider.missing_key(environ):
        return ""
    if await _has_list(client, provider, environ, authorize) is not False:
        return ""
    for url in base_urls.alternatives(provider.kind, provider.base_url):
        candidate = provider.model_copy(update={"base_url": url})
        if await _has_list(client, candidate, environ, authorize):
            return url
    return ""


async def _has_list(
    client: http.Client,
    provider: Provider,
    environ: Mapping[str, str],
    authorize: Authorize | None,
) -> bool | None:
    """Return whether a server has a list of models; None if it does not answer the question.

    A refused key counts as a list: a server that checks keys before paths refuses them at every
    base URL, so that no other one is looked for.
    """
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT_S):
            status, listed = await _ask(client, provider, "", environ, authorize)
    except (GatewayError, http.HttpError, TimeoutError, ValueError):
        return None
    if status == 200:
        return isinstance(listed, dict) and ("data" in listed or "models" in listed)
    if status in _KEY_REFUSED:
        return True
    return False if status in _NO_SUCH_PATH else None


async def _ask(
    client: http.Client,
    provider: Provider,
    page: str = "",
    environ: Mapping[str, str] = os.environ,
    authorize: Authorize | None = None,
) -> tuple[int, Any]:
    """Request a server's list of models; return the status, and the JSON or None.

    Raises:
        HttpError: connecting failed, or no valid response arrived.
        ValueError: the response is too long.
    """
    return await read_list(await ask_models(client, provider, page, environ, authorize))


async def read_list(response: http.Response) -> tuple[int, Any]:
    """Return the status of a response, and its JSON or None; see `_ask`."""
    try:
        body = b""
        while response.status == 200 and (piece := await response.body.read()):
            body += piece
            if len(body) > _MAX_LIST_BYTES:
                raise ValueError("list too long")
    finally:
        response.body.release()
    try:
        return response.status, orjson.loads(body)
    except orjson.JSONDecodeError:
        return response.status, None


async def ask_models(
    client: http.Client,
    provider: Provider,
    page: str = "",
    environ: Mapping[str, str] = os.environ,
    authorize: Authorize | None = None,
) -> http.Response:
    """Request a server's list of models; return the response with its body unread.

    Raises:
        UpstreamError: the gateway has no credentials.
        HttpError: connecting failed, or no valid response arrived.
        TimeoutError: connecting timed out.
    """
    key = provider.key(environ)
    if provider.kind == BEDROCK:
        return await listing.ask(client, provider, key, authorize=authorize)
    if provider.kind == VERTEX:
        return await vertex.ask(client, provider, vertex.PUBLISHERS[0], page, authorize)
    url = URL(provider.base_url)
    headers = dict(provider.headers)
    if provider.kind == "anthropic":
        url = url.joinpath("v1", "models").with_query(limit=_MAX_MODELS)
        headers = {**anthropic.headers(key), **headers}
    elif provider.kind == "gemini":
        token = {"pageToken": page} if page else {}
        url = url.joinpath("models").with_query(pageSize=_MAX_MODELS, **token)
        headers = {**gemini.headers(key), **headers}
    else:
        url = url.joinpath("models")
        if provider.api_version:
            url = url.with_query({"api-version": provider.api_version})
        headers = {**openai.headers(key, provider.api_version), **headers}
    if authorize is not None:
        headers |= dict(await authorize.headers("GET", str(url), b""))
    fields = http.fields(headers.items())
    return await client.send(http.origin_of(url), "GET", url.raw_path_qs, fields)
