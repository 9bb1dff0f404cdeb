"""Fields unknown to the canonical request, for servers of OpenAI's dialect. Pure."""

from dataclasses import dataclass
from functools import cached_property

import orjson

from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI
from services.common.errors import GatewayError, unsupported
from services.inference.learned.refusals import OF_BLOCKS
from services.inference.providers.opaque_json import Json, read_object
from services.inference.providers.openai import sanitizing
from services.inference.providers.openai.cache_breakpoints import (
    BREAKPOINT,
    OPTIONS,
    has_breakpoints,
)
from services.inference.providers.request_fields import RequestFields
from services.inference.providers.schemas import function_schema, lacks_items

Part = Json | orjson.Fragment  # of a message's content


@dataclass(frozen=True, slots=True)
class Server:
    """Features of a server of OpenAI's dialect.

    Attributes:
        name: the provider's name in the settings, for messages.
        newest: whether it supports OpenAI's newest message formats; other servers support fewer,
            older ones.
        fetches_urls: whether it fetches images by URL.
        pass_stateful: whether callers may refer to objects stored at the provider.
    """

    name: str
    newest: bool
    fetches_urls: bool
    pass_stateful: bool


class OpenAIFields(RequestFields):
    """Decides which parts of a call's request a server is sent; see `RequestFields`."""

    dialect = DIALECT_OPENAI
    server: Server
    has_breakpoints = False  # whether any has been written

    @cached_property
    def takes_marks(self) -> bool:
        """Whether marks of another dialect's prompt cache are sent, as breakpoints."""
        names = {BREAKPOINT, OPTIONS, OF_BLOCKS + BREAKPOINT}
        is_known = not self.is_native and has_breakpoints(self._call.target.upstream)
        return is_known and names.isdisjoint(self.refused_fields)

    def tool_name(self, callers_name: str) -> str:
        """Return the tool's name for the server; record it if it differs."""
        if self.is_native:
            return callers_name
        name = sanitizing.tool_name(callers_name)
        if name != callers_name:
            self._call.tool_names[name] = callers_name
        return name

    def unsupported(self, path: str, content: str) -> GatewayError:
        """Return the error for a part of the request that the provider does not support."""
        return unsupported(
            path, f"{path}: the provider {self.server.name} does not support {content}"
        )


def fragment(json: bytes, path: str) -> orjson.Fragment:
    """Return the JSON object at `path`, to be written byte for byte.

    Raises:
        GatewayError: invalid, if the JSON is not an object.
    """
    read_object(json, path)
    return orjson.Fragment(json)


def parameters_of(json: bytes, path: str, fields: RequestFields) -> Json | orjson.Fragment:
    """Return a function's parameters as OpenAI accepts them; the caller's own are unchanged.

    Raises:
        GatewayError: invalid, if the JSON is not an object.
    """
    # Omitted parameters mean no arguments to OpenAI, and an error to some other servers.
    schema = read_object(json, path) if json else {"type": "object", "properties": {}}
    if fields.is_native and json:
        return orjson.Fragment(json)
    return function_schema(schema, lacks_items=lacks_items(json))
