"""What the gateway expects of whoever reads pages of the web."""

from collections.abc import Sequence
from typing import Protocol


class ReadPage(Protocol):
    """A page that was read, such as `pages.Page`."""

    @property
    def url(self) -> str:
        """Where it was found, after redirects."""

    @property
    def title(self) -> str:
        """Its title; may be empty."""

    @property
    def text(self) -> str:
        """Its main text; may be empty."""

    @property
    def mime_type(self) -> str:
        """The type of what was fetched; may be empty."""

    @property
    def is_cut(self) -> bool:
        """Whether there is more text than this."""


class Reads(Protocol):
    """Reads pages of the web, such as `pages.Pages`."""

    async def read(
        self,
        url: str,
        *,
        max_characters: int,
        allowed_domains: Sequence[str],
        blocked_domains: Sequence[str],
    ) -> ReadPage:
        """Return the page at an http or https address.

        Args:
            url: the address.
            max_characters: of its text.
            allowed_domains: where it is, also after redirects, when given; see `domains`.
            blocked_domains: where it is not.

        Raises:
            GatewayError: the page cannot be had (invalid_request, not_found and upstream
                reasons), is too large (too_large) or of a format that nobody reads
                (unsupported). The message tells nothing of private networks.
        """
        ...
