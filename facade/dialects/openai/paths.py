"""Field names of chat completions, by canonical field."""

from dataclasses import replace
from typing import Final

from facade.dialects.paths import FieldNames

# Fields of a message that become blocks, by their index in `FIELD_NAMES.lists`.
CONTENT: Final = 0
TOOL_CALLS: Final = 1
REASONING: Final = 2
REFUSAL: Final = 3
WHOLE: Final = 4  # a message of the role `tool` or `function`
FUNCTION_CALL: Final = 5

FIELD_NAMES = FieldNames(
    {
        "stop_sequences": "stop",
        "end_user": "user",
        "thinking": "reasoning_effort",
        "thinking.effort": "reasoning_effort",
        "thinking.budget_tokens": "reasoning_effort",
        "output_format": "response_format",
        "output_format.name": "response_format.json_schema.name",
        "output_format.schema": "response_format.json_schema.schema",
        "output_format.description": "response_format.json_schema.description",
        "output_format.strict": "response_format.json_schema.strict",
        "output_modalities": "modalities",
        "tool_choice.name": "tool_choice.function.name",
        "tool_choice.disable_parallel_tool_use": "parallel_tool_calls",
        "tools[].name": "tools[].function.name",
        "tools[].description": "tools[].function.description",
        "tools[].input_schema": "tools[].function.parameters",
        "tools[].strict": "tools[].function.strict",
        "web_search": "web_search_options",
        "web_search.allowed_domains": "web_search_options.filters.allowed_domains",
        "messages[].blocks[].media.detail": "messages[].content[].image_url.detail",
        "messages[].blocks[].media.name": "messages[].content[].file.filename",
        "messages[].blocks[].thinking": "messages[].reasoning_content",
        "messages[].blocks[].thinking.field": "messages[].reasoning",
    },
    lists=("content", "tool_calls", "reasoning_content", "refusal", "", "function_call"),
)

# Field names of requests with `functions`.
FUNCTION_NAMES = replace(
    FIELD_NAMES,
    names={
        **FIELD_NAMES.names,
        "tools": "functions",
        "tools[].name": "functions[].name",
        "tools[].description": "functions[].description",
        "tools[].input_schema": "functions[].parameters",
        "tools[].strict": "functions[].strict",
        "tool_choice": "function_call",
        "tool_choice.name": "function_call.name",
        "tool_choice.disable_parallel_tool_use": "function_call",
    },
)
