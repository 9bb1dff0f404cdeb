"""The available models, in the format of the credential."""

from facade import credentials
from facade.credentials import ApiFormat, Format
from facade.dialects import anthropic, openai
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
    return JsonResponse(body)


async def get_model(exchange: Exchange) -> Response:
    """Return a model, by any name that requests accept."""
    inference = exchange.context.inference
    wanted = GetModelRequest(name=exchange.path_values["name"])
    response = await inference.GetModel(wanted, metadata=rpc_metadata(exchange))
    match _api_format(exchange):
        case ApiFormat.OPENAI:
            body = openai.render_model(response.model)
        case ApiFormat.ANTHROPIC:
            body = anthropic.render_model(response.model)
    return JsonResponse(body)


def _api_format(exchange: Exchange) -> Format:
    return credentials.credential_format(exchange.headers, credentials.rules_for(exchange.path))
