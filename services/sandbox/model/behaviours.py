"""What the sandbox's models do: pure functions from a prompt to an answer.

Models that callers find in the catalogue:

=========  ====================================================================
echo       says back what it was sent; does tools, thinking, stop strings,
           prefill, max_tokens, JSON Schema; names media by format and size
text       the same, but refuses every medium
vision     the same, but for images alone
slow       as echo, with 50 ms before each piece of the answer
fail-429   always answers that its rate is limited, with a time to wait
fail-500   always answers that it failed
stall      accepts and never answers
cut        breaks off in the middle of the answer
=========  ====================================================================

`embed` makes vectors of texts, and does not chat: texts that share words are near.
`transcribe` tells how long a recording is.

Further names, for tests of what a provider can do to a gateway: `fail-401`,
`fail-403`, `fail-503`, `fail-529`, `fail-context` (the prompt is too long), `small`
(as echo, but a prompt of more than 40,000 tokens is too long), `fail-late` (reports a
failure in the middle of a stream), `stall-open` (opens the stream, then silence),
`stall-half` (half of the answer, then silence).

Words in the user's text that change what echo does:

* a tool's name, or the word "tool": it calls that tool, or the first one; with
  "parallel" it calls two at once (those named, the first two, or the one twice).
  Results of tools are quoted, and no further tool is called.
* `sandbox: call 3 times` (or any number): with a tool's name; it calls one tool after the other,
  each time once the last one's result has come, as models do that search on.
* `sandbox: refuse`: it refuses.
* `sandbox: cached`: half of the prompt counts as read from the provider's cache.
  (Where the request marks parts for the cache, half counts as put into it.)
* `sandbox: redact`: its thinking is hidden.
* `sandbox: repeat`: it says the prefill again, as models do that cannot continue one.
* `sandbox: recite`: it says every text that it was sent, and whose it is.
"""

import json
import re
from hashlib import sha256

from services.sandbox.model.images import read_image
from services.sandbox.model.instances import NoInstanceError, instance
from services.sandbox.model.models import (
    MAX_OUTPUT_TOKENS,
    Model,
    SandboxError,
    TooLongError,
    not_made_for,
    refuse_failing,
)
from services.sandbox.model.requests import (
    Answer,
    Call,
    Finish,
    Medium,
    Piece,
    Prompt,
    Reply,
    Text,
    Thinking,
    Tool,
    ToolResult,
    Usage,
    tokens,
)

_QUOTED_CHARACTERS = 4_000
_FILLED_CHARACTERS = 200
_TIMES = re.compile(r"sandbox: call (\d{1,3}) times")
_TOOL_WORD = re.compile(r"\btools?\b", re.IGNORECASE)


def answer(prompt: Prompt, model: Model) -> Answer:
    """Answer a prompt; the same prompt gets the same answer.

    Raises:
        SandboxError: the model refuses the prompt, or failing is what it does.
    """
    refuse_failing(model)
    if model.embeds or model.transcribes:
        raise not_made_for(model, "does not chat")
    _check(prompt, model)
    replies = tuple(_reply(prompt, model, choice) for choice in range(prompt.n))
    return Answer(replies, _usage(prompt, replies), prompt.top_logprobs)


def _check(prompt: Prompt, model: Model) -> None:
    for turn in prompt.turns:
        for medium in turn.media:
            if medium.kind not in model.reads:
                plural = "audio" if medium.kind == "audio" else f"{medium.kind}s"
                raise SandboxError("invalid", 400, f"The model {model.name} does not read {plural}")
    if prompt.max_tokens is not None and prompt.max_tokens > MAX_OUTPUT_TOKENS:
        raise SandboxError(
            "invalid",
            400,
            f"{prompt.max_tokens} > {MAX_OUTPUT_TOKENS}, which is the maximum number of output "
            f"tokens of {model.name}",
            path=("max_tokens",),
        )
    if (size := prompt.input_tokens()) > model.context_window:
        raise TooLongError(size, model.context_window)


