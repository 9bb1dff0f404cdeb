"""Chat completions, whole or in chunks, as canonical events. Pure.

A whole answer goes through the same reader as a stream: its messages are read as
deltas that hold everything.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import FinishReason, Opaque
from gateway.inference.v1.inference_pb2 import Event
from services.common.errors import UpstreamError
from services.common.settings import Limits
from services.inference.providers import failures
from services.inference.providers.base import Call
from services.inference.providers.bounds import Bounds, dump, name_of, tokens
from services.inference.providers.frames import Frames
from services.inference.providers.openai.blocks import Blocks, TextKind, ToolCall
from services.inference.providers.openai.caller import Json
from services.inference.providers.sse import ServerSentEvent, read_event

DONE = b"[DONE]"

_REASONS = {
    "stop": conversation_pb2.FINISH_REASON_END_TURN,
    "length": conversation_pb2.FINISH_REASON_MAX_TOKENS,
    "tool_calls": conversation_pb2.FINISH_REASON_TOOL_USE,
    "function_call": conversation_pb2.FINISH_REASON_TOOL_USE,
    "content_filter": conversation_pb2.FINISH_REASON_REFUSAL,
    "model_length": conversation_pb2.FINISH_REASON_CONTEXT_WINDOW,  # Mistral
}
# Ends that are none: OpenRouter, DeepSeek and vLLM tell a failure so.
_FAILURES = frozenset({"error", "insufficient_system_resource", "abort"})
# Fields of an answer that the canonical model has names for, or that serve one chunk alone.
_NAMED = frozenset({"id", "object", "created", "model", "choices", "usage", "obfuscation"})
# What reading a value raises that has another type than it has to have, at whatever depth.
_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
# Fields of a delta that say something.
_SAID = frozenset({"content", "reasoning_content", "reasoning", "refusal", "tool_calls"})


class Failures(Protocol):
    """What makes a failure of a provider's words (an `Upstream`)."""

    name: str
    limits: Limits

    def in_band(self, body: bytes) -> UpstreamError:
        """Give the failure that an error object stands for."""


