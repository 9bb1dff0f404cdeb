"""Models in Google's format, and its pages of lists."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from facade.dialects.queries import parse_limit
from gateway.inference.v1.inference_pb2 import Model
from services.common.errors import invalid

Json = dict[str, Any]

_PREFIX: Final = "models/"
_SIZE, _TOKEN = "pageSize", "pageToken"
_DEFAULT_SIZE, _MOST = 50, 1_000
_METHODS: Final = ("generateContent", "streamGenerateContent", "countTokens")


def model_name(path_value: str) -> str:
    """Return the name of a model in a path, as callers of other dialects write it."""
    return path_value.removeprefix(_PREFIX)


def render_model(model: Model) -> bytes:
    """Return the JSON of a model."""
    return orjson.dumps(_model(model))


def render_model_list(models: Sequence[Model], query: Mapping[str, str]) -> bytes:
    """Return the JSON of a page of models, in their order.

    `query` may have `pageSize` and `pageToken`, the name of the last model of the page before.

    Raises:
        GatewayError: invalid, naming the query parameter.
    """
    limit = parse_limit(query, default=_DEFAULT_SIZE, largest=_MOST, name=_SIZE)
    start = 0
    if token := query.get(_TOKEN):
        names = [model.name for model in models]
        if token not in names:
            raise invalid(_TOKEN, f"{_TOKEN}: must be the nextPageToken of a page")
        start = names.index(token) + 1
    page = models[start : start + limit]
    body: Json = {"models": [_model(model) for model in page]}
    if start + limit < len(models):
        body["nextPageToken"] = page[-1].name
    return orjson.dumps(body)


def _model(model: Model) -> Json:
    fields: Json = {
        "name": f"{_PREFIX}{model.name}",
        "version": "",
        "displayName": model.display_name,
        "supportedGenerationMethods": list(_METHODS),
    }
    if model.context_window:
        fields["inputTokenLimit"] = model.context_window
    if model.max_output_tokens:
        fields["outputTokenLimit"] = model.max_output_tokens
    if model.HasField("thinking"):
        fields["thinking"] = model.thinking
    return fields
