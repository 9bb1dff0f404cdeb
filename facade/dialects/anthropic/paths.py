"""Field names of Anthropic's messages, by canonical field."""

from facade.dialects.paths import FieldNames

FIELD_NAMES = FieldNames(
    {
        "betas": "anthropic-beta",
        "end_user": "metadata.user_id",
        "thinking.effort": "output_config.effort",
        "output_format": "output_config.format",
        "tools[].web": "tools[]",
        "messages[].blocks[].media.name": "messages[].content[].title",
        "messages[].blocks[].thinking": "messages[].content[].thinking",
        "messages[].blocks[].thinking.field": "messages[].content[].thinking",
        "messages[].has_billing_line": "x-anthropic-billing-header",
    }
)
