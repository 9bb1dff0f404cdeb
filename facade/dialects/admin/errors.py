"""Errors of AdminService with the names that callers of HTTP know."""

from services.common.errors import GatewayError

# Names of fields whose JSON differs.
_NAMES = {
    "disabled": "enabled",
    "expires_at_ms": "expires_at",
    "grace_s": "grace_seconds",
    "spend_per_day_pusd": "spend_per_day",
    "spend_per_month_pusd": "spend_per_month",
    "page_size": "limit",
    "page_token": "page",
    "since_ms": "since",
    "until_ms": "until",
}
_PAGE = "page: takes the next_page of an earlier list"


def to_caller_error(error: GatewayError) -> GatewayError:
    """Return an error of the service with the caller's name of the field."""
    name = _NAMES.get(error.param)
    if name is None:
        return error
    message = error.message
    for theirs, ours in _NAMES.items():
        message = message.replace(theirs, ours)
    if name == "page":
        message = _PAGE
    return GatewayError(error.reason, message, param=name, retry_after_s=error.retry_after_s)
