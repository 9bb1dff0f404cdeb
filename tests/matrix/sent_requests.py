"""An upstream's requests, read from its log into a form that no dialect has.

A conversation is a list of atoms: `(who, text)`, `(medium, bytes)`, `("call", name, arguments)`,
`("result", number of the call, text)`. What dialects may do otherwise is made alike: neighbouring
texts of one speaker are one, results of tools come first in their turn, and ids are numbers.
"""

import base64
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import orjson

from services.inference.learned.refusals import NO_THOUGHTS
from services.inference.providers.anthropic.sanitizing import JSON_ALONE
from services.inference.stream.prefill import CONTINUE
from tests.matrix.json_bodies import Json, arguments_of
from tests.upstream.bedrock.wire import to_messages

Atom = tuple[Any, ...]
_JOINED_BY = {"user": "\n", "assistant": ""}
# What stands where a result's media were, which its message cannot hold.
_ATTACHED = re.compile(
    r"\n?\[\d+ attached in the next user message\]|\[Attached to the result of tool call .+\]"
    r"|\[Attached to the result .+\]"
)
# What Mistral's models are made to say between a tool and the user.
_BETWEEN = "OK."


@dataclass
class SentRequest:
    """The content of one request.

    Attributes:
        system: all of the system prompt.
        said: the conversation, as atoms.
        thoughts: texts of earlier thoughts.
        calls: the ids of the calls, in order.
        tools: names of the tools, with their schemas.
        choice: auto, any, none or the name of a tool; "" where nothing is said.
    """

    system: list[str] = field(default_factory=list)
    said: list[Atom] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    tools: list[tuple[str, Json]] = field(default_factory=list)
    choice: str = ""

    def say(self, role: str, text: str) -> None:
        if role in ("system", "developer"):
            if text != JSON_ALONE:
                self.system.append(text)
        elif text := _ATTACHED.sub("", text):
            self.said.append((role, text))

    def call(self, id: str, name: str, arguments: str) -> None:
        assert id not in self.calls, f"two calls have the id {id}"
        self.calls.append(id)
        self.said.append(("call", name, arguments_of(arguments)))

    def result(self, id: str, text: str) -> None:
        assert id in self.calls, f"the result {id} has no call"
        self.said.append(("result", self.calls.index(id), _ATTACHED.sub("", text)))

    def medium(self, kind: str, data: str) -> None:
        self.said.append((kind, base64.b64decode(data)))


def normal(atoms: Iterable[Atom]) -> list[Atom]:
    """Return atoms in the order and the pieces that every dialect can tell."""
    ordered: list[Atom] = []
    for speaker, run in groupby(atoms, _speaker):
        turn = sorted(run, key=lambda atom: atom[0] != "result")
        if turn[0][0] == "result":
            # Media of results follow them, before what the user says.
            turn.sort(key=lambda atom: (atom[0] != "result", atom[0] == "user"))
        for kind, same in groupby(turn, lambda atom: atom[0]):
            if kind in _JOINED_BY:
                ordered.append((kind, _JOINED_BY[speaker].join(text for _, text in same)))
            else:
                ordered += same
    return ordered


def _speaker(atom: Atom) -> str:
    return "assistant" if atom[0] in ("assistant", "call") else "user"


def hear_openai(body: Json) -> SentRequest:
    """Read a body of chat completions."""
    sent_request = SentRequest()
    before = ""
    for message in body["messages"]:
        role, content = message["role"], message.get("content") or ""
        if role == "tool":
            sent_request.result(message["tool_call_id"], _text(content))
        elif not (role == "assistant" and content == _BETWEEN and before == "tool"):
            thoughts = message.get("reasoning_content") or message.get("reasoning")
            if thoughts and thoughts != NO_THOUGHTS:
                sent_request.thoughts.append(thoughts)
            for part in _parts(content):
                _openai_part(sent_request, role, part)
            if refusal := message.get("refusal"):
                sent_request.say(role, refusal)
            for call in message.get("tool_calls") or ():
                function = call["function"]
                sent_request.call(call["id"], function["name"], function["arguments"])
        before = role
    for tool in body.get("tools") or ():
        sent_request.tools.append((tool["function"]["name"], tool["function"]["parameters"]))
    match body.get("tool_choice"):
        case {"function": {"name": name}}:
            sent_request.choice = name
        case "required":
            sent_request.choice = "any"
        case str(choice):
            sent_request.choice = choice
    return sent_request


def _openai_part(sent_request: SentRequest, role: str, part: Json) -> None:
    match part["type"]:
        case "text" | "refusal":
            sent_request.say(role, part[part["type"]])
        case "image_url":
            sent_request.medium("image", part["image_url"]["url"].partition(",")[2])
        case "file":
            sent_request.medium("document", part["file"]["file_data"].partition(",")[2])
        case "input_audio":
            sent_request.medium("audio", part["input_audio"]["data"])
        case kind:
            raise AssertionError(f"a part of type {kind}")


def _parts(content: str | list[Json]) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content


def _text(content: str | list[Json]) -> str:
    return "\n".join(part["text"] for part in _parts(content))


