"""Health and metrics."""

import json
from collections.abc import Mapping

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client import CollectorRegistry

from facade.credentials import BASE_PATHS
from facade.endpoint import Answer, EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import Response, TypedResponse, WholeResponse

_READY_TIMEOUT_S = 1.0


async def healthz(exchange: Exchange) -> Response:
    """Return 200 while the process runs."""
    return _json({"status": "ok"})


async def base(exchange: Exchange) -> Response:
    """Return an empty 200, for clients that test the base URL."""
    return WholeResponse()


async def readyz(exchange: Exchange) -> Response:
    """Return 200 if requests can be served, 503 while the services do not respond."""
    return _readiness(await _state_of_services(exchange), {})


async def readyz_with_details(exchange: Exchange) -> Response:
    """Return whether requests can be served, on the operator's listener.

    With `?verbose` it includes the state of the services and the disk, and the models with an open
    circuit breaker. A disk that is almost full does not make the gateway unready: chats without
    memory, reading and deleting still work.
    """
    state = await _state_of_services(exchange)
    if "verbose" not in exchange.query:
        return _readiness(state, {})
    registry = exchange.context.registry
    details = {"services": state, "storage": _storage(registry), "breakers": _breakers(registry)}
    return _readiness(state, details)


async def metrics(exchange: Exchange) -> Response:
    """Return the metrics of all processes, in Prometheus's text format."""
    # Imported on first use, as it imports an HTTP server of the standard library.
    from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

    body = generate_latest(exchange.context.registry)
    return TypedResponse(body, CONTENT_TYPE_LATEST)


async def _state_of_services(exchange: Exchange) -> str:
    """Return the state of the services in lower case; "serving" if they serve requests."""
    if exchange.context.requests.is_draining:
        return "stopping"
    health = health_pb2_grpc.HealthStub(exchange.context.channel)
    try:
        answer = await health.Check(health_pb2.HealthCheckRequest(), timeout=_READY_TIMEOUT_S)
    except grpc.aio.AioRpcError as error:
        state: str = error.code().name
    else:
        state = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
    return state.lower()


def _readiness(state: str, details: Mapping[str, object]) -> Response:
    ready = state == "serving"
    body = {"status": "ready" if ready else "not ready", **details}
    return _json(body, status=200 if ready else 503)


def _json(body: Mapping[str, object], status: int = 200) -> Response:
    return TypedResponse(
        json.dumps(body).encode(), "application/json; charset=utf-8", status=status
    )


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


ENDPOINTS = (
    *(EndpointSpec(method="HEAD", path=path, handler=base) for path in BASE_PATHS),
    EndpointSpec(
        method="GET",
        path="/healthz",
        handler=healthz,
        operation_id="healthz",
        summary="Check whether the process is running",
        answer=Answer("The state"),
    ),
    EndpointSpec(
        method="GET",
        path="/readyz",
        handler=readyz,
        operation_id="readyz",
        summary="Check whether requests can be served",
        answer=Answer("The state"),
        other_answers={503: Answer("The state")},
    ),
)
# On the operators' own listener.
OPERATORS_ENDPOINTS = (
    EndpointSpec(method="GET", path="/healthz", handler=healthz),
    EndpointSpec(method="GET", path="/readyz", handler=readyz_with_details),
    EndpointSpec(method="GET", path="/metrics", handler=metrics),
)
