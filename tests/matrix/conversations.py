"""The table of conversations, whatever they are about but tools (`tool_conversations`)."""

import base64
from collections.abc import Sequence
from typing import Any

from services.sandbox.model.signatures import redact, sign
from tests.facade.conversations import SCHEMA, png
from tests.matrix.upstreams import ANTHROPICS, BEDROCK, NAMES, NATIVE
from tests.matrix.words import (
    CHAT,
    GRPC,
    MESSAGES,
    RESPONSES,
    Audio,
    Conversation,
    Document,
    Image,
    Refusal,
    Refused,
    Text,
    Thought,
    Turn,
    assistant,
    system,
    user,
)

PICTURE, OTHER_PICTURE = png(7, 5), png(3, 9)
_PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF"
_WAV = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\0\0\0\0"
_UNICODE = (
    "Ünïcödé ☕ 👩‍👩‍👧 עברית\u200f e\u0301"
    " \u2028\u2029 \ud7ff \U0001d518 \\u0041 \\n \t\"'</script>"
)
_LONG = " ".join(f"word-{number}" for number in range(3000))
_NESTED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "where": {"$ref": "#/$defs/place"},
        "how": {"enum": ["fast", "slow"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["where", "how", "tags"],
    "$defs": {
        "place": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        }
    },
}


def _everywhere(path: str) -> dict[str, str]:
    return dict.fromkeys((CHAT, MESSAGES, GRPC), path)


TEXTS = (
    Conversation("a text", [user("Hello")], says='you said "Hello"'),
    Conversation("every kind of character", [user(_UNICODE)], says=_UNICODE),
    Conversation("what looks like a stream", [user('data: [DONE]\n\nevent: x\ndata: {"a":1}')]),
    Conversation("a long text", [user(_LONG)], says=_LONG[:4000]),
    Conversation(
        "a system prompt",
        [system("Be brief."), user("Hi")],
        says='The system prompt is "Be brief.".',
    ),
    Conversation("system prompts of several parts", [system("Be brief.", "Rhyme."), user("Hi")]),
    Conversation(
        "a system prompt in the middle",
        [system("One."), user("Hi"), assistant("Ho"), system("Two."), user("Go on")],
        says="Go on",
    ),
    Conversation(
        "a developer's prompt",
        [Turn("developer", [Text("Be brief.")]), user("Hi")],
        endpoints=(CHAT, GRPC),
        says="Be brief.",
    ),
    Conversation(
        "a system prompt alone", [system("Say hello.")], endpoints=(CHAT, GRPC), any_answer=True
    ),
    Conversation(
        "many turns",
        [turn(f"{place}") for place in range(12) for turn in (user, assistant)] + [user("End")],
        says='you said "End"',
    ),
    Conversation("neighbours who ask", [user("One."), user("Two.")], says="One.\nTwo."),
    Conversation(
        "neighbours who answer",
        [user("One."), assistant("Two. "), assistant("Three."), user("Four.")],
        says="Four.",
    ),
    Conversation("several parts", [user("One.", "Two."), assistant("A", "B"), user("Three.")]),
    Conversation("empty parts", [user("", "One.", ""), assistant("A", ""), user("Two.")]),
    Conversation(
        "an empty message",
        [user("One."), assistant(""), user("Two.")],
        refusals=[Refusal(NAMES, {GRPC: "messages[1].blocks"})],
        says="Two.",
    ),
    Conversation(
        "parts of white space",
        [user("One.", " \n"), assistant("\n\n", "A"), user("Two.")],
        says="Two.",
    ),
    Conversation(
        "a message of white space",
        [user("One."), assistant(" \n"), user("Two.")],
        says="Two.",
    ),
    Conversation(
        "an assistant who begins",
        [assistant("How can I help?"), user("Hi")],
        says="Hi",
    ),
    Conversation("participants with names", [user("Hi", name="ada")], endpoints=(CHAT, GRPC)),
    Conversation(
        "an earlier refusal",
        [user("Hi"), assistant(Refused("I will not.")), user("Why?")],
        endpoints=(CHAT, GRPC),
        says="Why?",
    ),
    Conversation(
        "fields of messages that nobody knows",
        [user("Hi", made_up=1), assistant("Ho", provider_specific_fields={"a": None}), user("End")],
        endpoints=(CHAT, MESSAGES),
        says="End",
    ),
)

