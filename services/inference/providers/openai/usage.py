"""Token counts of chat completions. Pure."""

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.inference.v1.inference_pb2 import Event
from services.inference.providers.bounds import dump, tokens
from services.inference.providers.request_fields import Json

# Maximum bytes of JSON of unknown usage fields; each usage event repeats all of it.
_MAX_USAGE = 16 << 10
# Fields with a canonical counterpart, under OpenAI's names.
_PROMPT, _COMPLETION = "prompt_tokens_details", "completion_tokens_details"
_DETAILS = {
    _PROMPT: frozenset({"cached_tokens", "cache_write_tokens"}),
    _COMPLETION: frozenset({"reasoning_tokens"}),
}
_NAMED = frozenset({"prompt_tokens", "completion_tokens", "total_tokens", *_DETAILS})


def read_usage(reported: Json, previous: Usage | None) -> Event:
    """Return the usage event; OpenAI's `prompt_tokens` include those of its cache.

    Args:
        reported: the server's usage.
        previous: the usage received before, whose counts never fall; None if there is none.

    Raises:
        ValueError: a count is invalid, or the unknown fields are too large.
    """
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
    event = Event()
    usage = event.usage
    usage.input_tokens = max(0, total - read - written)
    usage.output_tokens = output
    usage.cache_creation_input_tokens = written
    usage.cache_read_input_tokens = read
    usage.reasoning_tokens = tokens(completion.get("reasoning_tokens") or 0)
    if previous is not None:
        keep_counts(usage, previous)
    add_unknown_usage(usage, reported)
    return event


def add_unknown_usage(usage: Usage, reported: Json) -> None:
    """Add the unknown usage fields.

    Raises:
        ValueError: they are too large.
    """
    further = {
        name: value for name, value in reported.items() if name not in _NAMED and value is not None
    }
    for name, named in _DETAILS.items():
        details: Json = reported.get(name) or {}
        if not details.keys() <= named:
            unknown_counts = {
                key: value for key, value in details.items() if value and key not in named
            }
            if unknown_counts:
                further[name] = unknown_counts
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
