"""The HTTP/1.1 client with which providers are asked.

It knows just what that needs: requests with a whole body, answers of any length read as
they come, connections kept for the next request, TLS, proxies from the environment. A
library's client does more, and takes more time for each request than all the rest of
its way through this process.

::

    Client          keeps idle connections by origin, opens new ones
    Connection      one of them: an asyncio.Protocol over httptools' parser
    Response        the answer to one request, read as it comes
    HttpError       nothing of that worked
"""

from services.inference.http.client import Client
from services.inference.http.connection import Response
from services.inference.http.errors import (
    ConnectionBrokenError,
    CutOffError,
    HttpError,
    NotHttpError,
    TooLargeError,
)
from services.inference.http.fields import fields
from services.inference.http.origins import Origin, origin_of
from services.inference.http.proxies import Proxies

__all__ = [
    "Client",
    "ConnectionBrokenError",
    "CutOffError",
    "HttpError",
    "NotHttpError",
    "Origin",
    "Proxies",
    "Response",
    "TooLargeError",
    "fields",
    "origin_of",
]