def _reply(prompt: Prompt, model: Model, choice: int) -> Reply:
    asked = _pending(prompt)
    is_pending = bool(asked)
    asked = asked or "\n".join(text for turn in prompt.asked() for text in turn.texts)
    thoughts: list[Piece] = []
    if prompt.thinking:
        thought = f"The sandbox thinks about what it was sent: {_quote(asked)}."
        thoughts.append(Thinking(thought, redacted="sandbox: redact" in asked))
    if "sandbox: refuse" in asked:
        refusal = Text(f"Sandbox {model.name}: I refuse, as I was asked to.", refusal=True)
        return _bounded([*thoughts, refusal], Finish.REFUSAL, prompt)
    calls = _calls(prompt, asked, choice, is_pending=is_pending)
    if calls:
        said = [] if prompt.tool_choice.mode in ("any", "tool") else [_announce(calls, model)]
        return _bounded([*thoughts, *said, *calls], Finish.TOOL_USE, prompt)
    text = _continued(_text(prompt, model, asked, choice), prompt.prefill, asked)
    return _bounded([*thoughts, Text(text)], Finish.END_TURN, prompt)


def _text(prompt: Prompt, model: Model, asked: str, choice: int) -> str:
    if prompt.schema is not None:
        return _dump(_filled(prompt.schema, asked))
    if prompt.json_object:
        return _dump({"sandbox": model.name, "said": asked[:_QUOTED_CHARACTERS]})
    if "sandbox: recite" in asked:
        return "\n\n".join(f"[{turn.role}]\n{text}" for turn in prompt.turns for text in turn.texts)
    number = f" (choice {choice + 1})" if choice else ""
    results = [result for turn in prompt.asked() for result in turn.results]
    sentences = []
    if asked or not results:
        sentences.append(f"you said {_quote(asked)}.")
    sentences += [_told(result) for result in results]
    media = [medium for turn in prompt.turns for medium in turn.media]
    sentences += [f"{_describe(medium, place)}." for place, medium in enumerate(media, 1)]
    if system := "\n".join(
        text for turn in prompt.turns if turn.role == "system" for text in turn.texts
    ):
        sentences.append(f"The system prompt is {_quote(system)}.")
    return f"Sandbox {model.name}{number}: {' '.join(sentences)}"


def _told(result: ToolResult) -> str:
    return f"The tool {'failed with' if result.is_error else 'answered'} {_quote(result.text)}."


def _describe(medium: Medium, place: int) -> str:
    """Name a medium: kind, format, size in pixels and bytes, as far as they are known."""
    what = f"Medium {place} is {'an' if medium.kind in ('image', 'audio') else 'a'} {medium.kind}"
    facts = [f"named {_quote(medium.name)}"] if medium.name else []
    if medium.data is None:
        facts.append(f"at {_quote(medium.reference)}")
    else:
        image = read_image(medium.data) if medium.kind == "image" else None
        if image:
            facts.append(f"{image.format} of {image.width}x{image.height} pixels")
        elif medium.mime_type:
            facts.append(medium.mime_type)
        facts.append(f"{len(medium.data)} bytes")
    return f"{what}, {', '.join(facts)}"


def _quote(text: str) -> str:
    return f'"{text[:_QUOTED_CHARACTERS]}{"…" if len(text) > _QUOTED_CHARACTERS else ""}"'


def _continued(text: str, prefill: str, asked: str) -> str:
    """Return what comes after the prefill: the rest of the text, or the text after a space."""
    if not prefill:
        return text
    rest = text.removeprefix(prefill)
    if rest == text and not prefill[-1].isspace():
        rest = f" {text}"
    return prefill + rest if "sandbox: repeat" in asked else rest


def _pending(prompt: Prompt) -> str:
    """Return the text that asks for more calls than were made, "" where none is missing."""
    results = 0
    for turn in reversed(prompt.turns):
        results += len(turn.results)
        asked = "\n".join(turn.texts)
        if turn.role == "user" and (wanted := _TIMES.search(asked)):
            return asked if results < int(wanted[1]) else ""
    return ""