class StreamReader:
    """Reads one answer.

    Args:
        call: what was asked.
        upstream: makes failures of what the provider says.
        new_id: makes ids where the provider gives none.

    Attributes:
        ended: whether the provider has said that nothing follows.
    """

    def __init__(self, call: Call, upstream: Failures, new_id: Callable[[str], str]) -> None:
        self._call = call
        self._upstream = upstream
        self._new_id = new_id
        self.ended = False
        self._started = False
        self._bounds = Bounds(upstream.name, upstream.limits)
        self._choices: dict[int, _Choice] = {}
        self._n = max(1, call.request.n)
        self._running = self._n  # choices that have not ended
        self._dialect = call.request.dialect
        self._frames = Frames(_said, "obfuscation")
        self._speaker: _Choice | None = None  # whose delta the frames know again

    @property
    def is_complete(self) -> bool:
        """Whether every choice has ended, so that nothing but usage can be missing."""
        return self._running <= 0

    def feed(self, text: bytes, out: list[Event]) -> None:
        """Add to `out` the events that the text of server-sent events stands for, if any.

        Raises:
            UpstreamError: one tells an error, or is nothing that can be read; what came
                before it is in `out`.
        """
        frames, at = self._frames, 0
        while at < len(text) and not self.ended:
            pieces, at = frames.repeats(text, at)
            if pieces and self._speaker is not None:
                self._speaker.blocks.go_on(pieces, out)
                continue
            began = at
            sent, at = read_event(text, at)
            if sent is not None:
                frames.forget()
                known = len(out)
                self._take(sent, out)
                if len(out) > known:
                    self._learn(text[began:at], out[-1])

    def _take(self, sent: ServerSentEvent, out: list[Event]) -> None:
        """Read one server-sent event."""
        name, data = sent
        if name == "error":
            raise self._upstream.in_band(data)
        try:
            if data == DONE:
                self.end_all(out)
                self.ended = True
                return
            chunk = self._bounds.parse(data)
            if not isinstance(chunk, dict):
                raise self._broken("streamed something that is no JSON object", data)
            if chunk.get("error"):
                raise self._upstream.in_band(data)
            self.read(chunk, "delta", out)
        except _MALFORMED as error:
            raise self._broken("streamed a malformed chunk", data) from error

    def _learn(self, sent: bytes, event: Event) -> None:
        """Know server-sent events again that differ from one in what it said alone."""
        text = event.text or event.thinking or event.input
        if text and not event.logprobs:
            self._speaker = self._choices[event.choice]
            self._frames.learn(sent, text)

    def end(self) -> None:
        """Take the end of the stream.

        Raises:
            UpstreamError: it came too early.
        """
        if not self.is_complete:
            raise failures.cut_off(self._upstream.name)

    def read(self, chunk: Json, key: str, out: list[Event]) -> None:
        """Read one chunk, or a whole answer; `key` is where its choices hold what is said."""
        choices = chunk.get("choices")
        usage = chunk.get("usage")
        if not self._started and (choices or usage):
            # Azure sends chunks of its filter before, which have neither id nor model.
            self._start(chunk, out)
        for given in choices or ():
            number = given.get("index") or 0
            choice = self._choices.get(number) or self._begin(number)
            if choice.ended:
                continue
            choice.read(given.get(key) or {}, given.get("logprobs"), out)
            if reason := given.get("finish_reason"):
                self._finish(choice, reason, given.get("stop_reason"), out)
        if usage:
            out.append(_usage(usage))

    def _begin(self, number: object) -> "_Choice":
        """Return a new choice; raise ValueError where it was not asked for."""
        if type(number) is not int or not 0 <= number < self._n:
            raise ValueError("a choice that was not asked for")
        names = self._call.tool_names
        choice = self._choices[number] = _Choice(number, self._new_id, self._bounds, names)
        return choice

    def _start(self, chunk: Json, out: list[Event]) -> None:
        self._started = True
        extra = {
            name: value for name, value in chunk.items() if name not in _NAMED and value is not None
        }
        event = Event()
        start = event.start
        start.id = name_of(chunk.get("id") or self._new_id("chatcmpl-"))
        start.model = name_of(chunk.get("model") or self._call.target.upstream)
        if extra:
            start.extra.dialect = conversation_pb2.DIALECT_OPENAI
            start.extra.json = dump(extra)
        out.append(event)

    def _finish(self, choice: "_Choice", reason: str, matched: object, out: list[Event]) -> None:
        if reason in _FAILURES:
            raise self._broken(f"ended its answer with {reason!r}")
        event = Event(choice=choice.number)
        finish = event.finish
        finish.reason = _REASONS.get(reason, conversation_pb2.FINISH_REASON_END_TURN)
        if isinstance(matched, str) and matched in self._call.request.stop_sequences:
            # vLLM tells which one it was.
            finish.reason = conversation_pb2.FINISH_REASON_STOP_SEQUENCE
            finish.stop_sequence = matched
        if not choice.end(out):
            raise self._broken("called a tool without naming it")
        if finish.reason == conversation_pb2.FINISH_REASON_END_TURN:
            finish.reason = self._end_of_turn(choice)
        out.append(event)
        self._running -= 1

    def _end_of_turn(self, choice: "_Choice") -> FinishReason.ValueType:
        """Tell a plain `stop` apart, for callers whose dialect has finer words.

        OpenAI says `stop` after a refusal and after a call that was demanded by name.
        """
        if self._dialect != conversation_pb2.DIALECT_OPENAI:
            if "tool" in choice.blocks.kinds:
                return conversation_pb2.FINISH_REASON_TOOL_USE
            if "refusal" in choice.blocks.kinds:
                return conversation_pb2.FINISH_REASON_REFUSAL
        return conversation_pb2.FINISH_REASON_END_TURN

    def end_all(self, out: list[Event]) -> None:
        """Take the provider's word that all is said, also of choices it gave no reason for.

        Raises:
            UpstreamError: there was no choice, or one was left out.
        """
        # None is beyond those that were asked for.
        if not self._choices or max(self._choices) >= len(self._choices):
            raise failures.cut_off(self._upstream.name)
        for choice in self._choices.values():
            if not choice.ended:
                called = "tool" in choice.blocks.kinds
                self._finish(choice, "tool_calls" if called else "stop", None, out)
        self._running = 0

    def _broken(self, what: str, data: bytes = b"") -> UpstreamError:
        return failures.broken_answer(self._upstream.name, what, data)


def events_from_whole(
    answer: Json, call: Call, upstream: Failures, new_id: Callable[[str], str]
) -> list[Event]:
    """Give a whole answer as one batch of events.

    Raises:
        UpstreamError: it holds no choice, or is malformed.
    """
    reader = StreamReader(call, upstream, new_id)
    out: list[Event] = []
    if not answer.get("choices"):
        raise failures.broken_answer(upstream.name, "answered without a choice")
    try:
        reader.read(answer, "message", out)
        reader.end_all(out)
    except _MALFORMED as error:
        raise failures.broken_answer(upstream.name, "answered something malformed") from error
    return out


