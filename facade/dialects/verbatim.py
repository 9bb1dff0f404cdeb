"""Conversations that are passed on as the caller wrote them: code shared by the dialects. Pure.

`msgspec` checks the form of a conversation in one scan, without building values that are not read:
texts stay bytes of the body, as a JSON string means the same to every parser. Objects are
serialized again from the checked values, so that no other value of a repeated member is passed on.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final, Generic, Protocol, Self, TypeVar

import orjson
from msgspec import DecodeError, Meta, Raw
from msgspec.json import Decoder, encode
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from facade.dialects.paths import SourceMap
from facade.dialects.validation import exact_json, too_deep
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.messages.lazy_request import MAX_SMALL, LazyRequest

NULL: Final = Raw(b"null")
_QUOTE: Final = ord('"')
_EMPTY_SIZE: Final = len(b'""')
# First bytes of white space and of escapes: ASCII's, and those of U+00A0, U+2000 and U+3000 on.
_SPACES: Final = b" \\\xc2\xe1\xe2\xe3"
_FIELDS = Decoder(dict[str, Raw])
_TEXT = Decoder(str)
_ITEMS = Decoder(list[Raw])

Filled = Annotated[str, Meta(min_length=1)]

# Number of cached lists of tools, as agents send the same with every request; bytes of each.
_KEPT_TOOLS: Final = 32
_KEPT_BYTES: Final = 64 << 10
# Number of cached bodies without their conversations, as callers repeat their settings; maximum
# bytes of each; maximum objects and lists in it, which take many times their bytes.
_KEPT_SETTINGS: Final = 256
KEPT_SETTINGS_BYTES: Final = 1024
_KEPT_SETTINGS_NESTED: Final = 32


# A conversation that is passed on as its caller wrote it: the JSON to send by field name, the JSON
# of its parts by field name, and whether only the API of the dialect's author accepts it.
Verbatim = tuple[Mapping[str, object], dict[str, bytes], bool]


class PartialBody(Protocol):
    """A body without its conversation, of a pydantic type."""

    @property
    def settings(self) -> Mapping[str, Any] | None:
        """The fields beside the conversation of a request with tools, if they are plain."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self:
        """Return a copy with other values of some fields."""


_Body = TypeVar("_Body", bound=PartialBody)
_Request = TypeVar("_Request", bound="VerbatimRequest[Any]")


class VerbatimReader(Generic[_Body, _Request]):
    """Reads the bodies of an endpoint whose conversations may be passed on as written."""

    def __init__(
        self,
        partial_body: type[_Body],
        conversation: Sequence[str],
        is_plain: Callable[[_Body], bool],
        verbatim_of: Callable[[Mapping[str, Raw]], Verbatim | None],
        request_type: Callable[..., _Request],
    ) -> None:
        """Create a reader.

        Args:
            partial_body: the type of a body without its conversation. Requests may share an
                instance, so its values must not be changed.
            conversation: the names of the conversation's fields.
            is_plain: returns whether no other field of a body needs the conversation.
            verbatim_of: returns the conversation from its fields, which are not validated; None if
                it must be translated.
            request_type: the type of the requests, with the arguments of `VerbatimRequest`.
        """
        self._request_type = request_type
        self._adapter: TypeAdapter[_Body] = TypeAdapter(partial_body)
        self._conversation = conversation
        self._is_plain = is_plain
        self._verbatim_of = verbatim_of
        self._read_kept = lru_cache(_KEPT_SETTINGS)(self._read_settings)

    def read(
        self, body: bytes, source_map: SourceMap, options: Sequence[Any] = ()
    ) -> _Request | None:
        """Return a request, None if its conversation must be translated, or if it is invalid.

        Args:
            body: JSON.
            source_map: receives the positions of the messages, once they are translated.
            options: see `VerbatimRequest`.
        """
        fields = fields_of(body)
        if fields is None:
            return None
        conversation = {}
        for name in self._conversation:
            if name in fields:
                conversation[name] = fields.pop(name)
        settings = encode(fields)
        is_kept = (
            len(settings) <= KEPT_SETTINGS_BYTES
            and settings.count(b"{") + settings.count(b"[") <= _KEPT_SETTINGS_NESTED
        )
        wire = (self._read_kept if is_kept else self._read_settings)(settings)
        verbatim = None if wire is None else self._verbatim_of(conversation)
        if wire is None or verbatim is None:
            return None
        return self._request_type(len(body), source_map, wire, settings, verbatim, options=options)

    def load(
        self, head: Mapping[str, Any], parts: Sequence[bytes], source_map: SourceMap
    ) -> _Request:
        """Return a request from what its `dump` returned, in another process.

        It is not small, whatever its size: it may have many messages.
        """
        request_json, wire_json, *texts = parts
        wire = self._read_settings(wire_json)
        assert wire is not None, "the other process has validated it"
        sent: dict[str, bytes] = {}
        conversation: dict[str, bytes] = {}
        left = iter(texts)
        for name, is_as_written in head["fields"].items():
            sent[name] = next(left)
            conversation[name] = sent[name] if is_as_written else next(left)
        fields = {name: orjson.Fragment(json) for name, json in sent.items()}
        verbatim = fields, conversation, head["requires_official_api"]
        options = head["options"]
        loaded = self._request_type(
            head["size"], source_map, wire, wire_json, verbatim, options=options
        )
        loaded.is_small = False
        loaded.keep_written(sent)
        loaded.request = GenerateRequest.FromString(request_json)
        return loaded

    def _read_settings(self, settings: bytes) -> _Body | None:
        """Return a body without its conversation; None if it is invalid or not plain."""
        try:
            wire = self._adapter.validate_json(settings)
        except ValidationError:
            return None
        return wire if self._is_plain(wire) else None


