"""The billing text of Claude Code, at the start of system prompts.

It is not meant for models, and differs in every request, which would defeat prompt caching.
"""

from collections.abc import Sequence

from gateway.conversation.v1.conversation_pb2 import Message

BILLING = "x-anthropic-billing-header"


def has_billing(message: Message) -> bool:
    """Return whether a system prompt starts with the billing text."""
    return len(message.blocks) > 0 and message.blocks[0].text.startswith(BILLING)


def texts_without_billing(texts: Sequence[str]) -> Sequence[str]:
    """Return the texts of a system prompt that starts with the billing text without its line."""
    text = texts[0].partition("\n")[2]
    return [text, *texts[1:]] if text else texts[1:]


def without_billing(message: Message) -> Message:
    """Return a system prompt without its billing line."""
    rest = Message()
    rest.CopyFrom(message)
    text = rest.blocks[0].text.partition("\n")[2]
    if text:
        rest.blocks[0].text = text
    else:
        del rest.blocks[0]
    return rest
