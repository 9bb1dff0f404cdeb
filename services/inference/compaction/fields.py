"""Fields of the dialects that ask for a compaction. Pure."""

from collections.abc import Mapping
from typing import Any

_COMPACTION = "compaction"
_MANAGEMENT = "context_management"
_EDITS = "edits"
_EDIT = "compact_"


def without_compaction(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request's fields without a canonical name, but for those of its compaction."""
    left = {name: value for name, value in fields.items() if name != _COMPACTION}
    management = left.pop(_MANAGEMENT, None)
    if isinstance(management, list):
        management = [entry for entry in management if not _compacts(entry)]
    elif isinstance(management, dict) and isinstance(edits := management.get(_EDITS), list):
        others = [edit for edit in edits if not _compacts(edit)]
        management = {**management, _EDITS: others} if others else None
    return {**left, _MANAGEMENT: management} if management else left


def _compacts(entry: object) -> bool:
    kind = entry.get("type") if isinstance(entry, dict) else None
    return isinstance(kind, str) and (kind == _COMPACTION or kind.startswith(_EDIT))
