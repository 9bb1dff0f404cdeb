"""Requests as exchanges, and checks of their heads that apply to every path."""

from aiohttp import HttpVersion11, hdrs
from aiohttp.http import RawRequestMessage
from aiohttp.streams import StreamReader

from facade.context import Context
from facade.http.exchange import ClientConnection, Exchange
from facade.http_errors import HttpExchangeError
from services.common.errors import invalid

# Names are in the spelling of the error message.
_CREDENTIALS = ("Authorization", "x-api-key")


def exchange_of(
    message: RawRequestMessage,
    content: StreamReader,
    context: Context,
    connection: ClientConnection,
) -> Exchange:
    """Return the exchange of a request that aiohttp has parsed; its route is not known yet."""
    url = message.url
    if url.absolute:
        # The target may be an absolute URL, for any host (RFC 9112, section 3.2.2).
        url = url.relative()
    headers = message.headers
    expect = None
    if hdrs.EXPECT in headers:
        expect = ",".join(headers.getall(hdrs.EXPECT)).strip().lower()
    return Exchange(
        context,
        connection,
        message.method,
        url.path,
        "unknown",
        headers,
        None,
        content,
        url=url,
        is_http_1_1=message.version >= HttpVersion11,
        keep_alive=not message.should_close,
        expect=expect,
    )


def check_head(exchange: Exchange) -> None:
    """Reject a head that the gateway does not support; plain requests need no such check.

    Raises:
        GatewayError: 400 for a repeated credential and for a transfer coding other than chunked,
            415 for a body that is encoded, 417 for an expectation other than 100-continue.
    """
    headers = exchange.headers
    for name in _CREDENTIALS:
        if len(exchange.header_lines(name)) > 1:
            raise invalid(name, f"{name}: duplicate header; send it once")
    if hdrs.CONTENT_ENCODING in headers:
        _check_content_encoding(exchange.header_lines(hdrs.CONTENT_ENCODING))
    if hdrs.TRANSFER_ENCODING in headers:
        _check_transfer_encoding(headers[hdrs.TRANSFER_ENCODING])
    if exchange.expect not in (None, "100-continue"):
        raise HttpExchangeError(417, "expectation_failed", "Expect: must be 100-continue", "Expect")


def _check_content_encoding(lines: list[str]) -> None:
    codings = {coding.strip().lower() for line in lines for coding in line.split(",")}
    if codings - {"", "identity"}:
        raise HttpExchangeError(
            415,
            "unsupported_content_encoding",
            "Content-Encoding: must be identity; send the body uncompressed and omit the header",
            "Content-Encoding",
        )


def _check_transfer_encoding(codings: str) -> None:
    if codings.strip().lower() != "chunked":
        raise HttpExchangeError(
            400,
            "unsupported_transfer_encoding",
            "Transfer-Encoding: must be chunked",
            "Transfer-Encoding",
        )
