"""A call of a provider that the provider's own batch service makes in place of the gateway.

A request is then served twice: once to write the body that its provider is sent, and once more to
read the answer. Both times it passes through the same functions as any other request; only the
HTTP call to the provider is missing.
"""

from collections.abc import Collection
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple


class RenderedCall(NamedTuple):
    """What a provider is to be sent for a request.

    Attributes:
        provider: the provider's name in the settings.
        model: its name for the model.
        path: the path below its base URL.
        headers: headers of the request, besides those of the provider.
        body: JSON.
    """

    provider: str
    model: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class CallRenderedError(Exception):
    """Error raised in place of a call that is only rendered.

    Attributes:
        path: the path of the call.
        headers: its headers.
        body: its body.
    """

    def __init__(self, path: str, headers: Collection[tuple[str, str]], body: bytes) -> None:
        super().__init__(path)
        self.path = path
        self.headers = tuple(headers)
        self.body = body


@dataclass(slots=True)
class DeferredCall:
    """The call of a provider for the request that the current task serves.

    Attributes:
        answer: the body of the provider's answer; None to render the call.
        provider: the name of the provider that has answered.
        model: its name for the model that has answered.
        rendered: the call, once it has been rendered.
    """

    answer: bytes | None = None
    provider: str = ""
    model: str = ""
    rendered: RenderedCall | None = None

    def answer_to(self, path: str, headers: Collection[tuple[str, str]], body: bytes) -> bytes:
        """Return the answer.

        Raises:
            CallRenderedError: there is none yet.
        """
        if self.answer is None:
            raise CallRenderedError(path, headers, body)
        return self.answer


# The deferred call of the request that the current task serves; unset for nearly all requests.
deferred_call: ContextVar[DeferredCall | None] = ContextVar("deferred_call", default=None)
