"""Pages of files: pictures of PDF and DOCX, texts of PPTX and XLSX."""

from facade.endpoint import Answer, EndpointSpec, path_parameter, query_parameter
from facade.http.exchange import Exchange
from facade.http.responses import Response, TypedResponse, WholeResponse
from facade.routes.generation import rpc_metadata
from facade.transfers.downloads import known_tags
from gateway.files.v1.files_pb2 import (
    PAGE_SIZE_FULL,
    PAGE_SIZE_THUMBNAIL,
    GetFilePageRequest,
)
from services.common.errors import invalid
from services.common.text.texts import parse_digits

_SIZES = {"full": PAGE_SIZE_FULL, "thumbnail": PAGE_SIZE_THUMBNAIL}
# More than any file has; the service has the limit.
_MAX_NUMBER = 1_000_000
_MAX_ETAGS = 100
_QUOTED_ETAG_LENGTH = 34
# The page of a file never changes, but the caller may lose the right to see it.
_CACHING = {"Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff"}


async def get_page(exchange: Exchange) -> Response:
    """Return a page of a file."""
    request = _page_request(exchange)
    files = exchange.context.files
    answer = await files.GetFilePage(request, metadata=rpc_metadata(exchange))
    headers = {"ETag": f'"{answer.etag}"', **_CACHING}
    if not answer.HasField("page"):
        return WholeResponse(status=304, headers=headers)
    page = answer.page
    is_text = page.mime_type.startswith("text/")
    return TypedResponse(
        page.content,
        f"{page.mime_type}; charset=utf-8" if is_text else page.mime_type,
        {**headers, "x-gateway-page-count": str(page.page_count)},
    )


def _page_request(exchange: Exchange) -> GetFilePageRequest:
    """Parse the path, query and conditions of a request for a page.

    Raises:
        GatewayError: invalid_request.
    """
    number = parse_digits(exchange.path_values["number"])
    if number is None or not 1 <= number <= _MAX_NUMBER:
        raise invalid("number", "number: must be the number of a page, from 1")
    size = exchange.query.get("size", "full")
    if size not in _SIZES:
        raise invalid("size", "size: must be full or thumbnail")
    tags = known_tags(exchange.headers)
    etags = [tag.strip('"') for tag in tags if len(tag) == _QUOTED_ETAG_LENGTH or tag == "*"]
    return GetFilePageRequest(
        id=exchange.path_values["file_id"],
        number=number,
        size=_SIZES[size],
        known_etags=etags[:_MAX_ETAGS],
    )


# The text of a page of the sheet that the documentation shows.
EXAMPLE = "## Tides\n\n| port | high |\n| --- | --- |\n| Aberdeen | 12:04 |"

ENDPOINTS = (
    EndpointSpec(
        method="GET",
        path="/beta/v1/files/{file_id}/pages/{number}",
        handler=get_page,
        operation_id="getFilePage",
        summary="Get a page of a file: a picture of a PDF's or DOCX's, the text of a slide or "
        "sheet; supports If-None-Match",
        parameters=[
            path_parameter(
                "number",
                {"type": "integer", "minimum": 1},
                "Of the page, slide or sheet; at most `limits.max_shown_pages`.",
            ),
            query_parameter(
                "size",
                {"enum": list(_SIZES), "default": "full"},
                "Sides of a picture of up to 1,568 pixels, or 320; a text of up to 64 KiB, or 2.",
            ),
        ],
        answer=Answer(
            "The page as image/png, image/jpeg or text/markdown; `x-gateway-page-count` is the "
            "number of all pages",
            [{}],
            "*/*",
            examples={"": EXAMPLE},
        ),
        other_answers={304: Answer("Not modified", [])},
    ),
)