MEDIA = (
    Conversation("a picture", [user("See", Image(PICTURE))], says="PNG of 7x5 pixels"),
    Conversation(
        "pictures between texts",
        [user("One", Image(PICTURE), "Two", Image(OTHER_PICTURE), "Three")],
        says="PNG of 3x9 pixels",
    ),
    Conversation(
        "a picture of an earlier turn",
        [user(Image(PICTURE)), assistant("A dot."), user("What else?")],
        says="PNG of 7x5 pixels",
    ),
    Conversation(
        "a picture in detail",
        [user("See", Image(PICTURE, detail="high"))],
        endpoints=(CHAT, GRPC),
        says="PNG of 7x5 pixels",
    ),
    Conversation(
        "a PDF", [user("Read", Document(_PDF, "application/pdf", "a.pdf"))], says="document"
    ),
    Conversation(
        "a text document",
        [user("Read", Document("Zwölf Äpfel".encode(), "text/plain", "a.txt"))],
    ),
    Conversation(
        "a recording",
        [user("Listen", Audio(_WAV))],
        endpoints=(CHAT, GRPC),
        refusals=[
            Refusal(
                ANTHROPICS | BEDROCK,
                {CHAT: "messages[0].content[1]", GRPC: "messages[0].blocks[1]"},
            ),
            # OpenAI's responses take no audio either.
            Refusal(ANTHROPICS | BEDROCK | NATIVE, {RESPONSES: "input[0].content[1]"}),
        ],
        says="audio",
    ),
)

FORMS = (
    Conversation(
        "a stop string",
        [user("one two three")],
        {"stop": ["two", "never"]},
        finish="stop",
        says='you said "one ',
    ),
    Conversation(
        "a stop string of white space",
        [user("one\ntwo")],
        {"stop": ["\n"]},
        finish="stop",
        refusals=[
            Refusal(ANTHROPICS, {CHAT: "stop[0]", GRPC: "stop_sequences[0]"}),
            Refusal(ANTHROPICS, {MESSAGES: "stop_sequences.0"}),
        ],
        says='you said "one',
    ),
    Conversation("a limit of tokens", [user("one two three")], {"max_tokens": 3}, finish="length"),
    Conversation("a schema", [user("Plan")], {"schema": SCHEMA}, says='{"city":"Plan"'),
    Conversation("an open schema", [user("Plan")], {"schema": _NESTED}, says='"how":"fast"'),
    Conversation(
        "any JSON",
        [user("Some json")],
        {"json_object": True},
        endpoints=(CHAT, GRPC),
        any_answer=True,
    ),
    Conversation("a refusal", [user("sandbox: refuse")], finish="refusal"),
    Conversation("a cached prompt", [user("sandbox: cached " + "word " * 50)]),
    Conversation(
        "several answers",
        [user("Hi")],
        {"n": 2},
        endpoints=(CHAT, GRPC),
        refusals=[Refusal(ANTHROPICS | BEDROCK, _everywhere("n"))],
    ),
    Conversation(
        "log probabilities",
        [user("Hi")],
        {"logprobs": True, "top_logprobs": 2},
        endpoints=(CHAT, GRPC),
        refusals=[
            Refusal(ANTHROPICS | BEDROCK | {"openai-o", "mistral"}, _everywhere("logprobs")),
            Refusal(ANTHROPICS | BEDROCK, {RESPONSES: "include"}),
            Refusal(frozenset({"openai-o"}), {RESPONSES: "top_logprobs"}),
            Refusal(frozenset({"mistral"}), {RESPONSES: "logprobs"}),
        ],
    ),
    Conversation("sampling", [user("Hi")], {"temperature": 0.5}),
    Conversation("sampling by both", [user("Hi")], {"temperature": 0.5, "top_p": 0.9}),
    Conversation("sampling among few", [user("Hi")], {"top_k": 7}),
    Conversation(
        "sampling that is hot",
        [user("Hi")],
        {"temperature": 1.5},
        endpoints=(CHAT, GRPC),
        refusals=[
            Refusal(ANTHROPICS | BEDROCK, {**_everywhere("temperature"), RESPONSES: "temperature"})
        ],
    ),
    Conversation(
        "a seed and penalties",
        [user("Hi")],
        {"seed": 7, "presence_penalty": 0.5, "frequency_penalty": -0.5},
        endpoints=(CHAT, GRPC),
    ),
    Conversation("an e-mail address as user", [user("Hi")], {"user": "ada@example.org"}),
    Conversation("a long name as user", [user("Hi")], {"user": "u" * 200}),
    Conversation("a service tier", [user("Hi")], {"service_tier": "auto"}),
    Conversation(
        "marks for the cache",
        [system(Text("Be brief.", marked=True)), user(Text("Hi", marked=True), "you")],
    ),
    Conversation(
        "fields that nobody knows",
        [user("Hi")],
        own={name: {"made_up": {"a": 1}} for name in (CHAT, MESSAGES, RESPONSES)},
        endpoints=(CHAT, MESSAGES),
        # In their own dialect they go on. These providers refuse them in words that are not read;
        # for others they are left out.
        refusals=[
            Refusal(NATIVE, {CHAT: "made_up"}),
            Refusal(NATIVE, {RESPONSES: "made_up"}),
        ],
    ),
    Conversation(
        "fields that are null",
        [user("Hi")],
        own={
            CHAT: dict.fromkeys(
                ("temperature", "stop", "tools", "tool_choice", "n", "seed", "user", "made_up")
            ),
            MESSAGES: dict.fromkeys(("temperature", "stop_sequences", "tools", "thinking")),
            RESPONSES: dict.fromkeys(("temperature", "text", "tools", "reasoning", "made_up")),
        },
        endpoints=(CHAT, MESSAGES),
        says="Hi",
    ),
)

