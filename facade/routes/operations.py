"""Endpoints for whoever runs the gateway: health, metrics, and its own description."""

import ipaddress

import grpc
from aiohttp import web
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from facade import openapi
from facade.context import CONTEXT
from facade.problems import HttpProblem

_READY_TIMEOUT_S = 2.0


async def healthz(request: web.Request) -> web.Response:
    """Say that this process runs."""
    return web.json_response({"status": "ok"})


async def base(request: web.Request) -> web.Response:
    """Return nothing, well: clients ask so whether they reach the base address they were given."""
    return web.Response()


async def readyz(request: web.Request) -> web.Response:
    """Say whether requests can be served: 200, or 503 while the services do not answer.

    With `?verbose` it names the state of the services, and the models that are left alone
    because they keep failing, on loopback alone.
    """
    verbose = "verbose" in request.query
    if verbose:
        _check_reader(request)
    health = health_pb2_grpc.HealthStub(request.app[CONTEXT].channel)
    try:
        answer = await health.Check(
            health_pb2.HealthCheckRequest(), timeout=_READY_TIMEOUT_S, wait_for_ready=True
        )
        state = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status).lower()
    except grpc.aio.AioRpcError as error:
        state = error.code().name.lower()
    ready = state == "serving"
    body: dict[str, object] = {"status": "ready" if ready else "not ready"}
    if verbose:
        body["services"] = state
        body["breakers"] = _breakers(request.app[CONTEXT].registry)
    return web.json_response(body, status=200 if ready else 503)


async def metrics(request: web.Request) -> web.Response:
    """Show the counters of all processes, in Prometheus' text format."""
    _check_reader(request)
    body = generate_latest(request.app[CONTEXT].registry)
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


async def openapi_document(request: web.Request) -> web.Response:
    """Give the OpenAPI document."""
    return web.Response(body=openapi.document(), content_type="application/json")


async def docs(request: web.Request) -> web.Response:
    """Give a page that shows the OpenAPI document."""
    return web.Response(text=openapi.page(), content_type="text/html")


def _breakers(registry: CollectorRegistry) -> dict[str, str]:
    """Give the models whose breaker is not closed, as the services count them."""
    return {
        f"{sample.labels['provider']}/{sample.labels['model']}": (
            "open" if sample.value == 1 else "half_open"
        )
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "gateway_breaker_open" and sample.value
    }


def _check_reader(request: web.Request) -> None:
    """Refuse a reader that is neither on this machine nor where the operator allows it."""
    address = ipaddress.ip_address(request.remote or "0.0.0.0")
    allowed = request.app[CONTEXT].settings.server.metrics_host
    if address.is_loopback or (allowed and address in ipaddress.ip_network(allowed, strict=False)):
        return
    raise HttpProblem(
        403,
        "permission_denied",
        f"{request.path} answers on loopback; server.metrics_host allows another reader",
    )