def hear_anthropic(body: Json) -> SentRequest:
    """Read a body of messages."""
    sent_request = SentRequest()
    for block in _parts(body.get("system") or ""):
        sent_request.say("system", block["text"])
    for message in body["messages"]:
        for block in _parts(message["content"]):
            _anthropic_block(sent_request, message["role"], block)
    for tool in body.get("tools") or ():
        sent_request.tools.append((tool["name"], tool["input_schema"]))
    choice = body.get("tool_choice") or {"type": ""}
    sent_request.choice = choice["name"] if choice["type"] == "tool" else choice["type"]
    return sent_request


def _anthropic_block(sent_request: SentRequest, role: str, block: Json) -> None:
    match block["type"]:
        case "text":
            sent_request.say(role, block["text"])
        case "thinking" if block["thinking"] == NO_THOUGHTS:
            pass
        case "thinking":
            sent_request.thoughts.append(block["thinking"])
        case "redacted_thinking":
            sent_request.thoughts.append(block["data"])
        case "tool_use":
            sent_request.call(block["id"], block["name"], orjson.dumps(block["input"]).decode())
        case "tool_result":
            inner = _parts(block.get("content") or "")
            texts = [one["text"] for one in inner if one["type"] == "text"]
            sent_request.result(block["tool_use_id"], "\n".join(texts))
            for one in inner:
                if one["type"] != "text":
                    sent_request.medium(one["type"], one["source"]["data"])
        case "document" if block["source"]["type"] == "text":
            sent_request.say(role, f"[{block['title']}]\n{block['source']['data']}")
        case kind:
            sent_request.medium(kind, block["source"]["data"])


def hear_gemini(body: Json) -> SentRequest:
    """Read a body of `generateContent`."""
    sent_request = SentRequest()
    for part in (body.get("systemInstruction") or {}).get("parts") or ():
        sent_request.say("system", part["text"])
    names: dict[str, str] = {}
    for content in body["contents"]:
        role = "assistant" if content["role"] == "model" else "user"
        for part in content["parts"]:
            match part:
                case {"text": text, "thought": True}:
                    sent_request.thoughts.append(text)
                case {"text": text}:
                    sent_request.say(role, text)
                case {"functionCall": {"id": id, "name": name, "args": args}}:
                    names[id] = name
                    sent_request.call(id, name, orjson.dumps(args).decode())
                case {"functionResponse": {"id": id, "name": name, "response": response}}:
                    assert names.get(id) == name, f"the result {id} is of another function"
                    (text,) = response.values()
                    sent_request.result(id, text)
                case {"inlineData": {"mimeType": mime_type, "data": data}}:
                    kind = mime_type.partition("/")[0]
                    sent_request.medium("document" if kind == "application" else kind, data)
                case _:
                    raise AssertionError(f"a part {part}")
    for tool in body.get("tools") or ():
        for function in tool["functionDeclarations"]:
            sent_request.tools.append((function["name"], function.get("parametersJsonSchema", {})))
    config = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    sent_request.choice = next(
        iter(config.get("allowedFunctionNames", ())), config.get("mode", "").lower()
    )
    return sent_request


def hear_bedrock(body: Json) -> SentRequest:
    """Read a body of Converse."""
    return hear_anthropic(to_messages(body))


def hear_responses(body: Json) -> SentRequest:
    """Read a body of responses."""
    sent_request = SentRequest()
    if instructions := body.get("instructions"):
        sent_request.say("system", instructions)
    for item in body["input"]:
        _responses_item(sent_request, item)
    for tool in body.get("tools") or ():
        sent_request.tools.append((tool["name"], tool["parameters"]))
    match body.get("tool_choice"):
        case {"name": name}:
            sent_request.choice = name
        case "required":
            sent_request.choice = "any"
        case str(choice):
            sent_request.choice = choice
    return sent_request


def _responses_item(sent_request: SentRequest, item: Json) -> None:
    match item["type"]:
        case "message":
            for part in _parts(item["content"]):
                _responses_part(sent_request, item["role"], part)
        case "reasoning":
            sent_request.thoughts += [part["text"] for part in item["summary"]]
        case "function_call":
            sent_request.call(item["call_id"], item["name"], item["arguments"])
        case "function_call_output":
            parts = _parts(item["output"])
            texts = [part["text"] for part in parts if "text" in part]
            sent_request.result(item["call_id"], "\n".join(texts))
            for part in parts:
                if "text" not in part:
                    _responses_part(sent_request, "user", part)
        case kind:
            raise AssertionError(f"an item of type {kind}")


def _responses_part(sent_request: SentRequest, role: str, part: Json) -> None:
    match part["type"]:
        case "input_text" | "output_text" | "text":
            sent_request.say(role, part["text"])
        case "refusal":
            sent_request.say(role, part["refusal"])
        case "input_image":
            sent_request.medium("image", part["image_url"].partition(",")[2])
        case "input_file":
            head, _, data = part["file_data"].partition(",")
            if head.startswith("data:text/"):
                text = base64.b64decode(data).decode()
                sent_request.say(role, f"[{part['filename']}]\n{text}")
            else:
                sent_request.medium("document", data)
        case kind:
            raise AssertionError(f"a part of type {kind}")


READERS: dict[str, Callable[[Json], SentRequest]] = {
    "openai": hear_openai,
    "responses": hear_responses,
    "anthropic": hear_anthropic,
    "gemini": hear_gemini,
    "bedrock": hear_bedrock,
}


def without_question(atoms: list[Atom]) -> list[Atom]:
    """Return atoms without the question after a prefill that the model cannot continue."""
    return atoms[:-1] if atoms and atoms[-1] == ("user", CONTINUE) else atoms
