"""Token counts of chat completions. Pure."""

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Opaque
from gateway.inference.v1.inference_pb2 import Event
from services.inference.providers.bounds import dump, tokens
from services.inference.providers.request_fields import Json

# Bytes of JSON that usage without a name may have; each event tells all of it again.
_MAX_USAGE = 16 << 10
# What the canonical usage says, under OpenAI's names.
_NAMED = frozenset(
    {
        *("prompt_tokens", "completion_tokens", "total_tokens"),
        *("prompt_tokens_details", "completion_tokens_details"),
    }
)


def read_usage(given: Json) -> Event:
    """Return token counts. OpenAI's `prompt_tokens` include those that came from its cache.

    Raises:
        ValueError: a count is none, or what has no name is too much.
    """
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
    further = {name: value for name, value in given.items() if name not in _NAMED}
    further |= _non_empty({"prompt_tokens_details": _non_empty(prompt)})
    further |= _non_empty({"completion_tokens_details": _non_empty(completion)})
    if further := {name: value for name, value in further.items() if value is not None}:
        json = dump(further)
        if len(json) > _MAX_USAGE:
            raise ValueError("too much usage")
        usage.extra.CopyFrom(Opaque(dialect=conversation_pb2.DIALECT_OPENAI, json=json))
    return event


def _non_empty(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value}
