"""Checks of request heads that apply to every path, and the `Expect` header."""

from typing import Any, Protocol

from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.streams import StreamReader
from multidict import CIMultiDict, CIMultiDictProxy, istr

from facade.http_errors import HttpError
from services.common.errors import invalid

# Value of the `Expect` header of a request, in lower case.
EXPECT = web.RequestKey("expect", str)
_CREDENTIALS = (hdrs.AUTHORIZATION, istr("x-api-key"))


class _Make(Protocol):
    """Creates a request, as `web.Server.request_factory` does."""

    def __call__(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: Any,
        /,
    ) -> web.BaseRequest: ...


def without_expect(make: _Make) -> _Make:
    """Return a request factory that hides the `Expect` header from aiohttp.

    aiohttp sends 100 Continue before the key is verified, and quotes other expectations in plain
    text responses.
    """

    def make_request(
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: Any,
    ) -> web.BaseRequest:
        if hdrs.EXPECT not in message.headers:
            return make(message, payload, protocol, writer, task)
        headers = CIMultiDict(message.headers)
        expect = ",".join(headers.popall(hdrs.EXPECT))
        message = message._replace(headers=CIMultiDictProxy(headers))
        request = make(message, payload, protocol, writer, task)
        request[EXPECT] = expect.strip().lower()
        return request

    return make_request


def check_head(request: web.BaseRequest) -> None:
    """Reject a head that the gateway does not support; plain requests need no such check.

    Raises:
        GatewayError: 400 for a repeated credential and for a transfer coding other than chunked,
            415 for a body that is encoded, 417 for an expectation other than 100-continue.
    """
    headers = request.headers
    for name in _CREDENTIALS:
        if name in headers and len(headers.getall(name)) > 1:
            raise invalid(name, f"{name}: duplicate header; send it once")
    if hdrs.CONTENT_ENCODING in headers:
        _check_content_encoding(headers.getall(hdrs.CONTENT_ENCODING))
    if hdrs.TRANSFER_ENCODING in headers:
        _check_transfer_encoding(headers[hdrs.TRANSFER_ENCODING])
    if EXPECT in request and request[EXPECT] != "100-continue":
        raise HttpError(417, "expectation_failed", "Expect: must be 100-continue", "Expect")


def _check_content_encoding(lines: list[str]) -> None:
    codings = {coding.strip().lower() for line in lines for coding in line.split(",")}
    if codings - {"", "identity"}:
        raise HttpError(
            415,
            "unsupported_content_encoding",
            "Content-Encoding: must be identity; send the body uncompressed and omit the header",
            "Content-Encoding",
        )


def _check_transfer_encoding(codings: str) -> None:
    if codings.strip().lower() != "chunked":
        raise HttpError(
            400,
            "unsupported_transfer_encoding",
            "Transfer-Encoding: must be chunked",
            "Transfer-Encoding",
        )