class _Choice:
    """One of the answers to one request, as it comes."""

    __slots__ = ("_bounds", "_calls", "_last", "_names", "_next", "blocks", "ended", "number")

    def __init__(
        self,
        number: int,
        new_id: Callable[[str], str],
        bounds: Bounds,
        names: Mapping[str, str],
    ) -> None:
        self.number = number
        self._names = names  # of tools, by those that the server knows them by
        self.ended = False
        self.blocks = Blocks(number, new_id, bounds)
        self._bounds = bounds
        self._calls: dict[int, ToolCall] = {}
        self._last = -1  # index of the call that came last
        self._next = 0  # index after all of them

    def read(self, delta: Json, given_logprobs: object, out: list[Event]) -> None:
        """Read a delta; fields without a name here say nothing."""
        logprobs = b""
        if given_logprobs:
            if not isinstance(given_logprobs, dict):
                raise TypeError("logprobs")
            logprobs = dump(given_logprobs)
        said: list[tuple[TextKind, str]] = []
        if thoughts := delta.get("reasoning_content") or delta.get("reasoning"):
            said.append(("thinking", thoughts))
        content = delta.get("content")
        if isinstance(content, list):
            said += _from_parts(content)
        elif content:
            said.append(("text", content))
        if refusal := delta.get("refusal"):
            said.append(("refusal", refusal))
        calls = delta.get("tool_calls")
        if logprobs and not said and not calls:
            said.append(("text", ""))  # a token of no text of its own, such as half a character
        blocks = self.blocks
        for kind, text in said:
            # Log probabilities are of the answer's own tokens, which end the delta.
            is_last = kind != "thinking"
            blocks.text(kind, text, logprobs if is_last else b"", out)
            if is_last:
                logprobs = b""
        for call in calls or ():
            self._read_call(call, logprobs, out)
            logprobs = b""

    def end(self, out: list[Event]) -> bool:
        """Close all; tell whether every call had a name."""
        self.ended = True
        return self.blocks.end(out)

    def _read_call(self, given: Json, logprobs: bytes, out: list[Event]) -> None:
        function: Json = given.get("function") or given.get("custom") or {}
        call = self._call_of(given, function)
        call.id = call.id or _text(given.get("id"))
        if not call.name:
            name = _text(function.get("name"))
            call.name = self._names.get(name, name)
        piece = function.get("arguments")
        if given.get("type") == "custom" or given.get("custom") is not None:
            call.freeform = True
            piece = function.get("input")
        if piece is not None and not isinstance(piece, str):
            piece = dump(piece).decode()  # some servers parse the arguments
        self.blocks.tool(call, piece or "", logprobs, out)

    def _call_of(self, given: Json, function: Json) -> ToolCall:
        """Find the call that a piece belongs to.

        Pieces say so by their index. Servers that leave it out, or give every call the
        same one, begin a call with an id and a name.
        """
        index = given.get("index")
        begins = bool(given.get("id") and function.get("name"))
        if not isinstance(index, int) or index < 0:
            index = self._last + 1 if begins or self._last < 0 else self._last
        elif begins and index in self._calls and self._calls[index].id not in ("", given["id"]):
            index = self._next
        self._last = index
        call = self._calls.get(index)
        if call is None:
            self._bounds.part()
            self._next = max(self._next, index + 1)
            call = self._calls[index] = self.blocks.new_call()
        return call


def _text(value: object) -> str:
    """Return a text, "" where there is none."""
    if not value:
        return ""
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _said(chunk: Any) -> str | None:
    """Give the string that a chunk says, if it says one alone; see `frames.Said`.

    What else a chunk can do gives an event after the one of what it says.
    """
    match chunk:
        case {"choices": [{"delta": dict(delta)}]}:
            said = {name: value for name, value in delta.items() if value and name in _SAID}
        case _:
            return None
    if len(said) != 1:
        return None
    match said:
        case {"tool_calls": [{"function": {"arguments": str(piece)}} as call]}:
            # Arguments in another place are rare, and read each for itself.
            is_plain = call.get("type") != "custom" and call.get("custom") is None
            return piece if is_plain else None
        case {"content": str(text)} | {"reasoning_content": str(text)} | {"reasoning": str(text)}:
            return text
    return None


def _from_parts(parts: Sequence[Json]) -> list[tuple[TextKind, str]]:
    """Read content that is a list of parts, as Mistral's reasoning models give it."""
    said: list[tuple[TextKind, str]] = []
    for part in parts:
        if part.get("type") == "text":
            said.append(("text", part["text"]))
        elif part.get("type") == "thinking":
            said += [("thinking", inner["text"]) for inner in part["thinking"] if "text" in inner]
    return said


def _usage(given: Json) -> Event:
    """Read token counts. OpenAI's `prompt_tokens` include those that came from its cache."""
    prompt: Json = {**(given.get("prompt_tokens_details") or {})}
    completion: Json = {**(given.get("completion_tokens_details") or {})}
    total = tokens(given.get("prompt_tokens") or 0)
    # DeepSeek has names of its own.
    cached = prompt.pop("cached_tokens", None) or given.get("prompt_cache_hit_tokens")
    read, written = tokens(cached or 0), tokens(prompt.pop("cache_write_tokens", None) or 0)
    event = Event()
    usage = event.usage
    usage.input_tokens = max(0, total - read - written)
    usage.output_tokens = tokens(given.get("completion_tokens") or 0)
    usage.cache_creation_input_tokens = written
    usage.cache_read_input_tokens = read
    usage.reasoning_tokens = tokens(completion.pop("reasoning_tokens", None) or 0)
    further: dict[str, Any] = {
        "prompt_tokens_details": _told(prompt),
        "completion_tokens_details": _told(completion),
    }
    if further := _told(further):
        usage.extra.CopyFrom(Opaque(dialect=conversation_pb2.DIALECT_OPENAI, json=dump(further)))
    return event


def _told(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value}
