"""What the line of a request tells beside its route, status and time."""

import re

from facade.http.exchange import Exchange
from services.common.texts import cut, printable

_MAX_PATH = 256  # characters
# A client that is set up wrongly may have its key in the path.
_KEY = re.compile(r"gw-[A-Za-z0-9_-]+", re.ASCII)


def details_of(exchange: Exchange, status: int) -> dict[str, object]:
    """Return who asked for what, who served it with how many tokens, and what it failed of.

    What is unknown is left out. The path is told where it leads nowhere; never its query.
    """
    details: dict[str, object] = {}
    if (caller := exchange.caller) is not None:
        details["user"] = caller.user_id
        details["key_id"] = caller.key_id
    if exchange.model is not None:
        details["model"] = exchange.model
    if (answered := exchange.answered) is not None and answered.model:
        details["served_model"] = answered.model
        details["provider"] = answered.provider
        details["input_tokens"] = answered.input_tokens
        details["output_tokens"] = answered.output_tokens
    if exchange.failure is not None:
        details["error"] = exchange.failure
    if status == 404:
        details["path"] = printable(cut(_KEY.sub("gw-…", exchange.path), _MAX_PATH))
    return details
