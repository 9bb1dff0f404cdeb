"""What a translation knows of the caller and the server: whose words, and what may go on."""

from dataclasses import dataclass
from typing import Any

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Opaque
from services.common.errors import GatewayError, invalid, unsupported
from services.inference.providers.base import Call
from services.inference.providers.openai import shaping

Json = dict[str, Any]
Part = Json | orjson.Fragment  # of a message's content

# What a dialect calls fields of the canonical request, where names differ.
_NAMES = {
    conversation_pb2.DIALECT_OPENAI: {
        "end_user": "user",
        "thinking.effort": "reasoning_effort",
        "tool_choice.disable_parallel_tool_use": "parallel_tool_calls",
    },
    conversation_pb2.DIALECT_ANTHROPIC: {
        "end_user": "metadata.user_id",
        "betas": "anthropic-beta",
        "thinking.effort": "output_config.effort",
    },
}


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


class Caller:
    """The caller's side of one call: how fields are named to them, and what was dropped."""

    def __init__(self, call: Call, server: Server) -> None:
        self.dialect = call.request.dialect
        self.speaks_openai = self.dialect == conversation_pb2.DIALECT_OPENAI
        self.speaks_anthropic = self.dialect == conversation_pb2.DIALECT_ANTHROPIC
        self.server = server
        self.without = call.without
        # What the caller's own dialect calls the thoughts of a message.
        self.thoughts = "content[].thinking" if self.speaks_anthropic else "reasoning_content"
        self._names = _NAMES.get(self.dialect, {})
        self._tool_names = call.tool_names
        self._dropped = call.dropped
        self._told = set(call.dropped)

    def drop(self, path: str) -> None:
        """Note the field at `path` as dropped: the provider has nothing for it.

        In a long conversation fields repeat, so paths there name no single place.
        """
        path = self._names.get(path, path)
        if path not in self._told:
            self._told.add(path)
            self._dropped.append(path)

    def tool_name(self, given: str) -> str:
        """Return the name that the server is to know a tool by, and note it where it differs."""
        if self.speaks_openai:
            return given
        name = shaping.tool_name(given)
        if name != given:
            self._tool_names[name] = given
        return name

    def own_fields(self, opaque: Opaque, path: str, told_as: str) -> Json:
        """Return the fields of an opaque object that are OpenAI's; tell those that are not.

        `path` is that of the object, for failures; `told_as` the one that dropped
        fields are told below.
        """
        if not opaque.json:
            return {}
        fields = read_object(opaque.json, path)
        if opaque.dialect == conversation_pb2.DIALECT_OPENAI:
            self.check_state(opaque.json, path)
            return fields
        for name, value in fields.items():
            if value is not None:
                self.drop(f"{told_as}.{name}")
        return {}

    def taken(self, fields: Json, told_as: str) -> Json:
        """Return the fields of an object that the model has not refused, and drop the others."""
        without = self.without
        if not without:
            return fields
        refused = {name for name in fields if name in without or f"{told_as}.{name}" in without}
        for name in refused:
            self.drop(f"{told_as}.{name}")
        return {name: value for name, value in fields.items() if name not in refused}

    def own_value(self, opaque: Opaque, path: str, what: str) -> orjson.Fragment:
        """Return an opaque object as it is, if it is OpenAI's.

        Raises:
            GatewayError: unsupported, when it is not.
        """
        if opaque.dialect != conversation_pb2.DIALECT_OPENAI:
            raise self.unsupported(path, what)
        self.check_state(opaque.json, path)
        return fragment(opaque.json, path)

    def check_state(self, json: bytes, path: str) -> None:
        """Refuse JSON that names a file kept at the provider, unless that is allowed."""
        if b'"file_id"' in json and not self.server.pass_stateful:
            raise self.kept_at_provider(path)

    def check_file(self, path: str) -> None:
        """Refuse the id of a file kept at the provider, unless that is allowed.

        The gateway's own files have been put in their places before.
        """
        if not self.server.pass_stateful:
            raise self.kept_at_provider(path)

    def kept_at_provider(self, path: str) -> GatewayError:
        """Refuse a name of something kept at the provider, where all share one account."""
        return invalid(
            path,
            f"{path}: names something kept at the provider {self.server.name}, which callers of "
            "this gateway may not (the provider's setting pass_stateful would let them)",
        )

    def unsupported(self, path: str, what: str) -> GatewayError:
        """Refuse a part of the request that the provider cannot be sent."""
        return unsupported(path, f"{path}: the provider {self.server.name} cannot take {what}")


def read_object(json: bytes, path: str) -> Json:
    """Read the JSON object given at `path`.

    Raises:
        GatewayError: invalid, when it is something else.
    """
    try:
        value = orjson.loads(json)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise invalid(path, f"{path}: a JSON object is needed")
    return value


def fragment(json: bytes, path: str) -> orjson.Fragment:
    """Return the JSON object given at `path`, to be written byte for byte.

    Raises:
        GatewayError: invalid, when it is something else.
    """
    read_object(json, path)
    return orjson.Fragment(json)
