"""Rows of the request log, and their messages. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from gateway.accounts.v1.usage_pb2 import UsageLabel
from gateway.requests.v1.requests_pb2 import LoggedRequest, RequestDetails
from services.common.labels import bounded_value

# Maximum of a 64-bit column.
_BIGGEST = 2**63 - 1
_TEXTS = {
    **{"id": 64, "request_id": 128, "user_id": 64, "team_id": 64, "key_id": 64},
    **{"endpoint": 256, "error_code": 64},
    **{"requested_model": 512, "model": 512, "provider": 256},
}
_NUMBERS = ("time_ms", "status", "attempts", "duration_ms", "input_tokens", "output_tokens")
_OPTIONAL: tuple[Literal["first_content_ms", "cost_pusd"], ...] = ("first_content_ms", "cost_pusd")
# Characters of the texts of bodies that are searched.
_MAX_TEXT = 16_000
_SEARCHED = ("endpoint", "requested_model", "model", "error_code")


def row_of(request: LoggedRequest, text: str = "") -> Mapping[str, Any]:
    """Return the row of an entry, whose bodies have a text."""
    row: dict[str, Any] = {
        name: storable(getattr(request, name))[:size] for name, size in _TEXTS.items()
    }
    for name in _NUMBERS:
        row[name] = min(getattr(request, name), _BIGGEST)
    for name in _OPTIONAL:
        row[name] = getattr(request, name) if request.HasField(name) else None
    searched = [*(row[name] for name in _SEARCHED), text[:_MAX_TEXT]]
    has_details = request.HasField("details")
    return {
        **row,
        "has_bodies": int(request.has_bodies),
        "details": request.details.SerializeToString() if has_details else None,
        "search_text": folded("\n".join(searched)),
    }


def label_rows_of(request: LoggedRequest) -> Sequence[Mapping[str, Any]]:
    """Return the rows of the labels of an entry."""
    labels = {label.name: label.value for label in request.labels}
    return [
        {"entry_id": request.id[: _TEXTS["id"]], "label": storable(name)[:32], "value": value}
        for name, value in zip(labels, map(bounded_value, labels.values()), strict=True)
    ]


def message_of(row: Mapping[str, Any], labels: Iterable[tuple[str, str]] = ()) -> LoggedRequest:
    """Return the entry of a row, which has these labels."""
    names = (*_TEXTS, *_NUMBERS, *_OPTIONAL)
    values = {name: row[name] for name in names if row[name] is not None}
    if row["details"] is not None:
        values["details"] = RequestDetails.FromString(row["details"])
    return LoggedRequest(
        **values,
        has_bodies=bool(row["has_bodies"]),
        labels=[UsageLabel(name=name, value=value) for name, value in sorted(labels)],
    )


def folded(text: str) -> str:
    """Return a text as it is stored and searched: both databases then ignore case alike."""
    return storable(text).casefold()


def storable(text: str) -> str:
    """Return a text with NUL replaced, which PostgreSQL's texts cannot contain."""
    return text.replace("\0", "\ufffd")
