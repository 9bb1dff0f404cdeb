"""The billing text of Claude Code, at the start of a system prompt of Anthropic's dialect.

It is not meant for models, and is another one in every request, so that no prefix of a prompt
would be cached.
"""

from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC, Dialect, Message

BILLING = "x-anthropic-billing-header"


def tells_whom_to_bill(message: Message, dialect: Dialect.ValueType) -> bool:
    """Return whether a system prompt of a request in a dialect begins with that text."""
    return (
        dialect == DIALECT_ANTHROPIC
        and len(message.blocks) > 0
        and message.blocks[0].text.startswith(BILLING)
    )


def without_billing(message: Message) -> Message:
    """Return a system prompt that begins with that text without its line."""
    rest = Message()
    rest.CopyFrom(message)
    text = rest.blocks[0].text.partition("\n")[2]
    if text:
        rest.blocks[0].text = text
    else:
        del rest.blocks[0]
    return rest
