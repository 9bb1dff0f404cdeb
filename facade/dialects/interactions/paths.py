"""Field names of interactions, by canonical field."""

from typing import Final

from facade.dialects import responses
from facade.dialects.paths import FieldNames

CONFIG: Final = "generation_config"

FIELD_NAMES: Final = FieldNames(
    {
        **responses.FIELD_NAMES.names,
        **{
            name: f"{CONFIG}.{name}"
            for name in ("temperature", "top_p", "seed", "stop_sequences", "tool_choice")
        },
        "max_tokens": f"{CONFIG}.max_output_tokens",
        "thinking": f"{CONFIG}.thinking_level",
        "thinking.effort": f"{CONFIG}.thinking_level",
        "thinking.budget_tokens": f"{CONFIG}.thinking_level",
        "tool_choice.disable_parallel_tool_use": f"{CONFIG}.tool_choice",
        "extra.reasoning": f"{CONFIG}.thinking_summaries",
        "extra.metadata": "labels",
        "extra.extra_body": "safety_settings",
        "extra.extra_body.google.safety_settings": "safety_settings",
        "extra.extra_body.google.cached_content": "cached_content",
        "output_format": "response_format",
        "messages[].blocks[].media.detail": "input[].content[].resolution",
        "messages[].blocks[].tool_result.is_error": "input[].is_error",
    },
    lists=responses.FIELD_NAMES.lists,
    messages="input",
    system="system_instruction",
    inner="result",
)
