"""Behaviours of the sandbox's models: pure functions from a request to an answer.

Models that the catalogue lists:

=========  ====================================================================
echo       repeats what it was sent; supports tools, thinking, stop strings,
           prefill, max_tokens, JSON Schema; names media by format and size
text       as echo, but rejects all media
vision     as echo, but rejects media other than images
slow       as echo, with 50 ms before each piece of the answer
fail-429   always answers with a rate limit error, with a retry delay
fail-500   always answers with a server error
stall      accepts requests and never answers
cut        closes the connection in the middle of the answer
=========  ====================================================================

`embed` only makes embeddings: texts with common words have similar vectors.
`transcribe` only transcribes: the text states the length of the recording.

Unlisted models, for tests of how a gateway handles providers: `fail-401`, `fail-403`, `fail-503`,
`fail-529`, `fail-context` (the prompt is too long), `small` (as echo, but a prompt of more than
40,000 tokens is too long), `fail-late` (reports an error in the middle of a stream), `stall-open`
(opens the stream, then sends nothing), `stall-half` (half of the answer, then nothing).

Words in the user's text that change the behaviour of echo:

* a tool's name, or the word "tool": it calls the named tools, or the first one. With "parallel"
  it makes at least two calls at once (the first two tools if none is named, or one tool twice).
  Tool results are quoted, and no further tool is called.
* the name of a web search tool of the provider: it reports a search, and then answers.
* `sandbox: call 3 times` (or any number), with a tool's name: it makes that many calls one after
  the other, each after the previous result, like models that search repeatedly.
* `sandbox: arguments {…}`, with a tool's name: it calls the tool with this JSON, on one line.
* `sandbox: refuse`: it refuses.
* `sandbox: cached`: half of the prompt counts as read from the provider's cache.
  (If the request has cache marks, half of the prompt counts as written to the cache.)
* `sandbox: redact`: its thinking is redacted.
* `sandbox: repeat`: it repeats the prefill, like models that cannot continue one.
* `sandbox: recite`: it repeats every text that it was sent, each with its role.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    FinishReason,
    Media,
    MediaKind,
    Role,
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
)
from gateway.inference.v1.inference_pb2 import (
    Choice,
    Finish,
    GenerateRequest,
    OutputFormat,
    Tool,
    ToolChoice,
)
from services.sandbox.model import requests
from services.sandbox.model.answers import Answer, written
from services.sandbox.model.example_texts import ExampleTexts, dump
from services.sandbox.model.images import read_image
from services.sandbox.model.models import (
    MAX_OUTPUT_TOKENS,
    Model,
    SandboxError,
    TooLongError,
    not_made_for,
    refuse_failing,
)
from services.sandbox.model.requests import first_tokens, tokens
from services.sandbox.model.signatures import redact

_KINDS: Mapping[MediaKind.ValueType, str] = {
    conversation_pb2.MEDIA_KIND_IMAGE: "image",
    conversation_pb2.MEDIA_KIND_DOCUMENT: "document",
    conversation_pb2.MEDIA_KIND_AUDIO: "audio",
    conversation_pb2.MEDIA_KIND_VIDEO: "video",
}
_ROLES: Mapping[Role.ValueType, str] = {
    conversation_pb2.ROLE_USER: "user",
    conversation_pb2.ROLE_ASSISTANT: "assistant",
    conversation_pb2.ROLE_SYSTEM: "system",
    conversation_pb2.ROLE_DEVELOPER: "system",
}
_QUOTED_CHARACTERS = 4_000
_FILLED_CHARACTERS = 200
# Characters of the user's text in which names of tools are looked for, and calls of a choice.
_READ_CHARACTERS = 100_000
_MAX_CALLS = 100
# Name of the schema of a text, unlike any tool's.
_ANSWER = "answer"
_TIMES = re.compile(r"sandbox: call (\d{1,3}) times")
_ARGUMENTS = "sandbox: arguments {"
_TOOL_WORD = re.compile(r"\btools?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Question:
    """A request, with what is the same for all choices of its answer.

    Attributes:
        prompt: the text to be answered.
        digest: of the prompt.
        called_tools: the tools that each choice calls.
        examples: makes the texts that match schemas.
    """

    request: GenerateRequest
    model: Model
    prompt: str
    digest: str
    called_tools: Sequence[Tool]
    examples: ExampleTexts


def answer(request: GenerateRequest, model: Model) -> Answer:
    """Answer a request; equal requests get equal answers.

    Opaque tools are treated as tools with free text as input; other opaque parts are ignored.

    Raises:
        SandboxError: the model rejects the request, or always fails.
    """
    refuse_failing(model)
    if model.embeds or model.transcribes:
        raise not_made_for(model, "does not chat")
    input_tokens = requests.input_tokens(request)
    _check(request, model, input_tokens)
    question = _question(request, model)
    choices = [_choice(question, number) for number in range(request.n or 1)]
    usage = _usage(request, choices, input_tokens)
    return Answer(choices, usage, requests.top_logprobs(request))


def _check(request: GenerateRequest, model: Model, input_tokens: int) -> None:
    for medium in requests.media(request.messages):
        if medium.kind not in model.reads:
            kind = _KINDS[medium.kind]
            plural = kind if kind == "audio" else f"{kind}s"
            raise SandboxError("invalid", 400, f"The model {model.name} does not read {plural}")
    if request.max_tokens > MAX_OUTPUT_TOKENS:
        raise SandboxError(
            "invalid",
            400,
            f"{request.max_tokens} > {MAX_OUTPUT_TOKENS}, which is the maximum number of output "
            f"tokens of {model.name}",
            path=("max_tokens",),
        )
    if input_tokens > model.context_window:
        raise TooLongError(input_tokens, model.context_window)


def _question(request: GenerateRequest, model: Model) -> _Question:
    prompt = _pending(request)
    is_pending = bool(prompt)
    prompt = prompt or "\n".join(requests.unanswered_texts(request))
    is_answered = not is_pending and any(requests.results(requests.asked(request)))
    return _Question(
        request,
        model,
        prompt,
        sha256(prompt.encode()).hexdigest(),
        [] if is_answered else _called_tools(request, prompt),
        ExampleTexts(prompt),
    )


def _choice(question: _Question, number: int) -> Choice:
    request, model, prompt = question.request, question.model, question.prompt
    thoughts: list[Block] = []
    if requests.thinks(request):
        thought = f"The sandbox thinks about what it was sent: {_quote(prompt)}."
        is_redacted = "sandbox: redact" in prompt
        thoughts.append(_thinking(thought, is_redacted=is_redacted))
    if "sandbox: refuse" in prompt:
        refusal = Block(refusal=f"Sandbox {model.name}: I refuse, as I was asked to.")
        return _bounded([*thoughts, refusal], conversation_pb2.FINISH_REASON_REFUSAL, request)
    thoughts += _searches(question, number)
    calls = _calls(question, number)
    if calls:
        is_forced = request.tool_choice.mode in (ToolChoice.MODE_ANY, ToolChoice.MODE_TOOL)
        announcements = [] if is_forced else [_announce(calls, model)]
        blocks = [*thoughts, *announcements, *(Block(tool_use=call) for call in calls)]
        return _bounded(blocks, conversation_pb2.FINISH_REASON_TOOL_USE, request)
    text = _continued(_text(question, number), requests.prefill(request), prompt)
    reason = conversation_pb2.FINISH_REASON_END_TURN
    return _bounded([*thoughts, Block(text=text)], reason, request)


def _thinking(text: str, *, is_redacted: bool) -> Block:
    return (
        Block(redacted_thinking=redact(text))
        if is_redacted
        else Block(thinking=Thinking(text=text))
    )


def _text(question: _Question, number: int) -> str:
    request, model, prompt = question.request, question.model, question.prompt
    form = request.output_format
    if form.kind == OutputFormat.KIND_JSON_SCHEMA:
        return question.examples.match(form.schema, _ANSWER)
    if form.kind == OutputFormat.KIND_JSON_OBJECT:
        return dump({"sandbox": model.name, "said": prompt[:_QUOTED_CHARACTERS]})
    if "sandbox: recite" in prompt:
        return "\n\n".join(
            f"[{_ROLES[message.role]}]\n{text}"
            for message in request.messages
            for text in requests.texts([message])
        )
    suffix = f" (choice {number + 1})" if number else ""
    results = list(requests.results(requests.asked(request)))
    sentences = []
    if prompt or not results:
        sentences.append(f"you said {_quote(prompt)}.")
    sentences += map(_describe_result, results)
    media = requests.media(request.messages)
    sentences += [f"{_describe_medium(medium, place)}." for place, medium in enumerate(media, 1)]
    instructions = [one for one in request.messages if _ROLES[one.role] == "system"]
    if system := "\n".join(requests.texts(instructions)):
        sentences.append(f"The system prompt is {_quote(system)}.")
    return f"Sandbox {model.name}{suffix}: {' '.join(sentences)}"


def _describe_result(result: ToolResult) -> str:
    verb = "failed with" if result.is_error else "answered"
    return f"The tool {verb} {_quote(requests.result_text(result))}."


def _describe_medium(medium: Media, place: int) -> str:
    """Describe a medium: its kind, and its name, format, size in pixels and bytes if known."""
    kind = _KINDS[medium.kind]
    kind_in_words = f"Medium {place} is {'an' if kind in ('image', 'audio') else 'a'} {kind}"
    facts = [f"named {_quote(medium.name)}"] if medium.name else []
    if not medium.HasField("data"):
        facts.append(f"at {_quote(medium.url or medium.file_id)}")
    else:
        image = read_image(medium.data) if kind == "image" else None
        if image:
            facts.append(f"{image.format} of {image.width}x{image.height} pixels")
        elif medium.mime_type:
            facts.append(medium.mime_type)
        facts.append(f"{len(medium.data)} bytes")
    return f"{kind_in_words}, {', '.join(facts)}"


def _quote(text: str) -> str:
    return f'"{text[:_QUOTED_CHARACTERS]}{"…" if len(text) > _QUOTED_CHARACTERS else ""}"'


def _continued(text: str, prefill: str, prompt: str) -> str:
    """Return the text that follows the prefill: its continuation, or the text after a space."""
    if not prefill:
        return text
    continuation = text.removeprefix(prefill)
    if continuation == text and not prefill[-1].isspace():
        continuation = f" {text}"
    return prefill + continuation if "sandbox: repeat" in prompt else continuation


def _pending(request: GenerateRequest) -> str:
    """Return the text that asks for more calls than have been made, "" if there is none."""
    results = 0
    for message in reversed(request.messages):
        results += sum(1 for _ in requests.results([message]))
        prompt = "\n".join(requests.texts([message]))
        if _ROLES[message.role] == "user" and (requested_count := _TIMES.search(prompt)):
            return prompt if results < int(requested_count[1]) else ""
    return ""


def _called_tools(request: GenerateRequest, prompt: str) -> list[Tool]:
    """Return the tools that a choice calls, in the order of its calls."""
    choice = request.tool_choice
    tools = [tool for tool in request.tools if not tool.HasField("web")]
    if not tools or choice.mode == ToolChoice.MODE_NONE:
        return []
    is_parallel = "parallel" in prompt.lower()
    called = _named_tools(tools, prompt, is_parallel)
    if choice.mode == ToolChoice.MODE_TOOL:
        called = [tool for tool in tools if tool.name == choice.name]
    elif choice.mode == ToolChoice.MODE_ANY:
        called = called or tools[:1]
    if is_parallel and len(called) == 1:
        called *= 2
    if choice.disable_parallel_tool_use:
        called = called[:1]
    return called[:_MAX_CALLS]


def _calls(question: _Question, number: int) -> list[ToolUse]:
    return [
        ToolUse(
            id=_call_id(question, number, place),
            name=tool.name,
            input=_input(question, tool),
            freeform=tool.opaque,
        )
        for place, tool in enumerate(question.called_tools)
    ]


def _searches(question: _Question, number: int) -> list[Block]:
    """Return the model's own web searches."""
    request, prompt = question.request, question.prompt
    choice = request.tool_choice
    tools = [tool for tool in request.tools if tool.HasField("web")]
    if not tools or choice.mode == ToolChoice.MODE_NONE:
        return []
    if any(requests.results(requests.asked(request))):
        return []
    searched_tools = _named_tools(tools, prompt, is_parallel=False)
    if choice.mode == ToolChoice.MODE_TOOL:
        searched_tools = [tool for tool in tools if tool.name == choice.name]
    query = dump({"query": prompt[:_FILLED_CHARACTERS]})
    return [
        Block(
            server_tool_use=ToolUse(
                id=_call_id(question, number, place), name=tool.name, input=query
            )
        )
        for place, tool in enumerate(searched_tools[:_MAX_CALLS])
    ]


