"""Field names of responses, by canonical field."""

from typing import Final

from facade.dialects.paths import FieldNames

# Position of a block in its item, as an index in `FIELD_NAMES.lists`.
CONTENT: Final = 0
WHOLE: Final = 1  # an item, or a text, that is one block

FIELD_NAMES = FieldNames(
    {
        "max_tokens": "max_output_tokens",
        "end_user": "user",
        "thinking": "reasoning.effort",
        "thinking.effort": "reasoning.effort",
        "thinking.budget_tokens": "reasoning.effort",
        "output_format": "text.format",
        "tool_choice.disable_parallel_tool_use": "parallel_tool_calls",
        "tools[].input_schema": "tools[].parameters",
        "tools[].web": "tools[]",
        "tools[].web.allowed_domains": "tools[].filters.allowed_domains",
        "logprobs": "include",
        "messages[].blocks[].media.detail": "input[].content[].detail",
        "messages[].blocks[].thinking": "input[].summary",
        "messages[].blocks[].thinking.field": "input[].summary",
        "messages[].blocks[].tool_result.is_error": "input[].output",
    },
    lists=("content", ""),
    messages="input",
    system="instructions",
    inner="output",
)
