"""The endpoints that describe all endpoints: the OpenAPI document, and a page that shows it."""

from collections.abc import Iterable

from facade.endpoint import Answer, EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response, TypedResponse


def with_description(endpoints: Iterable[EndpointSpec]) -> tuple[EndpointSpec, ...]:
    """Return the endpoints, and two more that describe all of them."""

    async def openapi_document(exchange: Exchange) -> Response:
        """Return the OpenAPI document."""
        # Imported on first use, as it takes 0.5 MB.
        from facade.description import openapi

        return JsonResponse(openapi.document(described))

    async def docs(exchange: Exchange) -> Response:
        """Return a page for people that describes the endpoints."""
        from facade.description import api_page

        body = api_page.page(described).encode()
        return TypedResponse(body, "text/html; charset=utf-8", api_page.HEADERS)

    described = (
        *endpoints,
        EndpointSpec(
            method="GET",
            path="/openapi.json",
            handler=openapi_document,
            operation_id="openapi",
            summary="Get this document",
            answer=Answer("The state"),
        ),
        EndpointSpec(method="GET", path="/docs", handler=docs),
    )
    return described