class VerbatimRequest(LazyRequest, ABC, Generic[_Body]):
    """A request whose conversation is passed on as written, and parsed when it is first read.

    Args:
        size: bytes of the whole body.
        source_map: receives the positions of the messages, once they are translated.
        wire: the body without its conversation; other requests may share it.
        wire_json: the JSON of `wire`.
        verbatim: the conversation.
        options: what else its dialect translates it with; also an attribute.

    Attributes:
        parts: the JSON of the conversation by field name.
        source_map: see the argument.
        wire: see the argument.
        wire_json: see the argument.
        settings: the fields beside the conversation, if they can be passed on as they are.
    """

    def __init__(
        self,
        size: int,
        source_map: SourceMap,
        wire: _Body,
        wire_json: bytes,
        verbatim: Verbatim,
        *,
        options: Sequence[Any] = (),
    ) -> None:
        self.options = options
        fields, self.parts, requires_official_api = verbatim
        self.source_map = source_map
        self._conversation: dict[str, Any] = {}
        self.is_small = size <= MAX_SMALL
        self.wire = wire
        self.wire_json = wire_json
        settings = wire.settings
        if settings and "tool_choice" in settings and "tools" not in fields:
            settings = None  # without tools, a choice of tools is invalid
        self.settings = settings
        super().__init__(
            self.begin_request(),
            fields if settings is None else {**fields, **settings},
            size=size,
            requires_official_api=requires_official_api,
            has_whole_body=settings is not None,
        )

    def dump(self) -> tuple[dict[str, Any], list[bytes]]:
        """Serialize the request for `VerbatimReader.load`: a head for JSON, and its parts."""
        texts: list[bytes] = []
        fields: dict[str, bool] = {}
        for name, json in self.parts.items():
            sent = self.json_of(name)
            fields[name] = sent == json
            texts += (sent,) if fields[name] else (sent, json)
        head = {
            "size": self.ByteSize(),
            "fields": fields,
            "requires_official_api": self.requires_official_api,
            "options": self.options,
        }
        return head, [self.request.SerializeToString(), self.wire_json, *texts]

    @abstractmethod
    def begin_request(self) -> GenerateRequest:
        """Return the canonical request without the conversation."""

    def conversation(self, *names: str) -> dict[str, Any]:
        """Parse the parts of these names, by default all; of a small body, return all so far.

        Raises:
            GatewayError: invalid, a part is nested too deeply.
        """
        parsed = self._conversation if self.is_small else {}
        for name in names or self.parts:
            json = self.parts.get(name)
            if json is not None and name not in parsed:
                # The first value of a repeated member may be a number of any size.
                try:
                    parsed[name] = _parsed(json)
                except ValueError:  # it is JSON, as it has been scanned
                    raise too_deep(name) from None
        return parsed

    def read(self, *names: str) -> _Body:
        """Return the body with the parts of these names, by default with all."""
        parts = self.conversation(*names)
        if names:
            parts = {name: parts[name] for name in names if name in parts}
        # A copy: other requests may share the object, with other conversations.
        return self.wire.model_copy(update=parts) if parts else self.wire


def _parsed(json: bytes) -> Any:
    """Parse JSON; a large array in parts, as the event loop waits for each call of a thread."""
    if len(json) <= MAX_SMALL or not json.startswith(b"["):
        return from_json(json)
    return [from_json(bytes(item)) for item in _ITEMS.decode(json)]


def rewritten(value: Raw, kind: type[dict[str, Any]] | type[list[Any]] = dict) -> Raw | None:
    """Serialize an object, or an array, again.

    Return None if it is another value, or if it would change.
    """
    parsed = exact_json(bytes(value))
    json = _written(parsed) if isinstance(parsed, kind) else None
    return None if json is None else Raw(json)


def tools_reader(are_plain: Callable[[Any], bool]) -> Callable[[Raw], bytes | None]:
    """Return a function that serializes tools again; its result is b"" for none.

    Its result is None if the tools are not plain, or if they would change.
    """

    def read(tools_json: bytes) -> bytes | None:
        tools = exact_json(tools_json)
        if not are_plain(tools):
            return None
        return _written(tools) if tools else b""

    kept = lru_cache(_KEPT_TOOLS)(read)

    def read_kept(tools_json: Raw) -> bytes | None:
        if tools_json == NULL:
            return b""
        return (kept if len(tools_json) <= _KEPT_BYTES else read)(bytes(tools_json))

    return read_kept


def _written(value: object) -> bytes | None:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # nested too deeply to be written
        return None


def fields_of(body: bytes) -> dict[str, Raw] | None:
    """Return the members of a JSON object, or None if the body is not a JSON object.

    Numbers may exceed the range of doubles.
    """
    try:
        fields = _FIELDS.decode(body)
        # msgspec does not check that skipped strings are valid UTF-8.
        if not body.isascii():
            body.decode()
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return fields


def is_text(value: Raw) -> bool:
    """Return whether a value is a string."""
    return memoryview(value)[0] == _QUOTE


def is_filled(value: Raw) -> bool:
    """Return whether a value is a non-empty string."""
    return len(value) > _EMPTY_SIZE and memoryview(value)[0] == _QUOTE


def has_words(value: Raw) -> bool:
    """Return whether a value is a string of more than white space."""
    if not is_filled(value):
        return False
    # Nearly all texts begin with none of these.
    return memoryview(value)[1] not in _SPACES or not text_of(value).isspace()


def text_of(value: Raw) -> str:
    """Return the text of a string."""
    return _TEXT.decode(value)
