"""The available models, in the format of the credential."""

from aiohttp import web

from facade import credentials
from facade.context import CONTEXT
from facade.credentials import ApiFormat, Format
from facade.dialects import anthropic, openai
from facade.routes.generation import metadata
from gateway.inference.v1.inference_pb2 import GetModelRequest, ListModelsRequest


async def list_models(request: web.Request) -> web.Response:
    """Return the models; paginated in Format B."""
    inference = request.app[CONTEXT].inference
    listed = await inference.ListModels(ListModelsRequest(), metadata=metadata(request))
    match _api_format(request):
        case ApiFormat.OPENAI:
            body = openai.render_model_list(listed.models)
        case ApiFormat.ANTHROPIC:
            body = anthropic.render_model_list(listed.models, request.query)
    return web.Response(body=body, content_type="application/json")


async def get_model(request: web.Request) -> web.Response:
    """Return a model, by any name that requests accept."""
    inference = request.app[CONTEXT].inference
    wanted = GetModelRequest(name=request.match_info["name"])
    response = await inference.GetModel(wanted, metadata=metadata(request))
    match _api_format(request):
        case ApiFormat.OPENAI:
            body = openai.render_model(response.model)
        case ApiFormat.ANTHROPIC:
            body = anthropic.render_model(response.model)
    return web.Response(body=body, content_type="application/json")


def _api_format(request: web.Request) -> Format:
    return credentials.credential_format(request.headers, credentials.rules_for(request.path))
