"""The result and the interface of a fetch."""

from dataclasses import dataclass
from typing import Protocol

from services.common.process.byte_budget import Admit


@dataclass(frozen=True, slots=True)
class Fetched:
    """The content of a fetched URL.

    Attributes:
        url: after redirects.
        content: the decompressed body.
        mime_type: as declared by the server, in lower case and without parameters; may be empty.
        charset: as declared by the server; may be empty.
        name: the file name in its `content-disposition` or path; may be empty.
    """

    url: str
    content: bytes
    mime_type: str
    charset: str
    name: str


class Fetches(Protocol):
    """Fetches URLs given by callers and models."""

    async def fetch(self, url: str, *, at_most: int, admit: Admit | None = None) -> Fetched:
        """Return the content of a URL.

        Args:
            url: the URL.
            at_most: maximum size of the content in bytes.
            admit: called with numbers of bytes, before as many are received; by default
                all are admitted.

        Raises:
            GatewayError: invalid_request, if the URL is not http or https, is not public, has too
                many redirects, is rejected by its server (4xx) or has more content;
                upstream_timeout, upstream_connection or upstream_error if the fetch fails. The
                message names no path of the request (the caller adds it) and reveals nothing about
                private networks. As `admit`.
        """
        ...