_SIGNED = sign("I thought.")
_FOREIGN = base64.b64encode(b"somebody else's").decode()
THOUGHTS: Sequence[Conversation] = (
    Conversation("an effort", [user("Think")], {"effort": "low", "max_tokens": 4000}),
    Conversation("the most effort", [user("Think")], {"effort": "max", "max_tokens": 4000}),
    Conversation("a budget", [user("Think")], {"budget": 2048}, endpoints=(MESSAGES, GRPC)),
    Conversation(
        "an effort and sampling",
        [user("Think")],
        {"effort": "high", "temperature": 0.5, "top_p": 0.5, "max_tokens": 4000},
        endpoints=(CHAT, GRPC),
    ),
    Conversation("no thinking", [user("Hi")], {"no_thinking": True}, says="Hi"),
    Conversation(
        "hidden thoughts",
        [user("sandbox: redact")],
        {"effort": "low", "max_tokens": 4000},
        endpoints=(MESSAGES, GRPC),
    ),
    Conversation(
        "earlier thoughts without a signature",
        [user("Hi"), assistant(Thought("I thought."), "Ho"), user("Go on")],
        says="Go on",
    ),
    Conversation(
        "earlier thoughts that are signed",
        [user("Hi"), assistant(Thought("I thought.", _SIGNED), "Ho"), user("Go on")],
        endpoints=(MESSAGES, GRPC),
        says="Go on",
    ),
    Conversation(
        "earlier thoughts that somebody else signed",
        [user("Hi"), assistant(Thought("I thought.", _FOREIGN), "Ho"), user("Go on")],
        endpoints=(MESSAGES, GRPC),
        says="Go on",
    ),
    Conversation(
        "earlier thoughts that are hidden",
        [user("Hi"), assistant(Thought("", redact("Hm")), "Ho"), user("Go on")],
        endpoints=(MESSAGES, GRPC),
        says="Go on",
    ),
    Conversation("a prefill", [user("Hi"), assistant("Sandbox echo: you said")], any_answer=True),
    Conversation(
        "a prefill that ends with a space",
        [user("Hi"), assistant("Sandbox echo: ")],
        refusals=[
            Refusal(
                frozenset({"anthropic", "bedrock"}),
                {MESSAGES: "messages.1.content"},
            )
        ],
        any_answer=True,
    ),
)
