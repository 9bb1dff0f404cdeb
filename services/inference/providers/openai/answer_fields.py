"""Fields of chat completions: token counts, and those that the canonical answer lacks. Pure.

Callers of the same dialect receive all unknown fields. For other callers, unknown content (a
recording, images, parts of new types) is replaced by text, or mentioned in a note.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Citation, Usage
from gateway.inference.v1.inference_pb2 import Event
from services.inference.providers.bounds import dump, tokens
from services.inference.providers.opaque_json import Json

# Maximum bytes of JSON of unknown usage fields; each usage event repeats all of it.
_MAX_USAGE = 16 << 10
# Fields with a canonical counterpart, under OpenAI's names.
_PROMPT, _COMPLETION = "prompt_tokens_details", "completion_tokens_details"
_DETAILS = {
    _PROMPT: frozenset({"cached_tokens", "cache_write_tokens"}),
    _COMPLETION: frozenset({"reasoning_tokens"}),
}
_NAMED = frozenset({"prompt_tokens", "completion_tokens", "total_tokens", *_DETAILS})
# Fields that have a canonical counterpart, or describe a single chunk.
KNOWN_ANSWER_FIELDS = frozenset(
    {"id", "object", "created", "model", "choices", "usage", "obfuscation"}
)
KNOWN_CHOICE_FIELDS = frozenset({"index", "message", "delta", "logprobs", "finish_reason"})
KNOWN_MESSAGE_FIELDS = frozenset({"role", "content", "refusal", "tool_calls", "reasoning_content"})
KNOWN_CALL_FIELDS = frozenset({"id", "type", "index", "function", "custom"})
_KNOWN_FUNCTION_FIELDS = frozenset({"name", "arguments", "input"})
_HTTP = ("http://", "https://")
_MAX_INDEX = 2**32 - 1


def read_usage(reported: Json, previous: Usage | None) -> Event:
    """Return the usage event; OpenAI's `prompt_tokens` include those of its cache.

    Args:
        reported: the server's usage.
        previous: the usage received before, whose counts never fall; None if there is none.

    Raises:
        ValueError: a count is invalid, or the unknown fields are too large.
    """
    event = Event()
    usage = event.usage
    add_unknown_usage(usage, reported)
    prompt: Json = reported.get(_PROMPT) or {}
    completion: Json = reported.get(_COMPLETION) or {}
    # Some servers have the names of responses, and some only the total beside the input.
    total = tokens(reported.get("prompt_tokens") or reported.get("input_tokens") or 0)
    output = tokens(reported.get("completion_tokens") or reported.get("output_tokens") or 0)
    if total and not output:
        output = max(0, tokens(reported.get("total_tokens") or 0) - total)
    # DeepSeek and Moonshot use their own names.
    cached = (
        prompt.get("cached_tokens")
        or reported.get("prompt_cache_hit_tokens")
        or reported.get("cached_tokens")
    )
    read, written = tokens(cached or 0), tokens(prompt.get("cache_write_tokens") or 0)
    usage.input_tokens = max(0, total - read - written)
    usage.output_tokens = output
    usage.cache_creation_input_tokens = written
    usage.cache_read_input_tokens = read
    usage.reasoning_tokens = tokens(completion.get("reasoning_tokens") or 0)
    if previous is not None:
        keep_counts(usage, previous)
    return event


def add_unknown_usage(usage: Usage, reported: Json) -> None:
    """Add the unknown usage fields.

    Raises:
        ValueError: they are too large.
    """
    further: Json = {}
    for name, value in reported.items():
        if name not in _NAMED and value is not None:
            further[name] = value
    for name, named in _DETAILS.items():
        details: Json = reported.get(name) or {}
        for key, value in details.items():
            if value and key not in named:
                further.setdefault(name, {})[key] = value
    if not further:
        return
    json = dump(further)
    if len(json) > _MAX_USAGE:
        raise ValueError("too much usage")
    usage.extra.dialect = conversation_pb2.DIALECT_OPENAI
    usage.extra.json = json


def keep_counts(usage: Usage, previous: Usage) -> None:
    """Replace counts that are lower than the previous ones: some servers end with zeros."""
    if _input(usage) < _input(previous):
        usage.input_tokens = previous.input_tokens
        usage.cache_creation_input_tokens = previous.cache_creation_input_tokens
        usage.cache_read_input_tokens = previous.cache_read_input_tokens
    usage.output_tokens = max(usage.output_tokens, previous.output_tokens)
    usage.reasoning_tokens = max(usage.reasoning_tokens, previous.reasoning_tokens)


def _input(usage: Usage) -> int:
    cached = usage.cache_creation_input_tokens + usage.cache_read_input_tokens
    return usage.input_tokens + cached


def unknown_choice_fields(choice: Json) -> Json:
    """Return a choice's unknown fields that are not null."""
    if choice.keys() <= KNOWN_CHOICE_FIELDS:
        return {}
    return {
        name: value
        for name, value in choice.items()
        if name not in KNOWN_CHOICE_FIELDS and value is not None
    }


