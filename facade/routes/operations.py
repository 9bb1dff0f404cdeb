"""Endpoints for operators: health, metrics and the OpenAPI document."""

from collections.abc import Mapping

import grpc
from aiohttp import web
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client import CollectorRegistry

from facade.context import CONTEXT

_READY_TIMEOUT_S = 1.0


async def healthz(request: web.Request) -> web.Response:
    """Return 200 while the process runs."""
    return web.json_response({"status": "ok"})


async def base(request: web.Request) -> web.Response:
    """Return an empty 200, for clients that test the base URL."""
    return web.Response()


async def readyz(request: web.Request) -> web.Response:
    """Return 200 if requests can be served, 503 while the services do not respond."""
    return _readiness(await _state_of_services(request), {})


async def readyz_with_details(request: web.Request) -> web.Response:
    """Return whether requests can be served, on the operator's listener.

    With `?verbose` it includes the state of the services and the disk, and the models with an open
    circuit breaker. A disk that is almost full does not make the gateway unready: chats without
    memory, reading and deleting still work.
    """
    state = await _state_of_services(request)
    if "verbose" not in request.query:
        return _readiness(state, {})
    registry = request.app[CONTEXT].registry
    details = {"services": state, "storage": _storage(registry), "breakers": _breakers(registry)}
    return _readiness(state, details)


async def metrics(request: web.Request) -> web.Response:
    """Return the metrics of all processes, in Prometheus's text format."""
    # Imported on first use, as it imports an HTTP server of the standard library.
    from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

    body = generate_latest(request.app[CONTEXT].registry)
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


async def openapi_document(request: web.Request) -> web.Response:
    """Return the OpenAPI document."""
    # Imported on first use, as it takes 0.5 MB.
    from facade import openapi

    return web.Response(body=openapi.document(), content_type="application/json")


async def docs(request: web.Request) -> web.Response:
    """Return an HTML page for the OpenAPI document."""
    from facade import openapi

    return web.Response(text=openapi.page(), content_type="text/html")


async def _state_of_services(request: web.Request) -> str:
    """Return the state of the services in lower case; "serving" if they serve requests."""
    if request.app[CONTEXT].drain.is_draining:
        return "stopping"
    health = health_pb2_grpc.HealthStub(request.app[CONTEXT].channel)
    try:
        answer = await health.Check(health_pb2.HealthCheckRequest(), timeout=_READY_TIMEOUT_S)
    except grpc.aio.AioRpcError as error:
        state: str = error.code().name
    else:
        state = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
    return state.lower()


def _readiness(state: str, details: Mapping[str, object]) -> web.Response:
    ready = state == "serving"
    body = {"status": "ready" if ready else "not ready", **details}
    return web.json_response(body, status=200 if ready else 503)


def _storage(registry: CollectorRegistry) -> str:
    """Return `low` while the services reject writes for lack of disk space, else `ok`."""
    is_low = any(
        sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "gateway_storage_low"
    )
    return "low" if is_low else "ok"


def _breakers(registry: CollectorRegistry) -> dict[str, str]:
    """Return the models whose circuit breaker is not closed, from the services' metrics."""
    return {
        f"{sample.labels['provider']}/{sample.labels['model']}": (
            "open" if sample.value == 1 else "half_open"
        )
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "gateway_breaker_open" and sample.value
    }
