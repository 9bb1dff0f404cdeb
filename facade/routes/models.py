"""The available models, in the format of the credential."""

from collections.abc import Iterator, Sequence

from facade import credentials
from facade.credentials import ApiFormat, ListFormat
from facade.dialects import anthropic, gemini, openai
from facade.dialects.json_schemas import NAME, STRING, JsonObject
from facade.endpoint import Answer, EndpointSpec, path_parameter, query_parameter
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.routes.generation import rpc_metadata
from gateway.inference.v1.inference_pb2 import GetModelRequest, ListModelsRequest


async def list_models(exchange: Exchange) -> Response:
    """Return the models; paginated in Format B."""
    inference = exchange.context.inference
    listed = await inference.ListModels(ListModelsRequest(), metadata=rpc_metadata(exchange))
    match _api_format(exchange):
        case ApiFormat.OPENAI:
            body = openai.render_model_list(listed.models)
        case ApiFormat.ANTHROPIC:
            body = anthropic.render_model_list(listed.models, exchange.query)
        case ApiFormat.GOOGLE:
            body = gemini.render_model_list(listed.models, exchange.query)
    return JsonResponse(body)


async def get_model(exchange: Exchange) -> Response:
    """Return a model, by any name that requests accept."""
    inference = exchange.context.inference
    api_format, name = _api_format(exchange), exchange.path_values["model"]
    if api_format is ApiFormat.GOOGLE:
        name = gemini.model_name(name)
    get_request = GetModelRequest(name=name)
    response = await inference.GetModel(get_request, metadata=rpc_metadata(exchange))
    match api_format:
        case ApiFormat.OPENAI:
            body = openai.render_model(response.model)
        case ApiFormat.ANTHROPIC:
            body = anthropic.render_model(response.model)
        case ApiFormat.GOOGLE:
            body = gemini.render_model(response.model)
    return JsonResponse(body)


def _api_format(exchange: Exchange) -> ListFormat:
    return credentials.list_format(exchange.headers, credentials.rules_for(exchange.path))


_PAGE = (
    query_parameter(
        "limit", {"type": "integer", "minimum": 1, "maximum": 1000}, "Anthropic format only."
    ),
    query_parameter("after_id", STRING, "Anthropic format only; not together with `before_id`."),
    query_parameter("before_id", STRING, "Anthropic format only; not together with `after_id`."),
)
_GOOGLE_PAGE = (
    query_parameter("pageSize", {"type": "integer", "minimum": 1, "maximum": 1000}),
    query_parameter("pageToken", STRING, "The `nextPageToken` of the previous page."),
)
_MODEL = path_parameter("model", NAME, "Any model name that requests accept; may contain slashes.")


def _endpoints(
    prefix: str, name: str, page: Sequence[JsonObject] = _PAGE
) -> Iterator[EndpointSpec]:
    yield EndpointSpec(
        method="GET",
        path=f"{prefix}/models",
        handler=list_models,
        operation_id=f"list{name}Models",
        summary="List the models available to the caller",
        parameters=page,
        answer=Answer("The models"),
    )
    yield EndpointSpec(
        method="GET",
        path=f"{prefix}/models/{{model:.+}}",
        handler=get_model,
        operation_id=f"get{name}Model",
        summary="Get a model",
        parameters=[_MODEL],
        answer=Answer("The model"),
    )


ENDPOINTS = (
    *_endpoints("/beta/v1", ""),
    *_endpoints("/coding/v1", "Coding"),
    *_endpoints("/v1beta", "Google", _GOOGLE_PAGE),
)
