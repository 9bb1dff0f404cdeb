"""The label by which a report of usage groups or filters. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement

from gateway.accounts.v1 import usage_pb2
from gateway.accounts.v1.usage_pb2 import ReportUsageRequest
from services.accounts.usage.tables import label_days
from services.common.errors import invalid
from services.common.labels import END_USER, parse_tag


class LabelFilter(NamedTuple):
    """A label, and the value that it must have, if any."""

    name: str
    value: str = ""

    def conditions(self) -> Sequence[ColumnElement[bool]]:
        """Return the SQL conditions on rows of `label_days`."""
        conditions = [label_days.c.label == self.name]
        if self.value:
            conditions.append(label_days.c.value == self.value)
        return conditions


def label_of(request: ReportUsageRequest) -> LabelFilter | None:
    """Return the label of a request; None if it concerns all requests.

    Raises:
        GatewayError: invalid, naming the field.
    """
    tag, end_user = request.filter.tag, request.filter.end_user
    by_tag = request.by == usage_pb2.USAGE_GROUPING_TAG
    by_end_user = request.by == usage_pb2.USAGE_GROUPING_END_USER
    if bool(request.tag) != by_tag:
        raise invalid("tag", "tag: must be the key of a tag by tag, and empty by anything else")
    if (by_end_user or end_user) and not request.filter.user_id:
        raise invalid("user_id", "user_id: is required, since end users are of a user")
    labels = [
        *([LabelFilter(request.tag)] if by_tag else ()),
        *([LabelFilter(END_USER)] if by_end_user else ()),
        *([LabelFilter(*parse_tag(tag))] if tag else ()),
        *([LabelFilter(END_USER, end_user)] if end_user else ()),
    ]
    if len(labels) > 1:
        raise invalid("tag", "tag: only one tag or end user can be a grouping or a filter")
    return labels[0] if labels else None
