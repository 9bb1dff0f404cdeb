"""Origins of URLs; connections are shared between requests of the same origin."""

from typing import NamedTuple

from yarl import URL


class Origin(NamedTuple):
    """A server.

    Attributes:
        host: its name or IP address, without brackets.
        port: its port.
        is_secure: whether TLS is used.
    """

    host: str
    port: int
    is_secure: bool

    @property
    def authority(self) -> str:
        """Host and port for the Host header (RFC 9110, section 7.2)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_secure else 80) else f"{host}:{self.port}"


def origin_of(url: URL) -> Origin:
    """Return the origin of an http or https URL."""
    assert url.raw_host is not None
    assert url.port is not None
    return Origin(url.raw_host, url.port, url.scheme == "https")
