"""The request that every upstream must have received for a conversation, and the laws for it."""

import json
import re
from collections.abc import Iterator, Sequence

from services.inference.providers.bedrock.content import BEGINNING
from tests.matrix import options
from tests.matrix.json_bodies import Json, arguments_of
from tests.matrix.sent_requests import READERS, Atom, SentRequest, normal, without_question
from tests.matrix.upstreams import Upstream
from tests.matrix.words import (
    CHAT,
    GRPC,
    MESSAGES,
    RESPONSES,
    Audio,
    Call,
    Conversation,
    Document,
    Image,
    Part,
    Refused,
    Result,
    Text,
    Thought,
    Tool,
    Turn,
)

_PLAIN_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", re.ASCII)
# What answers hold beside words and calls, and callers send back.
_BESIDE_WORDS = (
    *("messages[].reasoning_content", "messages[].reasoning", "messages[].reasoning_details"),
    *("messages[].extra_content", "messages[].content[].extra_content"),
    *("messages[].annotations", "messages[].content[].thinking", "contents[].parts[].thought"),
    *("messages[].blocks[].thinking", "messages[].blocks[].thinking.field"),
    *("messages[].extra.reasoning_details", "messages[].extra.extra_content"),
    *("input[].summary", "input[].content[].summary"),
    *("messages[].extra.annotations", "messages[].blocks[].extra.extra_content"),
)
_MESSAGES = {GRPC: "messages[].extra", RESPONSES: "input[]"}
_SYSTEM = ("system", "developer")
_OPENAI = ("openai", "responses")


def check(
    conversation: Conversation,
    turns: Sequence[Turn],
    endpoint: str,
    upstream: Upstream,
    body: Json,
    dropped: Sequence[str],
) -> SentRequest:
    """Hold the body that an upstream answered against what it was to be told.

    Args:
        conversation: what was asked.
        turns: those of the conversation, and what came after.
        endpoint: where it was asked.
        upstream: who was sent the body.
        body: from the upstream's log.
        dropped: what the answer's headers name.
    """
    sent_request = READERS[upstream.dialect](body)
    expected_request = _ExpectedRequest(upstream, endpoint)
    expected_request.add(turns)
    # Converse has no choice of no tool: none is sent.
    has_none = upstream.dialect == "bedrock" and conversation.choice == "none"
    names = _names(() if has_none else conversation.tools, sent_request)
    assert "\n".join(sent_request.system) == "\n".join(expected_request.system)
    sent_atoms = normal(sent_request.said)
    expected_atoms = [_named(atom, names) for atom in normal(expected_request.said)]
    if turns[-1].role == "assistant":
        sent_atoms = without_question(sent_atoms)
    assert sent_atoms == expected_atoms
    for expected_id, id in zip(expected_request.ids, sent_request.calls, strict=True):
        as_it_is = upstream.ids.fullmatch(expected_id) or (
            upstream.dialect == "anthropic" and endpoint == MESSAGES
        )
        assert id == expected_id if as_it_is else upstream.ids.fullmatch(id), f"the id {id}"
    if conversation.tools and not has_none:
        assert sent_request.choice in (names.get(conversation.choice, conversation.choice), "auto")
        assert sent_request.choice != "auto" or conversation.choice in ("", "auto")
    _check_options(conversation, endpoint, upstream, body, dropped)
    return sent_request


