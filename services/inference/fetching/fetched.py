"""What a fetch brings."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Fetched:
    """What an address holds.

    Attributes:
        url: where it was in the end, after redirects.
        content: its bytes, unpacked.
        mime_type: as its server says, in lower case and without parameters; may be empty.
        charset: as its server says; may be empty.
        name: the file name in its `content-disposition` or path; may be empty.
    """

    url: str
    content: bytes
    mime_type: str
    charset: str
    name: str


class Fetches(Protocol):
    """Fetches addresses that callers and models name."""

    async def fetch(self, url: str, *, at_most: int) -> Fetched:
        """Return what an address holds, if it has no more than `at_most` bytes.

        Raises:
            GatewayError: invalid_request, when the address is not http or https, is not
                public, has too many redirects, is refused by its server (4xx), or holds
                more; upstream_timeout, upstream_connection or upstream_error, when it cannot
                be had. The message names no path of the request (the caller adds it) and
                tells nothing of private networks.
        """
        ...
