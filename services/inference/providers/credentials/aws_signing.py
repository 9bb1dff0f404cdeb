"""Signatures of requests to AWS (Signature Version 4), made by botocore."""

import asyncio
from collections.abc import Sequence
from typing import Any

from services.inference.providers.credentials.aws import Keys
from services.inference.providers.credentials.renewal import RenewedCredentials

SERVICE = "bedrock"
# Bodies above this size are hashed in a thread: 1 MB takes up to 4 ms.
_LARGE_BYTES = 1 << 20


class RequestSigner:
    """Signs requests with the current credentials; see `protocols.Authorize`.

    Args:
        credentials: the credentials.
        region: such as `us-east-1`.
    """

    covers_body = True
    # Signatures are of one request; the keys themselves are not sent.
    secrets: Sequence[str] = ()

    def __init__(self, credentials: RenewedCredentials[Keys], region: str) -> None:
        self._credentials = credentials
        self._region = region

    async def headers(self, method: str, url: str, body: bytes) -> Sequence[tuple[str, str]]:
        """Return the headers that authorize a request.

        Args:
            method: such as `POST`.
            url: the URL as it is sent.
            body: the body.

        Raises:
            UpstreamError: there are no credentials.
        """
        keys = await self._credentials.current()
        if len(body) > _LARGE_BYTES:
            return await asyncio.to_thread(signed_headers, keys, self._region, method, url, body)
        return signed_headers(keys, self._region, method, url, body)


def signed_headers(
    keys: Keys, region: str, method: str, url: str, body: bytes
) -> Sequence[tuple[str, str]]:
    """Return the headers of a signed request; the header `host` is signed with them."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    request: Any = AWSRequest(method=method, url=url, data=body)
    SigV4Auth(keys, SERVICE, region).add_auth(request)
    return [(name.lower(), value) for name, value in request.headers.items()]