def _named_tools(tools: Sequence[Tool], prompt: str, is_parallel: bool) -> list[Tool]:
    """Return the tools that the prompt names, else the first ones if it asks for tools."""
    spoken = prompt[:_READ_CHARACTERS].lower()
    named = [
        tool
        for tool in tools
        if tool.name.lower() in spoken or tool.name.lower().replace("_", " ") in spoken
    ]
    if named:
        return named
    if is_parallel:
        return list(tools[:2])
    return list(tools[:1]) if _TOOL_WORD.search(prompt) else []


def _announce(calls: list[ToolUse], model: Model) -> Block:
    names = " and ".join(call.name for call in calls)
    return Block(text=f"Sandbox {model.name}: I call {names}.")


def _input(question: _Question, tool: Tool) -> str:
    if tool.opaque:
        return question.prompt[:_FILLED_CHARACTERS]
    _, directive, following = question.prompt[:_READ_CHARACTERS].partition(_ARGUMENTS)
    arguments, end, _ = following.partition("\n")[0].rpartition("}")
    if directive and end:
        return f"{{{arguments}}}"
    return question.examples.match(tool.input_schema, f"tool {tool.name}")


def _call_id(question: _Question, number: int, place: int) -> str:
    """Return a deterministic id that differs from those of other calls in the conversation."""
    seed = f"{len(question.request.messages)} {number} {place} {question.digest}"
    return sha256(seed.encode()).hexdigest()[:24]


