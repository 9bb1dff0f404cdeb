"""Servers that speak OpenAI's responses, asked by requests of that dialect.

`request` and `items` write what is sent; `events` and `blocks` read what comes back, and
`native_events` and `response_objects` what goes on as it is, all without I/O. Requests of other
dialects go to the provider's usual adapter.
"""

from services.inference.providers.openai_responses.provider import ResponsesProvider

__all__ = ["ResponsesProvider"]
