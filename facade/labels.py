"""Tags and end users of requests to models, in their headers and bodies."""

from collections.abc import Mapping

from facade.dialects.parsed_request import ParsedRequest
from services.common.grpc.channels import Metadata
from services.common.labels import (
    END_USER_KEY,
    TAGS_KEY,
    bounded_value,
    parse_end_user,
    parse_tags,
    write_end_user,
    write_tags,
)
from services.common.settings import Usage


def label_metadata(headers: Mapping[str, str], parsed: ParsedRequest, usage: Usage) -> Metadata:
    """Return the labels of a request as metadata of its calls: those that the settings enable.

    Headers take precedence over fields of the body.

    Raises:
        GatewayError: invalid_request, naming the header.
    """
    metadata: Metadata = ()
    if usage.tags:
        sent: dict[str, object] = dict(parsed.metadata or {})
        if (header := headers.get(TAGS_KEY)) is not None:
            sent |= parse_tags(header)
        tags = {
            key: bounded_value(value)
            for key in usage.tags
            if isinstance(value := sent.get(key), str) and value
        }
        if tags:
            metadata = ((TAGS_KEY, write_tags(tags)),)
    if usage.end_users:
        header = headers.get(END_USER_KEY)
        end_user = parsed.end_user if header is None else parse_end_user(header)
        if end_user:
            metadata = (*metadata, (END_USER_KEY, write_end_user(bounded_value(end_user))))
    return metadata
