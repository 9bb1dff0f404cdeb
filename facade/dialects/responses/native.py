"""Responses of providers of this dialect, which are passed on as the provider wrote them.

What says which response it is, and what is kept of it, is the gateway's.
"""

import orjson

from facade.dialects.responses.state import Echo


def pass_on_response(body: bytes, response_id: str, echo: Echo) -> bytes:
    """Return a provider's response object with the gateway's id and state."""
    return orjson.dumps(_laid_over(orjson.loads(body), response_id, echo))


def _laid_over(response: dict[str, object], response_id: str, echo: Echo) -> dict[str, object]:
    return {**response, "id": response_id, **orjson.loads(b"{%b}" % echo.state)}
