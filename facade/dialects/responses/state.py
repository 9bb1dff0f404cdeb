"""The fields of a request that its response echoes, and its storage options. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import orjson

from facade.dialects.responses.types import ResponseRequest

LOGPROBS = "message.output_text.logprobs"
SOURCES = "web_search_call.action.sources"
FILE_RESULTS = "file_search_call.results"
# Included in every answer.
ENCRYPTED = "reasoning.encrypted_content"

# Fields that a response echoes, with the defaults that OpenAI fills in.
_REPEATED: Mapping[str, object] = {
    "background": False,
    "conversation": None,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
_DEFAULTS = orjson.dumps(_REPEATED)[1:-1]
# Number of cached sets of field names, as programs send the same few.
_COMBINATIONS = 256
# Members about storage that the gateway sets in a passthrough response, by whether it is stored;
# for a response that continues no other and belongs to no conversation.
_STATES = [
    b'"background":false,"conversation":null,"previous_response_id":null,"store":%b' % store
    for store in (b"false", b"true")
]
# These members of a response that is not stored.
UNKEPT = _STATES[False]


class Echo:
    """The fields of a request that its response echoes.

    Attributes:
        state: the fields about storage, as members of a JSON object without its braces.
        logprobs: whether the response has log probabilities.
        sources: whether its searches list the found pages.
        results: whether its searches of files have their results.
    """

    __slots__ = ("_json", "logprobs", "results", "sources", "state")

    def __init__(
        self,
        json: bytes | Callable[[], bytes],
        state: bytes,
        *,
        logprobs: bool = False,
        sources: bool = False,
        results: bool = False,
    ) -> None:
        """Create the fields; `json` is the JSON of all of them, or returns it on first use."""
        self._json = json
        self.state = state
        self.logprobs = logprobs
        self.sources = sources
        self.results = results

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Echo):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def _values(self) -> tuple[bytes, bytes, bool, bool, bool]:
        return self.json, self.state, self.logprobs, self.sources, self.results

    @property
    def json(self) -> bytes:
        """All fields, as members of a JSON object without its braces."""
        if callable(self._json):
            self._json = self._json()
        return self._json

    def with_member(self, name: str, value: object) -> "Echo":
        """Return the fields with one more that the gateway sets."""
        member = b'"%b":%b' % (name.encode(), orjson.dumps(value))
        return Echo(
            b"%b,%b" % (self.json, member),
            b"%b,%b" % (self.state, member),
            logprobs=self.logprobs,
            sources=self.sources,
            results=self.results,
        )

    def dump(self) -> list[Any]:
        """Serialize the fields as JSON."""
        flags = (self.logprobs, self.sources, self.results)
        return [self.json.decode(), self.state.decode(), *flags]

    @classmethod
    def load(cls, dumped: Sequence[Any]) -> "Echo":
        """Load the fields from JSON."""
        json, state, logprobs, sources, results = dumped
        flags = {"logprobs": logprobs, "sources": sources, "results": results}
        return cls(json.encode(), state.encode(), **flags)


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to an item of a stored response.

    Attributes:
        index: index of the reference among the items.
        item_id: the id of the item.
        path: path of the reference in the body.
    """

    index: int
    item_id: str
    path: str


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """The stored conversation of a request.

    Attributes:
        id: its id.
        last_position: position of its last item, once its items have been read; 0 without items.
    """

    id: str
    last_position: int = 0


