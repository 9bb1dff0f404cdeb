"""Errors of AdminService, with the field names of the HTTP API."""

from collections.abc import Sequence

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


def to_caller_error(error: GatewayError, variables: Sequence[str]) -> GatewayError:
    """Return an error of the service with the field names of the HTTP API.

    A message about fields begins with their names and a colon.

    Args:
        error: the error.
        variables: names in the path of the request, the first of which is the service's `id`.
    """
    names_by_field = {**_NAMES, "id": variables[0]} if variables else _NAMES
    if error.param == "page_token":
        return invalid("page", "page: must be the next_page of a previous page")
    names, colon, reason = error.message.partition(": ")
    if not error.param or not colon:
        return error
    caller_names = [names_by_field.get(name, name) for name in names.split(", ")]
    message = f"{', '.join(caller_names)}: {reason}"
    param = names_by_field.get(error.param, error.param)
    return GatewayError(error.reason, message, param=param, retry_after_s=error.retry_after_s)
