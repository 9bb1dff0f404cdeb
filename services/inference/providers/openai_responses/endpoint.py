"""Detection of servers without OpenAI's `/responses`, by their error responses."""

import logging
import re
from collections.abc import Callable, Iterable, Mapping

from gateway.errors.v1 import errors_pb2
from services.common.errors import UpstreamError
from services.inference.providers import failures
from services.inference.providers.base import MissingEndpointError

log = logging.getLogger(__name__)

# Words of a 404 that is about an object, such as a model, and not about the path.
_NAMES_SOMETHING = re.compile(
    rb"\bmodels?\b|deployment|Item with id|(?:[Rr]esponse|[Ff]ile|[Cc]onversation) with id"
    rb"|\bresp_|vector.?store|container",
)


class EndpointSupport:
    """Whether one server supports `/responses`.

    Args:
        url: the server's base URL.
        unsupported_urls: base URLs of servers that turned out to lack the endpoint, shared within
            the process; updated here.
    """

    def __init__(self, url: str, unsupported_urls: set[str]) -> None:
        self._url = url
        self._unsupported_urls = unsupported_urls

    @property
    def is_supported(self) -> bool:
        """Whether the server supports the endpoint; True until it answers otherwise."""
        return self._url not in self._unsupported_urls

    def classify(
        self,
        provider: str,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        *,
        secrets: Iterable[str] = (),
        now: Callable[[], float],
    ) -> UpstreamError:
        """Return the error for a response other than 2xx; see `failures.classify`.

        A `MissingEndpointError` if the server does not know the path.
        """
        if not is_about_path(status, body):
            return failures.classify(provider, status, headers, body, secrets=secrets, now=now)
        self._unsupported_urls.add(self._url)
        log.warning("no responses", extra={"provider": provider, "status": status})
        return MissingEndpointError(
            errors_pb2.REASON_MODEL_NOT_FOUND,
            f"the provider {provider} does not support /responses",
            status=status,
        )


def is_about_path(status: int, body: bytes) -> bool:
    """Return whether an error response is about the path, which the server does not know."""
    if status in (405, 501):
        return True
    return status == 404 and _NAMES_SOMETHING.search(body) is None
