"""Errors about interactions, in place of those about responses."""

from typing import Final

from facade.dialects.interactions.paths import CONFIG
from services.common.errors import GatewayError

# Fields of the body of a response, with the interaction's own.
_FIELDS: Final = {
    "previous_response_id": "previous_interaction_id",
    "instructions": "system_instruction",
    "max_output_tokens": f"{CONFIG}.max_output_tokens",
    "temperature": f"{CONFIG}.temperature",
    "top_p": f"{CONFIG}.top_p",
    "tool_choice": f"{CONFIG}.tool_choice",
    "reasoning": f"{CONFIG}.thinking_level",
    "text.format": "response_format",
    "metadata": "labels",
    "starting_after": "last_event_id",
}
_WORDS: Final = {"Response with": "Interaction with", "Previous response": "Previous interaction"}


def interaction_error(error: GatewayError) -> GatewayError:
    """Return an error about the body or the id of a response as one about an interaction."""
    for field, own in _FIELDS.items():
        if error.param == field or error.param.startswith((f"{field}.", f"{field}[")):
            changed = own + error.param.removeprefix(field)
            if error.message.startswith(error.param):
                error.message = changed + error.message.removeprefix(error.param)
            error.param = changed
            break
    for words, own in _WORDS.items():
        if error.message.startswith(words):
            error.message = own + error.message.removeprefix(words)
    return error
