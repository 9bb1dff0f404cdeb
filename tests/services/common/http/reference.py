"""The library's client behind the face of ours: what one does the other must do."""

from typing import Self

import aiohttp
from yarl import URL

from services.common import http


class ReferenceBody:
    """The body of an answer of aiohttp's."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    @property
    def is_received(self) -> bool:
        return self._response.content.is_eof()

    async def read(self) -> bytes:
        try:
            return await self._response.content.readany()
        except aiohttp.ClientPayloadError as error:
            raise http.CutOffError from error
        except aiohttp.ClientResponseError as error:
            raise http.NotHttpError from error
        except (aiohttp.ClientError, OSError) as error:
            raise http.ConnectionBrokenError from error

    async def deliver(self, on_piece: http.OnPiece) -> bool:
        while piece := await self.read():
            if on_piece(piece):
                return True
        return False

    async def whole(self) -> bytes:
        pieces = []
        while piece := await self.read():
            pieces.append(piece)
        return b"".join(pieces)

    def release(self) -> None:
        self._response.close()

    def close(self) -> None:
        self._response.close()


class ReferenceClient:
    """aiohttp's client."""

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def send(
        self, origin: http.Origin, method: str, target: str, fields: str, body: bytes = b""
    ) -> http.Response:
        scheme = "https" if origin.is_secure else "http"
        lines = [line.split(": ", 1) for line in fields.split("\r\n") if line]
        try:
            response = await self._session.request(
                method,
                URL(f"{scheme}://{origin.authority}{target}", encoded=True),
                data=body,
                headers=dict(lines),
                allow_redirects=False,
            )
        except aiohttp.ClientResponseError as error:
            raise http.NotHttpError from error
        except (aiohttp.ClientError, OSError) as error:
            raise http.ConnectionBrokenError from error
        return http.Response(response.status, response.headers, ReferenceBody(response))
