"""What the gateway expects of whoever reads pages of the web."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the web.

    Attributes:
        url: where it was found, after redirects.
        title: its title; may be empty.
        text: its main text.
        media_type: MIME type of what was fetched, without parameters; may be empty.
    """

    url: str
    title: str
    text: str
    media_type: str


class Reads(Protocol):
    """Reads pages of the web."""

    async def read(self, url: str) -> Page:
        """Return the page at an http or https address.

        Raises:
            GatewayError: the page cannot be had (invalid_request, not_found and upstream
                reasons), is too large (too_large) or of a format that nobody reads
                (unsupported). The message tells nothing of private networks.
        """
        ...
