"""What the line of a request tells beside its route, status and time."""

import re

from aiohttp import web

from facade.context import ANSWERED, CALLER, FAILURE, MODEL
from services.common.texts import cut, printable

_MAX_PATH = 256  # characters
# A client that is set up wrongly may have its key in the path.
_KEY = re.compile(r"gw-[A-Za-z0-9_-]+", re.ASCII)


def details_of(request: web.Request, status: int) -> dict[str, object]:
    """Return who asked for what, who served it with how many tokens, and what it failed of.

    What is unknown is left out. The path is told where it leads nowhere; never its query.
    """
    details: dict[str, object] = {}
    if (caller := request.get(CALLER)) is not None:
        details["user"] = caller.user_id
        details["key_id"] = caller.key_id
    if (model := request.get(MODEL)) is not None:
        details["model"] = model
    if (answered := request.get(ANSWERED)) is not None and answered.model:
        details["served_model"] = answered.model
        details["provider"] = answered.provider
        details["input_tokens"] = answered.input_tokens
        details["output_tokens"] = answered.output_tokens
    if (failure := request.get(FAILURE)) is not None:
        details["error"] = failure
    if status == 404:
        details["path"] = printable(cut(_KEY.sub("gw-…", request.path), _MAX_PATH))
    return details
