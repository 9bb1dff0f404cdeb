"""Errors about stored responses, with OpenAI's messages."""

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, invalid
from services.common.text.texts import cut, quoted

_LONGEST_ID = 128


def stored_error(error: GatewayError, response_id: str) -> GatewayError:
    """Convert an error to one about the response that a path names."""
    name = cut(response_id, _LONGEST_ID)
    if error.reason == errors_pb2.REASON_NOT_FOUND:
        subject = "Response"
        if error.param == "conversation_id":
            subject = "Conversation of the response"
        return GatewayError(
            error.reason, f"{subject} with id '{name}' not found.", param="response_id"
        )
    if error.param == "after":
        return invalid("after", f"after: no input item of response '{name}' has this id")
    return error


def cancel_error(error: GatewayError, response_id: str) -> GatewayError:
    """Convert an error to one about the response to cancel."""
    if error.reason == errors_pb2.REASON_INVALID_REQUEST:
        return GatewayError(error.reason, "Cannot cancel a synchronous response.")
    return stored_error(error, response_id)


def continued_error(error: GatewayError, response_id: str) -> GatewayError:
    """Convert an error to one about the response that a request continues."""
    field = "previous_response_id"
    name = cut(response_id, _LONGEST_ID)
    match error.reason:
        case errors_pb2.REASON_NOT_FOUND:
            not_found = f"Previous response with id '{name}' not found."
            if error.param == "conversation_id":
                not_found = f"Conversation of the previous response with id '{name}' not found."
            elif quoted(response_id) not in error.message:
                not_found = f"A response before the previous response with id '{name}' not found."
            missing = invalid(field, not_found)
            missing.upstream_code = "previous_response_not_found"
            return missing
        case errors_pb2.REASON_CONFLICT:
            return invalid(field, f"{field}: response '{name}' has not finished yet")
    if error.param:
        error.message = f"{field}: {error.message.removeprefix(error.param).lstrip(': ')}"
        error.param = field
    return error


def item_error(error: GatewayError, item_id: str, path: str) -> GatewayError:
    """Convert an error to one about an item that a request references."""
    if error.reason != errors_pb2.REASON_NOT_FOUND:
        return error
    return GatewayError(
        error.reason,
        f"Item with id '{cut(item_id, _LONGEST_ID)}' not found. Items are not persisted when "
        "`store` is set to false. Try again with `store` set to true, or remove this item from "
        "your input.",
        param=path,
    )
