"""Pages of lists, and other fields that requests of administration share. Pure."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from gateway.accounts.v1.accounts_pb2 import Plan
from services.accounts.admin.records import plan_name_of
from services.accounts.admin.subjects import Identified
from services.accounts.names import check_name, check_plan, is_id
from services.common.errors import invalid

_DEFAULT_PAGE, _LARGEST_PAGE = 20, 1000


class ListPage(NamedTuple):
    """A page of a list that is ordered by id."""

    size: int
    after_id: str

    def next_token(self, items: Sequence[Identified]) -> str:
        """Return the token of the next page, "" on the last page."""
        return items[self.size - 1].id if len(items) > self.size else ""


def page_of(request: Any) -> ListPage:
    """Return the page that a request selects.

    Raises:
        GatewayError: invalid_request, naming the field.
    """
    size = size_of(request.page_size)
    if request.page_token and not is_id(request.page_token):
        raise invalid(
            "page_token", "page_token: must be the `next_page_token` of the previous page"
        )
    return ListPage(size, request.page_token)


def size_of(requested: int) -> int:
    """Return the size of a page; 0 requests the default.

    Raises:
        GatewayError: invalid_request, naming the field.
    """
    if requested > _LARGEST_PAGE:
        raise invalid("page_size", f"page_size: must be 1 to {_LARGEST_PAGE}")
    return requested or _DEFAULT_PAGE


def check_filters(**names: str) -> None:
    """Check the names by which a request selects items.

    Raises:
        GatewayError: invalid_request, naming the field.
    """
    for field, name in names.items():
        if name:
            check_name(field, name)


def plan_of(plan: Plan.ValueType) -> str | None:
    """Return the name of a plan, None for PLAN_UNSPECIFIED.

    Raises:
        GatewayError: invalid_request, when there is no such plan.
    """
    name = plan_name_of(plan)
    if name is not None:
        check_plan(name)
    return name
