"""Select the proxy for a server, by the usual environment variables."""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.request import getproxies, proxy_bypass

from yarl import URL

from services.common.http.origins import Origin, origin_of


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy.

    Attributes:
        origin: the proxy's origin.
        authorization: value of the Proxy-Authorization header, or "".
    """

    origin: Origin
    authorization: str

    @property
    def fields(self) -> str:
        """Header lines for the proxy, added to every request."""
        return f"proxy-authorization: {self.authorization}\r\n" if self.authorization else ""


class Proxies:
    """The proxies of a process: `http_proxy`, `https_proxy` and `all_proxy`, except for `no_proxy`.

    Args:
        addresses: proxies by scheme; those of the environment when None.
        bypasses: returns whether a host is reached without a proxy.
    """

    def __init__(
        self,
        addresses: Mapping[str, str] | None = None,
        bypasses: Callable[[str], bool] = lambda host: bool(proxy_bypass(host)),
    ) -> None:
        self._addresses = getproxies() if addresses is None else addresses
        self._bypasses = bypasses
        # Cached: searching the environment takes time for each request, and there are few servers.
        self._known: dict[Origin, Proxy | None] = {}

    def before(self, origin: Origin) -> Proxy | None:
        """Return the proxy for a server, or None.

        Proxies are reached by plain HTTP; one with an https URL is ignored.
        """
        if origin not in self._known:
            self._known[origin] = self._find(origin)
        return self._known[origin]

    def _find(self, origin: Origin) -> Proxy | None:
        scheme = "https" if origin.is_secure else "http"
        address = self._addresses.get(scheme) or self._addresses.get("all")
        if not address or self._bypasses(f"{origin.host}:{origin.port}"):
            return None
        url = URL(address if "://" in address else f"http://{address}")
        if url.scheme != "http" or not url.host:
            return None
        return Proxy(origin_of(url), _basic(url))


def _basic(url: URL) -> str:
    if url.user is None:
        return ""
    pair = f"{url.user}:{url.password or ''}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"
