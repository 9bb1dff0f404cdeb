"""Additional fields of an access log line."""

import re

from facade.http.exchange import Exchange
from services.common.texts import cut, printable

_MAX_PATH = 256  # characters. Truncated, as a misconfigured client may have its key in the path.
# A client that is set up wrongly may have its key in the path.
_KEY = re.compile(r"gw-[A-Za-z0-9_-]+", re.ASCII)


def details_of(exchange: Exchange, status: int) -> dict[str, object]:
    """Return the caller, model, provider, token counts and error code.

    Unknown fields are left out. The path is included only for 404, without its query.
    """
    details: dict[str, object] = {}
    if (caller := exchange.caller) is not None:
        details["user"] = caller.user_id
        details["key_id"] = caller.key_id
    if exchange.model is not None:
        details["model"] = exchange.model
    if (served := exchange.served) is not None and served.model:
        details["served_model"] = served.model
        details["provider"] = served.provider
        details["input_tokens"] = served.input_tokens
        details["output_tokens"] = served.output_tokens
    if exchange.failure is not None:
        details["error"] = exchange.failure
    if status == 404:
        details["path"] = printable(cut(_KEY.sub("gw-…", exchange.path), _MAX_PATH))
    return details
