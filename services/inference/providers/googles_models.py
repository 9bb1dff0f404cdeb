"""Facts about Google's models, by the provider's names for them. Pure."""

import re
from typing import Final

# Models before Gemini 3 control thinking by a budget, if at all, check no thought signatures, and
# have Google's own tools only where there are no functions.
_BEFORE_3: Final = re.compile(r"(?:publishers/google/)?(?:models/)?(?:gemini-[12]\b|gemma|learnlm)")
_THINKS_BY_BUDGET: Final = re.compile(r"(?:publishers/google/)?(?:models/)?gemini-2\.5\b")


def is_before_3(upstream: str) -> bool:
    """Return whether a model is older than Gemini 3; unknown names are not."""
    return bool(_BEFORE_3.match(upstream))


def thinks_by_budget(upstream: str) -> bool:
    """Return whether a model's thinking is controlled by a token budget."""
    return bool(_THINKS_BY_BUDGET.match(upstream))
