"""The models that an account has on Bedrock in a region: foundation models and inference profiles.

They are listed by another host than that of `bedrock-runtime`. Source: `ListFoundationModels` and
`ListInferenceProfiles` in the API reference.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from yarl import URL

from services.common import http
from services.common.settings import Provider as ProviderSettings
from services.inference.facts.lifecycle import NO_END, ModelLifecycle, lifecycle_of
from services.inference.providers.protocols import Authorize

MODELS = "foundation-models"
PROFILES = "inference-profiles"
_RUNTIME, _CONTROL = "bedrock-runtime", "bedrock"
_SERVED = frozenset({"TEXT", "EMBEDDING"})
_MAX_PROFILES = 1_000


async def ask(
    client: http.Client,
    provider: ProviderSettings,
    key: str,
    path: str = MODELS,
    authorize: Authorize | None = None,
) -> http.Response:
    """Request a list; return the response with its body unread.

    Args:
        client: sends the request.
        provider: the provider's settings.
        key: its API key, or "".
        path: MODELS or PROFILES.
        authorize: signs the request, if it has no key.

    Raises:
        UpstreamError: the gateway has no credentials.
        HttpError: connecting failed, or no valid response arrived.
        TimeoutError: connecting timed out.
    """
    base = URL(provider.base_url)
    host = base.host or ""
    if host.startswith(_RUNTIME):
        base = base.with_host(_CONTROL + host.removeprefix(_RUNTIME))
    url = base.joinpath(path)
    if path == PROFILES:
        url = url.with_query(maxResults=_MAX_PROFILES)
    headers = dict(provider.headers)
    if authorize is not None:
        origin = http.origin_of(url)
        sent = f"{url.scheme}://{origin.authority}{url.raw_path_qs}"
        headers |= dict(await authorize.headers("GET", sent, b""))
    elif key:
        headers.setdefault("Authorization", f"Bearer {key}")
    fields = http.fields(headers.items())
    return await client.send(http.origin_of(url), "GET", url.raw_path_qs, fields)


def names_of(listed: Mapping[str, Any]) -> Iterator[object]:
    """Yield the names in a list of foundation models or of inference profiles.

    Models that return neither text nor vectors are left out, and those that only a profile gives
    access to.
    """
    for model in listed.get("modelSummaries") or ():
        match model:
            case {"inferenceTypesSupported": [*ways], "outputModalities": [*outputs]}:
                if "ON_DEMAND" in ways and not _SERVED.isdisjoint(outputs):
                    yield model.get("modelId")
    for profile in listed.get("inferenceProfileSummaries") or ():
        match profile:
            case {"inferenceProfileId": name, "status": "ACTIVE"}:
                yield name


def lifecycles_of(lists: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ModelLifecycle]]:
    """Yield the models of the lists that end, and their inference profiles, with their dates.

    Args:
        lists: the list of foundation models, and that of inference profiles.
    """
    ends: dict[str, ModelLifecycle] = {}
    for listed in lists:
        for model in listed.get("modelSummaries") or ():
            match model:
                case {"modelId": str(name), "modelLifecycle": dict()}:
                    if (lifecycle := lifecycle_of(model["modelLifecycle"])) != NO_END:
                        ends[name] = lifecycle
    yield from ends.items()
    for listed in lists:
        for profile in listed.get("inferenceProfileSummaries") or ():
            match profile:
                case {"inferenceProfileId": str(name), "models": [{"modelArn": str(arn)}, *_]}:
                    if (lifecycle := ends.get(arn.rpartition("/")[2], NO_END)) != NO_END:
                        yield name, lifecycle
