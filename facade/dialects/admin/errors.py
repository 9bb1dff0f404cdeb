"""Errors of AdminService, with the field names of the HTTP API."""

from services.common.errors import GatewayError, invalid

# JSON names of the fields that differ from the proto.
_NAMES = {
    "disabled": "enabled",
    "expires_at_ms": "expires_at",
    "grace_s": "grace_seconds",
    "spend_per_day_pusd": "spend_per_day",
    "spend_per_week_pusd": "spend_per_week",
    "spend_per_month_pusd": "spend_per_month",
    "spend_per_period_pusd": "spend_per_period",
    "period_start_day": "period_start",
    "measure": "name",
    "amount_pusd": "amount",
    "page_size": "limit",
    "since_ms": "since",
    "until_ms": "until",
}


def to_caller_error(error: GatewayError) -> GatewayError:
    """Return an error of the service with the field names of the HTTP API.

    A message about fields begins with their names and a colon.
    """
    if error.param == "page_token":
        return invalid("page", "page: must be the next_page of a previous page")
    names, colon, reason = error.message.partition(": ")
    if not error.param or not colon:
        return error
    message = f"{', '.join(_name(name) for name in names.split(', '))}: {reason}"
    param = _name(error.param)
    return GatewayError(error.reason, message, param=param, retry_after_s=error.retry_after_s)


def _name(field: str) -> str:
    return _NAMES.get(field, field)
