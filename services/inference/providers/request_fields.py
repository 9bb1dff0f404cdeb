"""Fields of a request that are unknown to the canonical request, on their way to a provider. Pure.

They are passed through to a provider of the dialect that they are written in, unless they refer to
something stored there. For other providers they are dropped, or the request is refused if one of
them is required.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, Protocol

import orjson

from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_ANTHROPIC,
    DIALECT_RESPONSES,
    DIALECT_UNSPECIFIED,
    Dialect,
    Message,
    Opaque,
)
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool
from services.common.errors import GatewayError, invalid, unsupported
from services.common.text.texts import printable
from services.inference.providers.base import Call
from services.inference.providers.opaque_json import (
    Json,
    as_checked,
    read_object,
    unknown_paths,
    value_at,
)
from services.inference.request.stored_references import find_reference, is_stored_address

# APIs by their dialects, whose tools other providers lack.
_APIS = {DIALECT_ANTHROPIC: "Anthropic's messages", DIALECT_RESPONSES: "OpenAI's responses"}
_CACHE_OPTIONS = "prompt_cache_options"
_CACHE_FIELDS = frozenset({"cache_control", "function.cache_control", "prompt_cache_breakpoint"})
_MAX_TYPE = 64  # characters of a tool's type in an error
_STORE = "store"
# Anthropic's comparison of a request with an earlier one; coding agents ask for it.
_DIAGNOSTICS = "diagnostics"
# Path of a dropped billing line.
BILLING_LINE = "messages[].has_billing_line"


class ServerRules(Protocol):
    """The rules of what a provider's server may be sent.

    Attributes:
        pass_stateful: whether callers may refer to objects stored at the provider.
        fetches_urls: whether it fetches media by URL.
    """

    @property
    def pass_stateful(self) -> bool:
        """See the class."""

    @property
    def fetches_urls(self) -> bool:
        """See the class."""


class Rules(NamedTuple):
    """Rules of a server without others; see `ServerRules`."""

    pass_stateful: bool = False
    fetches_urls: bool = False


class RequestFields:
    """Decides which parts of a call's request a provider is sent; base class of the adapters' own.

    Paths are those of `services.inference.request.paths`. Since fields repeat in a long
    conversation, dropped ones are reported below `messages[]`, without an index.

    Args:
        call: the call; dropped fields are added to `call.dropped`.
        server: what the provider's server may be sent; also an attribute.

    Attributes:
        dialect: the dialect of the provider's API; DIALECT_UNSPECIFIED for any other.
        is_native: whether the request was written in that dialect, so that unknown fields are
            passed through.
        refused_fields: fields that the model rejects, as named by
            `services.inference.learned.refusals`.
    """

    dialect: Dialect.ValueType = DIALECT_UNSPECIFIED

    server: ServerRules

    def __init__(self, call: Call, server: ServerRules) -> None:
        self.is_native = call.request.dialect == self.dialect != DIALECT_UNSPECIFIED
        self.server = server
        self.refused_fields = call.refused_fields
        self._call = call

    @property
    def takes_marks(self) -> bool:
        """Whether marks of another dialect's prompt cache have a counterpart at the provider."""
        return True

    def drop(self, path: str) -> None:
        """Report the field at `path` as dropped: the provider has no counterpart."""
        self._call.drop(path)

    def adapt(self, path: str) -> None:
        """Report the part at `path` as sent as text."""
        self._call.adapt(path)

    def native_fields(
        self, opaque: Opaque, path: str, dropped_as: str = "", *, is_part: bool = False
    ) -> Json:
        """Return the fields of an opaque object if they are of the provider's dialect, else {}.

        Args:
            opaque: the object; may be empty.
            path: the object's path.
            dropped_as: path below which dropped fields are reported; `path` if empty.
            is_part: see `find_reference`.

        Raises:
            GatewayError: unsupported, for a required field of another dialect; invalid, as
                `checked_object`.
        """
        if not opaque.json:
            return {}
        if not self.is_native_opaque(opaque):
            self.leave_out(opaque, path, dropped_as)
            return {}
        return self.checked_object(opaque.json, path, is_part=is_part)

    def own_value(
        self, opaque: Opaque, path: str, content: str, *, approvals: Collection[str] = ()
    ) -> Json | orjson.Fragment:
        """Return an opaque object unchanged, if it is of the provider's dialect.

        Args:
            opaque: the object.
            path: the object's path.
            content: a description of the object, for the error.
            approvals: see `find_reference`.

        Raises:
            GatewayError: unsupported, if it is of another one; invalid, as `checked_object`.
        """
        if not self.is_native_opaque(opaque):
            raise self.unsupported(path, content)
        return as_checked(opaque.json, self.checked_object(opaque.json, path, approvals=approvals))

    def checked_object(
        self,
        json: bytes,
        path: str,
        *,
        is_part: bool = False,
        approvals: Collection[str] = (),
    ) -> Json:
        """Parse the JSON object at `path`; see `find_reference` for the other arguments.

        Raises:
            GatewayError: invalid, if it is not an object or refers to something stored at the
                provider, unless callers may do so.
        """
        fields = read_object(json, path)
        if not self.server.pass_stateful:
            place = find_reference(fields, is_part=is_part, approvals=approvals)
            if place is not None:
                raise self.stored_object_error(f"{path}.{place}")
        return fields

    def check_address(self, url: str, path: str) -> None:
        """Check the address of a medium that the provider is to fetch.

        Raises:
            GatewayError: invalid, for a medium stored at the provider, unless allowed.
        """
        if not self.server.pass_stateful and is_stored_address(url):
            raise self.stored_object_error(path)

    def check_stored(self, path: str) -> None:
        """Check that callers may refer to something stored at the provider, such as a file.

        The gateway's own files have already been replaced by their content.

        Raises:
            GatewayError: invalid, unless allowed.
        """
        if not self.server.pass_stateful:
            raise self.stored_object_error(path)

    def native_request_fields(self, extra: Opaque, *, but: Collection[str]) -> Json:
        """Return the fields of a request's `extra` that are not null; {} if of another dialect.

        Args:
            extra: the fields; may be empty.
            but: names of fields to leave out.

        Raises:
            GatewayError: as `native_fields`.
        """
        if not self.is_native_opaque(extra):
            self.leave_out(extra, "extra")
            return {}
        read = read_object(extra.json, "extra").items()
        fields = {name: value for name, value in read if value is not None and name not in but}
        if not self.server.pass_stateful:
            self._leave_out_optional(fields)
            place = find_reference(fields)
            if place is not None:
                raise self.stored_object_error(f"extra.{place}")
        return fields

    def _leave_out_optional(self, fields: Json) -> None:
        """Leave out references to stored objects on which no answer depends; report them."""
        if fields.get(_STORE):
            # The caller could read it with the operator's key alone.
            fields[_STORE] = False
            self.drop(f"extra.{_STORE}")
        diagnostics = fields.get(_DIAGNOSTICS)
        if isinstance(diagnostics, dict) and find_reference(diagnostics) is not None:
            del fields[_DIAGNOSTICS]
            self.drop(f"extra.{_DIAGNOSTICS}")

    def is_native_opaque(self, opaque: Opaque) -> bool:
        """Return whether an opaque object is written in the provider's dialect."""
        return opaque.dialect == self.dialect != DIALECT_UNSPECIFIED

    def leave_out(
        self, opaque: Opaque, path: str, dropped_as: str = "", *, read: Collection[str] = ()
    ) -> Json:
        """Report the fields of an opaque object as dropped; see `native_fields`.

        Args:
            opaque: the object; may be empty.
            path: the object's path.
            dropped_as: path below which dropped fields are reported; `path` if empty.
            read: names of fields that are not dropped.

        Returns:
            The parsed object.

        Raises:
            GatewayError: unsupported, for a required field; invalid, if the JSON is not an object.
        """
        if not opaque.json:
            return {}
        fields = read_object(opaque.json, path)
        for name in opaque.required:
            if name not in read and value_at(fields, name) is not None:
                raise self.unsupported(f"{path}.{name}", f"`{name}`")
        covered: Iterable[str] = opaque.covered_paths
        if not self.takes_marks:
            covered = [one for one in covered if not _is_cache_field(one)]
        for name in unknown_paths(fields, covered):
            if name not in read:
                self.drop(f"{dropped_as or path}.{name}")
        return fields

    def accepted_tools(self, request: GenerateRequest) -> Iterator[tuple[str, Tool]]:
        """Yield the tools to send, each with its path; drop the others.

        Dropped tools are optional and written in another dialect.
        """
        for index, tool in enumerate(request.tools):
            path = f"tools[{index}]"
            if (
                tool.opaque
                and is_optional_tool(tool, request)
                and not self.is_native_opaque(tool.extra)
            ):
                self.drop(path)
            else:
                yield path, tool

    def accepted_fields(self, fields: Json, holder: str, dropped_as: str) -> Json:
        """Return the fields of an object that the model does not reject; drop the others.

        Args:
            fields: the object.
            holder: the prefix of their names in `refused_fields`.
            dropped_as: path below which dropped fields are reported.
        """
        refused_fields = self.refused_fields
        if not refused_fields:
            return fields
        refused = {
            name for name in fields if name in refused_fields or holder + name in refused_fields
        }
        for name in refused:
            self.drop(f"{dropped_as}.{name}")
        return {name: value for name, value in fields.items() if name not in refused}

    def system_prompt(self, message: Message) -> Message:
        """Return a system message without its billing line."""
        if not (message.has_billing_line and message.blocks and message.blocks[0].text):
            return message
        self.drop(BILLING_LINE)
        prompt = Message()
        prompt.CopyFrom(message)
        prompt.has_billing_line = False
        text = prompt.blocks[0].text.partition("\n")[2]
        if text:
            prompt.blocks[0].text = text
        else:
            del prompt.blocks[0]
        return prompt

    def unsupported(self, path: str, content: str) -> GatewayError:
        """Return the error for a part of the request that the provider does not support."""
        return unsupported(path, f"{path}: this model's provider does not support {content}")

    def drop_mark(self, path: str, *extras: Opaque) -> None:
        """Report the `cache_control` at `path` as dropped, unless it is in fields of the caller's.

        Those are sent, or reported by `leave_out`.

        Args:
            path: of the mark.
            extras: the unknown fields that it may have been read from.
        """
        is_left = self.is_native or not self.takes_marks
        if not (is_left and any(_has_mark(extra) for extra in extras)):
            self.drop(path)

    def own_tool(self, opaque: Opaque, path: str) -> Json | orjson.Fragment:
        """Return a tool that is no function unchanged, if it is of the provider's dialect.

        Raises:
            GatewayError: unsupported, if it is of another one; invalid, as `checked_object`.
        """
        if not self.is_native_opaque(opaque):
            raise self.unsupported_tool(opaque, path)
        return as_checked(opaque.json, self.checked_object(opaque.json, path))

    def unsupported_tool(self, opaque: Opaque, path: str) -> GatewayError:
        """Return the error for a tool of another dialect, with its type and what to use."""
        kind = str(read_object(opaque.json, path).get("type") or "")
        content = f"tools of the type {printable(kind[:_MAX_TYPE])}" if kind else "this tool"
        instead = "a function (a tool with a name and a schema) that you run yourself"
        if api := _APIS.get(opaque.dialect):
            instead = f"a model of a provider of {api}, or {instead}"
        return unsupported(
            path, f"{path}: this model's provider does not support {content}; use {instead}"
        )

    def stored_object_error(self, path: str) -> GatewayError:
        """Return the error for a reference to an object stored at the provider."""
        return stored_object_error(self._call.target.provider, path)


def stored_object_error(provider: str, path: str) -> GatewayError:
    """Return the error for a reference to an object stored at a provider.

    All callers of the gateway share one account there.
    """
    return invalid(
        path,
        f"{path}: refers to an object stored at the provider {provider}, whose account all "
        "callers share; leave it out, or ask the operator for pass_stateful = true in "
        f"[providers.{provider}]",
    )


def _has_mark(extra: Opaque) -> bool:
    """Return whether a `cache_control` has been read from a field among the unknown ones."""
    return any(map(_is_cache_field, extra.covered_paths))


def _is_cache_field(path: str) -> bool:
    """Return whether a field of OpenAI's dialects is read as a mark of the prompt cache."""
    return path in _CACHE_FIELDS or path.partition(".")[0] == _CACHE_OPTIONS


def is_optional_tool(tool: Tool, request: GenerateRequest) -> bool:
    """Return whether a tool may be left out: it is optional, and not the chosen tool."""
    return tool.optional and not (tool.name and request.tool_choice.name == tool.name)