class _ExpectedRequest:
    """The expected content of a `SentRequest` for a conversation."""

    def __init__(self, upstream: Upstream, endpoint: str) -> None:
        self.system: list[str] = []
        self.said: list[Atom] = []
        self.ids: list[str] = []
        # Anthropic refuses texts of white space, which are left out for every caller, and prefills
        # that end with it, which are changed for callers of other dialects.
        self._takes_white_space = upstream.dialect not in ("anthropic", "bedrock")
        self._begins_with_user = upstream.dialect == "bedrock"
        self._trims_prefills = upstream.dialect == "anthropic" and endpoint != MESSAGES
        self._wants_objects = self._splits_system = upstream.dialect not in _OPENAI

    def add(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            for part in turn.parts:
                self._add(turn.role, part)
        if not self.said and self._splits_system:
            # Who has nobody speak but the system is asked by it.
            self.said, self.system = [("user", text) for text in self.system], []
        if self._begins_with_user and self.said[0][0] == "assistant":
            self.said.insert(0, ("user", BEGINNING))
        if self._trims_prefills and turns[-1].role == "assistant":
            role, text = self.said[-1]
            self.said[-1] = (role, text.rstrip())

    def _add(self, role: str, part: Part) -> None:
        match part:
            case Text(text) if role in _SYSTEM:
                self.system.append(text)
            case Text(text) | Refused(text):
                if text if self._takes_white_space else text.strip():
                    self.said.append((role, text))
            case Thought():
                pass
            case Image(data):
                self.said.append(("image", data))
            case Audio(data):
                self.said.append(("audio", data))
            case Document(data, "text/plain", name):
                self.said.append((role, f"[{name}]\n{data.decode()}"))
            case Document(data):
                self.said.append(("document", data))
            case Call() | Result():
                self._add_tool(role, part)

    def _add_tool(self, role: str, part: Call | Result) -> None:
        match part:
            case Call(id, name, arguments):
                self.ids.append(id)
                if self._wants_objects and not _is_json(arguments or "{}"):
                    arguments = json.dumps({"malformed": arguments})
                self.said.append(("call", name, arguments_of(arguments)))
            case Result(id, parts):
                texts = [inner.text for inner in parts if isinstance(inner, Text)]
                self.said.append(("result", self.ids.index(id), "\n".join(texts)))
                for inner in parts:
                    if isinstance(inner, Image):
                        self._add(role, inner)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _names(tools: Sequence[Tool], sent_request: SentRequest) -> dict[str, str]:
    """Return the names that an upstream knows the tools by, and check what it was told of them."""
    names = {}
    for tool, (name, schema) in zip(tools, sent_request.tools, strict=True):
        assert name == tool.name or not _PLAIN_NAME.fullmatch(tool.name), f"the tool {name}"
        has_arguments = bool(tool.schema.get("properties"))
        assert schema == tool.schema or not has_arguments, f"the schema of {name}"
        names[tool.name] = name
    assert len(set(names.values())) == len(tools)
    return names


def _named(atom: Atom, names: dict[str, str]) -> Atom:
    return ("call", names.get(atom[1], atom[1]), atom[2]) if atom[0] == "call" else atom


def _check_options(
    conversation: Conversation,
    endpoint: str,
    upstream: Upstream,
    body: Json,
    dropped: Sequence[str],
) -> None:
    """Check that each option arrived or is named as dropped, and that nothing else is named."""
    explained = set(_explained(conversation, endpoint, upstream.dialect))
    for name, value in options.given(conversation, endpoint):
        option = options.OPTIONS[name]
        if name == "stop" and endpoint != CHAT and not upstream.tells_stops:
            continue  # the gateway ends the answer itself, to know where
        paths = option.dropped_as.get(endpoint, frozenset())
        if option.arrived(upstream.dialect, body, value):
            explained |= option.partly
        else:
            assert paths.intersection(dropped), f"{name} is lost without a word, beside {dropped}"
            explained |= paths
    assert set(dropped) <= explained, f"dropped {dropped}"


def _explained(conversation: Conversation, endpoint: str, dialect: str) -> Iterator[str]:
    """Return what may be named as dropped beside options."""
    yield from conversation.own.get(endpoint, ())
    for turn in conversation.turns:
        for name in turn.own:
            yield f"{_MESSAGES.get(endpoint, 'messages[]')}.{name}"
    yield from _BESIDE_WORDS