def _calls(prompt: Prompt, asked: str, choice: int, *, is_pending: bool) -> list[Call]:
    chosen = prompt.tool_choice
    answered = not is_pending and any(turn.results for turn in prompt.asked())
    if not prompt.tools or chosen.mode == "none" or answered:
        return []
    parallel = "parallel" in asked.lower()
    wanted = _wanted(prompt.tools, asked, parallel)
    if chosen.mode == "tool":
        wanted = [tool for tool in prompt.tools if tool.name == chosen.name]
    elif chosen.mode == "any":
        wanted = wanted or [prompt.tools[0]]
    if parallel and len(wanted) == 1:
        wanted *= 2
    if not chosen.parallel:
        wanted = wanted[:1]
    return [
        Call(_key(prompt, asked, choice, place), tool.name, _input(tool, asked), tool.freeform)
        for place, tool in enumerate(wanted)
    ]


def _wanted(tools: tuple[Tool, ...], asked: str, parallel: bool) -> list[Tool]:
    """Return the tools that the user's text speaks of."""
    spoken = asked.lower()
    named = [
        tool
        for tool in tools
        if tool.name.lower() in spoken or tool.name.lower().replace("_", " ") in spoken
    ]
    if named:
        return named
    if parallel:
        return list(tools[:2])
    return [tools[0]] if _TOOL_WORD.search(asked) else []


def _announce(calls: list[Call], model: Model) -> Text:
    return Text(f"Sandbox {model.name}: I call {' and '.join(call.name for call in calls)}.")


def _input(tool: Tool, asked: str) -> str:
    return asked[:_FILLED_CHARACTERS] if tool.freeform else _dump(_filled(tool.schema, asked))


def _filled(schema: object, asked: str) -> object:
    try:
        return instance(schema if isinstance(schema, dict) else {}, asked[:_FILLED_CHARACTERS])
    except NoInstanceError as error:
        raise SandboxError(
            "invalid", 400, f"The sandbox cannot fill the schema: {error}"
        ) from error


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _key(prompt: Prompt, asked: str, choice: int, place: int) -> str:
    """Make an id that is the same each time, and another one later in the conversation."""
    seed = f"{len(prompt.turns)} {choice} {place} {asked}"
    return sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _bounded(pieces: list[Piece], finish: Finish, prompt: Prompt) -> Reply:
    """End the answer at the first stop string or where the tokens are used up."""
    left = MAX_OUTPUT_TOKENS if prompt.max_tokens is None else prompt.max_tokens
    kept: list[Piece] = []
    for piece in pieces:
        match piece:
            case Call():
                if len(tokens(piece.input)) > left:
                    return Reply(tuple(kept), Finish.MAX_TOKENS)
                kept.append(piece)
                left -= len(tokens(piece.input))
                continue
            case Text() if not piece.refusal:
                text, stop = cut_at_stop(piece.text, prompt.stop)
            case _:
                text, stop = piece.text, ""
        written = tokens(text)
        shown = text if len(written) <= left else "".join(written[:left])
        if shown or isinstance(piece, Thinking):
            kept.append(_with_text(piece, shown))
        if len(written) > left:
            return Reply(tuple(kept), Finish.MAX_TOKENS)
        if stop:
            return Reply(tuple(kept), Finish.STOP_SEQUENCE, stop)
        left -= len(written)
    return Reply(tuple(kept), finish)


def _with_text(piece: Text | Thinking, text: str) -> Piece:
    if isinstance(piece, Text):
        return Text(text, piece.refusal)
    return Thinking(text, piece.redacted)


def cut_at_stop(text: str, stops: tuple[str, ...]) -> tuple[str, str]:
    """Return what comes before the stop string that is complete first, and that string or ""."""
    ends = [(at + len(stop), at, stop) for stop in stops if (at := text.find(stop)) >= 0]
    if not ends:
        return text, ""
    _, at, stop = min(ends, key=lambda found: found[0])
    return text[:at], stop


def _usage(prompt: Prompt, replies: tuple[Reply, ...]) -> Usage:
    total = prompt.input_tokens()
    written = reasoning = 0
    for reply in replies:
        for piece in reply.pieces:
            size = len(tokens(piece.input if isinstance(piece, Call) else piece.text))
            written += size
            reasoning += size if isinstance(piece, Thinking) else 0
    read = any("sandbox: cached" in text for turn in prompt.asked() for text in turn.texts)
    cached = total // 2 if read or prompt.cache_marks else 0
    return Usage(
        input=total - cached,
        output=written,
        cache_creation=0 if read else cached,
        cache_read=cached if read else 0,
        reasoning=reasoning,
    )