def unknown_message_fields(delta: Json) -> Json:
    """Return a message's unknown fields that are not empty."""
    if delta.keys() <= KNOWN_MESSAGE_FIELDS:
        return {}
    return {
        name: value
        for name, value in delta.items()
        if name not in KNOWN_MESSAGE_FIELDS
        and value not in (None, "", [], {})
        and not (name == "reasoning" and isinstance(value, str))
    }


def unknown_call_fields(call: Json, kind: str, function: Json) -> Json:
    """Return the unknown fields of a tool call, and of its `function` or `custom`, its kind."""
    if call.keys() <= KNOWN_CALL_FIELDS and function.keys() <= _KNOWN_FUNCTION_FIELDS:
        return {}
    fields = {
        name: value
        for name, value in call.items()
        if name not in KNOWN_CALL_FIELDS and value is not None
    }
    inner = {name: value for name, value in function.items() if name not in _KNOWN_FUNCTION_FIELDS}
    if inner:
        fields[kind] = inner
    return fields


def thinking_in_details(details: object) -> str:
    """Return the readable thinking in OpenRouter's `reasoning_details`."""
    items: Sequence[Any] = details if isinstance(details, list) else ()
    texts = (
        item.get("text") or item.get("summary") or "" for item in items if isinstance(item, dict)
    )
    return "".join(text for text in texts if isinstance(text, str))


def take_call(fields: Json) -> Sequence[Json]:
    """Return the call in the deprecated `function_call` of a message, and remove it.

    A piece of it in a stream is a piece of the first call.
    """
    function = fields.pop("function_call", None)
    return [{"index": 0, "type": "function", "function": function}] if function else ()


def take_citations(fields: Json) -> list[Citation]:
    """Return the pages in the `annotations` of a message, and remove them.

    Without a range, which some servers do not send, `start_index` and `end_index` are 0.
    """
    annotations = fields.pop("annotations", None)
    citations, others = [], []
    for annotation in annotations if isinstance(annotations, list) else ():
        if citation := _citation(annotation):
            citations.append(citation)
        else:
            others.append(annotation)
    if others:
        fields["annotations"] = others
    return citations


def _citation(annotation: object) -> Citation | None:
    match annotation:
        case {"url_citation": {"url": str(url), **fields}} if url.startswith(_HTTP):
            pass
        case _:
            return None
    title = fields.get("title")
    citation = Citation(url=url, title=title if isinstance(title, str) else "")
    match fields:
        case {"start_index": int(start), "end_index": int(end)} if 0 <= start < end <= _MAX_INDEX:
            citation.start_index, citation.end_index = start, end
    return citation


def pages_of(answer: Json) -> list[Citation]:
    """Return the pages beside an answer, without ranges; see `take_citations`.

    Perplexity and xAI send their addresses as `citations`, and Perplexity their titles in
    `search_results`.
    """
    given, results = answer.get("citations"), answer.get("search_results")
    if not (given or results):
        return []
    titles = {
        result["url"]: result.get("title")
        for result in (results if isinstance(results, list) else ())
        if isinstance(result, dict) and isinstance(result.get("url"), str)
    }
    urls = given if isinstance(given, list) and given else titles
    return [
        Citation(url=url, title=title if isinstance(title := titles.get(url), str) else "")
        for url in urls
        if isinstance(url, str) and url.startswith(_HTTP)
    ]


def annotations_of(citations: Iterable[Citation]) -> list[Json]:
    """Return citations as annotations without a range."""
    return [
        {"type": "url_citation", "url_citation": {"url": one.url, "title": one.title}}
        for one in citations
    ]


def fields_as_texts(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield texts that replace a message's unknown fields for callers of another dialect."""
    audio = fields.get("audio")
    if isinstance(audio, dict) and isinstance(audio.get("transcript"), str):
        yield audio["transcript"]
    images = fields.get("images")
    for image in images if isinstance(images, list) else ():
        if text := image_as_text(image):
            yield text


def image_as_text(part: object) -> str:
    """Return the text that replaces an image; "" if the part is not an image.

    Image bytes are omitted: as text they would be megabytes, which the next turn would send back.
    """
    match part:
        case {"image_url": {"url": str(url)}} | {"image_url": str(url)}:
            pass
        case _:
            return ""
    if not url.startswith("data:"):
        return f"![image]({url})"
    kind = url[5:].partition(";")[0][:64]
    return f"[An image ({kind}) that this endpoint cannot show; chat completions do.]"
