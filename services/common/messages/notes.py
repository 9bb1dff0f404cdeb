"""Texts that the gateway writes in place of content that a caller's dialect cannot show. Pure."""

from collections.abc import Set

# Unknown fields of a message that accompany its content.
_BESIDE = frozenset({"reasoning_details", "extra_content", "annotations"})


def note_on_unknown_parts(names: Set[str]) -> str:
    """Return a note that replaces an answer of unknown parts only; "" if `names` has no content."""
    shown_names = sorted(name[:64] for name in names - _BESIDE)[:8]
    if not shown_names:
        return ""
    return f"[The model answered with {', '.join(shown_names)}, which this endpoint cannot show.]"