def _bounded(
    blocks: Sequence[Block], reason: FinishReason.ValueType, request: GenerateRequest
) -> Choice:
    """End the answer at the first stop string, or when the tokens are used up."""
    # The choices share the model's maximum: a short request may ask for 128 of them.
    left = MAX_OUTPUT_TOKENS // (request.n or 1)
    if request.HasField("max_tokens"):
        left = min(left, request.max_tokens)
    kept: list[Block] = []
    for block in blocks:
        text, stop = written(block), ""
        if block.HasField("text"):
            text, stop = cut_at_stop(text, request.stop_sequences)
        cut = first_tokens(text, left + 1)
        is_cut = len(cut) > left
        if is_cut and block.HasField("tool_use"):
            return _ended(kept, conversation_pb2.FINISH_REASON_MAX_TOKENS)
        shown = "".join(cut[:left]) if is_cut else text
        if shown or not (block.HasField("text") or block.HasField("refusal")):
            kept.append(_with_text(block, shown))
        if is_cut:
            return _ended(kept, conversation_pb2.FINISH_REASON_MAX_TOKENS)
        if stop:
            return _ended(kept, conversation_pb2.FINISH_REASON_STOP_SEQUENCE, stop)
        left -= len(cut)
    return _ended(kept, reason)


def _ended(blocks: Sequence[Block], reason: FinishReason.ValueType, stop: str = "") -> Choice:
    return Choice(blocks=blocks, finish=Finish(reason=reason, stop_sequence=stop))


