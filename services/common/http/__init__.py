"""HTTP/1.1 client for requests to providers.

It supports what these require: requests with a complete body
or one that is made in pieces, streamed responses, a connection
pool, TLS, and proxies from the environment. Per request, the clients of libraries take more time
than the rest of this process.

::

    Client              connection pool by origin
    UpstreamConnection  one connection: an asyncio.Protocol with httptools' parser
    Response            the response to one request, read incrementally
    HttpError           base class of the errors
"""

from services.common.http.client import Client
from services.common.http.errors import (
    AddressNotAllowedError,
    ConnectionBrokenError,
    CutOffError,
    HttpError,
    NotHttpError,
    TooLargeError,
)
from services.common.http.fields import fields
from services.common.http.origins import Origin, origin_of
from services.common.http.proxies import Proxies
from services.common.http.request_body import PiecedBody
from services.common.http.response import OnPiece, Response, ResponseBody

__all__ = [
    "AddressNotAllowedError",
    "Client",
    "ConnectionBrokenError",
    "CutOffError",
    "HttpError",
    "NotHttpError",
    "OnPiece",
    "Origin",
    "PiecedBody",
    "Proxies",
    "Response",
    "ResponseBody",
    "TooLargeError",
    "fields",
    "origin_of",
]
