"""Parts of tool calls that providers leave out, or that the gateway does not know."""

import pytest

from services.inference.providers.anthropic.parts import MalformedError, block_of
from services.inference.providers.openai.answer_fields import unknown_call_fields


@pytest.mark.parametrize("missing", ["id", "name"])
@pytest.mark.parametrize("value", [None, ""])
def test_a_call_that_cannot_be_answered_is_malformed(missing: str, value: str | None) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    assert block_of(call).tool_use.name == "f"
    with pytest.raises(MalformedError, match=missing):
        block_of({**call, missing: value})


def test_unknown_fields_stay_in_their_kind_of_call() -> None:
    for kind in ("function", "custom"):
        inner = {"name": "g", "input": "te", "x": 1}
        assert unknown_call_fields({kind: inner, "type": kind}, kind, inner) == {kind: {"x": 1}}