def _with_text(block: Block, text: str) -> Block:
    match block.WhichOneof("kind"):
        case "text":
            return Block(text=text)
        case "refusal":
            return Block(refusal=text)
        case "tool_use" | "server_tool_use":
            return block
    return _thinking(text, is_redacted=block.HasField("redacted_thinking"))


def cut_at_stop(text: str, stops: Sequence[str]) -> tuple[str, str]:
    """Return the text before the stop string that ends first, and that string or ""."""
    ends = [(at + len(stop), at, stop) for stop in stops if (at := text.find(stop)) >= 0]
    if not ends:
        return text, ""
    _, at, stop = min(ends, key=lambda end: end[0])
    return text[:at], stop


def _usage(request: GenerateRequest, choices: Sequence[Choice], total: int) -> Usage:
    output = reasoning = 0
    for choice in choices:
        for block in choice.blocks:
            size = len(tokens(written(block)))
            output += size
            if block.HasField("thinking") or block.HasField("redacted_thinking"):
                reasoning += size
    reads_cache = any("sandbox: cached" in text for text in requests.texts(requests.asked(request)))
    cached = total // 2 if reads_cache or requests.has_cache_marks(request) else 0
    return Usage(
        input_tokens=total - cached,
        output_tokens=output,
        cache_creation_input_tokens=0 if reads_cache else cached,
        cache_read_input_tokens=cached if reads_cache else 0,
        reasoning_tokens=reasoning,
    )
