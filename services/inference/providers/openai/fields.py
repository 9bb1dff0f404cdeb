"""Fields without a canonical name in requests to servers of OpenAI's dialect. Pure."""

from dataclasses import dataclass

import orjson

from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI, Opaque
from services.common.errors import GatewayError, invalid, unsupported
from services.inference.providers.base import Call
from services.inference.providers.openai import shaping
from services.inference.providers.request_fields import Json, RequestFields, read_object

Part = Json | orjson.Fragment  # of a message's content


@dataclass(frozen=True, slots=True)
class Server:
    """What one server of OpenAI's dialect takes.

    Attributes:
        name: the provider's name in the settings, for messages.
        newest: whether it knows OpenAI's newest shapes of messages. Others know older and
            shorter ones.
        fetches_urls: whether it fetches images by address.
        pass_stateful: whether callers may name things kept there.
    """

    name: str
    newest: bool
    fetches_urls: bool
    pass_stateful: bool


class OpenAIFields(RequestFields):
    """What of one call's request a server may be sent; see `RequestFields`."""

    dialect = DIALECT_OPENAI

    def __init__(self, call: Call, server: Server) -> None:
        super().__init__(call, pass_stateful=server.pass_stateful, fetches_urls=server.fetches_urls)
        self.server = server

    def tool_name(self, given: str) -> str:
        """Return the name that the server is to know a tool by, and note it where it differs."""
        if self.is_native:
            return given
        name = shaping.tool_name(given)
        if name != given:
            self._call.tool_names[name] = given
        return name

    def own(self, opaque: Opaque, path: str, dropped_as: str = "") -> Json:
        """Return the fields of an opaque object; see `RequestFields.own`."""
        if self.is_own(opaque):
            self.check_json(opaque.json, path)
        return super().own(opaque, path, dropped_as)

    def own_value(self, opaque: Opaque, path: str, what: str) -> orjson.Fragment:
        """Return an opaque object as it is, if it is OpenAI's.

        Raises:
            GatewayError: unsupported, when it is not.
        """
        if not self.is_own(opaque):
            raise self.unsupported(path, what)
        self.check_json(opaque.json, path)
        return fragment(opaque.json, path)

    def check_json(self, json: bytes, path: str) -> None:
        """Refuse JSON that names a file kept at the provider, unless that is allowed."""
        if b'"file_id"' in json and not self.pass_stateful:
            raise self.kept_at_provider(path)

    def check_file(self, path: str) -> None:
        """Refuse the id of a file kept at the provider, unless that is allowed.

        The gateway's own files have been put in their places before.
        """
        if not self.pass_stateful:
            raise self.kept_at_provider(path)

    def kept_at_provider(self, path: str) -> GatewayError:
        """Return the refusal of a name of something kept at the provider."""
        return invalid(
            path,
            f"{path}: names something kept at the provider {self.server.name}, which callers of "
            "this gateway may not (the provider's setting pass_stateful would let them)",
        )

    def unsupported(self, path: str, what: str) -> GatewayError:
        """Return the refusal of a part of the request that the provider cannot be sent."""
        return unsupported(path, f"{path}: the provider {self.server.name} cannot take {what}")


def fragment(json: bytes, path: str) -> orjson.Fragment:
    """Return the JSON object at `path`, to be written byte for byte.

    Raises:
        GatewayError: invalid, when it is something else.
    """
    read_object(json, path)
    return orjson.Fragment(json)
