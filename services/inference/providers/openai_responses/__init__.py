"""Adapter of servers with OpenAI's API of responses, for requests of that dialect.

`request` and `items` write the request body; `events` and `blocks` parse the response, and
`native_events` and `response_objects` responses that are passed through, all without I/O. Requests
of other dialects use the provider's usual adapter.
"""

from services.inference.providers.openai_responses.provider import ResponsesProvider

__all__ = ["ResponsesProvider"]
