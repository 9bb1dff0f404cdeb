"""The lazy requests of parsed bodies, and some that tests make."""

from collections.abc import Callable, Mapping
from typing import Any

from facade.dialects.parsed_request import ParsedRequest
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.messages.lazy_request import LazyRequest


def lazy_of(parsed: ParsedRequest) -> LazyRequest | None:
    """Return the request if its conversation is sent as its caller wrote it, else None."""
    return parsed.request if isinstance(parsed.request, LazyRequest) else None


class AddingLazyRequest(LazyRequest):
    """A lazy request whose conversation a function adds."""

    def __init__(
        self,
        request: GenerateRequest,
        fields: Mapping[str, object],
        add: Callable[[GenerateRequest], None],
        **options: Any,
    ) -> None:
        super().__init__(request, fields, **options)
        self._add = add

    def add_conversation(self, request: GenerateRequest) -> None:
        """Add the conversation."""
        self._add(request)
