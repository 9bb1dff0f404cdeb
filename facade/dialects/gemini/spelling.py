"""Google's names of fields in `snake_case`, which its servers accept beside `camelCase`. Pure.

Only known names are renamed, and only where they are fields: arguments and results of functions,
schemas and labels are the caller's own.
"""

from collections.abc import Iterator
from typing import Any, Final

from services.common.text.google_schemas import camel_name

# Fields whose values are lists or objects of fields.
_HOLDERS: Final = frozenset(
    {
        *("contents", "systemInstruction", "tools", "toolConfig", "generationConfig"),
        *("parts", "inlineData", "fileData", "functionCall", "functionResponse"),
        *("functionDeclarations", "functionCallingConfig", "thinkingConfig"),
        *("generateContentRequest", "content", "requests"),
    }
)
_NAMES: Final = (
    *("system_instruction", "tool_config", "generation_config", "safety_settings"),
    *("cached_content", "service_tier", "generate_content_request"),
    *("inline_data", "file_data", "function_call", "function_response", "thought_signature"),
    *("executable_code", "code_execution_result", "video_metadata", "media_resolution"),
    *("mime_type", "display_name", "file_uri"),
    *("function_declarations", "parameters_json_schema", "response_json_schema"),
    *("google_search", "google_search_retrieval", "code_execution", "url_context"),
    *("google_maps", "file_search", "computer_use", "mcp_servers"),
    *("function_calling_config", "allowed_function_names", "retrieval_config"),
    *("top_p", "top_k", "max_output_tokens", "stop_sequences", "candidate_count"),
    *("presence_penalty", "frequency_penalty", "response_logprobs", "response_mime_type"),
    *("response_schema", "response_modalities", "thinking_config", "speech_config"),
    *("image_config", "include_thoughts", "thinking_budget", "thinking_level"),
    *("task_type", "output_dimensionality", "will_continue"),
)


_CAMEL: Final = {name: camel_name(name) for name in _NAMES}


def camel_case(body: Any) -> Any:
    """Return a body with its fields in `camelCase`; the same if all are.

    A field in both spellings keeps the value in `camelCase`, and the other as unknown.
    """
    if not isinstance(body, dict):
        return body
    renamed = _renamed(body)
    waiting = list(_holders(renamed))
    while waiting:
        holder, key = waiting.pop()
        value = holder[key]
        if isinstance(value, dict):
            holder[key] = _renamed(value)
            waiting += _holders(holder[key])
        elif isinstance(value, list):
            # A copy: the body may be shared.
            holder[key] = value = [*value]
            waiting += [(value, index) for index in range(len(value))]
    return renamed


def _renamed(fields: dict[str, Any]) -> dict[str, Any]:
    if _CAMEL.keys().isdisjoint(fields):
        return {**fields}
    return {
        camel if (camel := _CAMEL.get(name, name)) == name or camel not in fields else name: value
        for name, value in fields.items()
    }


def _holders(fields: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    return ((fields, name) for name in fields if name in _HOLDERS)