# Not frozen: a frozen class takes three times as long to create, and each request has one.
@dataclass(slots=True)
class ResponseState:
    """The storage options of a request, and the fields that its response echoes.

    Attributes:
        store: whether the response is stored.
        background: whether it is generated after the request has been answered.
        previous_response_id: the response that it continues.
        conversation: the stored conversation that it belongs to; the name of a memory is in the
            request.
        input_items: the items of the input as JSON, each with an id, if there is `store`, a
            conversation or a reference, or if they are kept; an input that is a text is a message.
        references: the references to stored items in the input, which have no canonical message.
        instructions: the system prompt, which is the first canonical message.
        echo: the fields that the response echoes.
    """

    store: bool
    background: bool
    previous_response_id: str | None
    conversation: StoredConversation | None
    input_items: Sequence[bytes]
    references: Sequence[Reference]
    instructions: str | None
    echo: Echo

    @property
    def uses_stored_items(self) -> bool:
        """Whether stored items have to be read before the request is complete."""
        return bool(
            self.references
            or self.previous_response_id is not None
            or self.conversation is not None
        )

    def dump(self) -> dict[str, Any]:
        """Serialize the state as JSON."""
        return {
            "store": self.store,
            "background": self.background,
            "previous_response_id": self.previous_response_id,
            "conversation": self.conversation and self.conversation.id,
            "input_items": [item.decode() for item in self.input_items],
            "references": [[one.index, one.item_id, one.path] for one in self.references],
            "instructions": self.instructions,
            "echo": self.echo.dump(),
        }

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> "ResponseState":
        """Load the state from JSON."""
        name = dumped["conversation"]
        given = {
            **dumped,
            "conversation": name and StoredConversation(name),
            "input_items": [item.encode() for item in dumped["input_items"]],
            "references": [Reference(*one) for one in dumped["references"]],
            "echo": Echo.load(dumped["echo"]),
        }
        return cls(**given)


def echo_of(
    wire: ResponseRequest,
    read: Callable[[], ResponseRequest],
    conversation: str | None,
    dump: Callable[[object], bytes],
) -> Echo:
    """Return the fields that the response to a request echoes.

    Most of them are only needed if the gateway writes the response itself.

    Args:
        wire: the request, which may lack its conversation.
        read: returns the request with its tools.
        conversation: the name of the conversation that it belongs to.
        dump: serializes values.
    """
    held = wire.__dict__
    background, before = held["background"] or False, held["previous_response_id"]
    store = held["store"] is not False
    if conversation is None and before is None and not background:
        state = _STATES[store]
    else:
        given: dict[str, object] = {
            "background": background,
            "conversation": None if conversation is None else {"id": conversation},
            "previous_response_id": before,
            "store": store,
        }
        state = orjson.dumps(given)[1:-1]
    json = partial(_repeated, read, dump)
    include = held["include"]
    if not include:
        return Echo(json, state)
    return Echo(
        json,
        state,
        logprobs=LOGPROBS in include,
        sources=SOURCES in include,
        results=FILE_RESULTS in include,
    )


def _repeated(read: Callable[[], ResponseRequest], dump: Callable[[object], bytes]) -> bytes:
    """Return the JSON members of all fields that a response echoes."""
    wire = read()
    held = wire.__dict__
    given: dict[str, object] = {
        name: value
        for name in wire.model_fields_set
        if name in _REPEATED and (value := held[name]) is not None
    }
    if held["conversation"] is not None:
        given["conversation"] = {"id": conversation_name(wire)}
    if held["reasoning"] is not None:
        given["reasoning"] = {"effort": None, "summary": None, **held["reasoning"]}
    if held["text"] is not None:
        given["text"] = _text(held["text"])
    if tools := held["tools"]:
        given["tools"] = list(map(_tool, tools))
    if given.get("service_tier") == "auto":
        del given["service_tier"]
    if not given:
        return _DEFAULTS
    return b"%b,%b" % (dump(given)[1:-1], _defaults_beside(frozenset(given)))


@lru_cache(_COMBINATIONS)
def _defaults_beside(names: frozenset[str]) -> bytes:
    """Return the JSON members of OpenAI's defaults for all fields except `names`."""
    return orjson.dumps({k: v for k, v in _REPEATED.items() if k not in names})[1:-1]


def conversation_name(wire: ResponseRequest) -> str | None:
    """Return the name of the conversation that a request belongs to."""
    given = wire.__dict__["conversation"]
    return given if given is None or isinstance(given, str) else given["id"]


def _text(given: Mapping[str, Any]) -> dict[str, Any]:
    text = {"verbosity": "medium", **{k: v for k, v in given.items() if v is not None}}
    form = text.get("format") or {"type": "text"}
    if form["type"] == "json_schema":
        form = {"description": None, "strict": False, **form}
    text["format"] = form
    return text


def _tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a tool with the defaults that OpenAI fills in."""
    if tool["type"] != "function":
        return tool
    return {"description": None, "parameters": None, **tool, "strict": tool.get("strict", True)}
