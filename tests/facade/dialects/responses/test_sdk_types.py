"""Requests that the official client's types allow: they are taken, or refused for their values."""

import json
import math
from collections.abc import Iterable
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from openai.types import responses as sdk
from openai.types.responses import response_input_item_param as items

from facade.dialects.responses import parse_request
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from tests.grid import each_row

ITEMS = (
    sdk.EasyInputMessageParam,
    items.Message,
    sdk.ResponseOutputMessageParam,
    sdk.ResponseFunctionToolCallParam,
    items.FunctionCallOutput,
    sdk.ResponseCustomToolCallParam,
    sdk.ResponseCustomToolCallOutputParam,
    sdk.ResponseReasoningItemParam,
    sdk.ResponseFunctionWebSearchParam,
    items.ItemReference,
    items.ShellCall,
    items.McpCall,
    items.ImageGenerationCall,
)
TOOLS = (
    sdk.FunctionToolParam,
    sdk.CustomToolParam,
    sdk.WebSearchToolParam,
    sdk.WebSearchPreviewToolParam,
    sdk.FileSearchToolParam,
)
# What types do not say: that texts are not empty, are base64, addresses or names, that a part has
# one of several fields, and that an output names its call.
BY_VALUE = (
    "must not be empty",
    "must be valid base64",
    "must be an http(s) URL",
    "must be a data URL",
    "must have either",
    "must have exactly one of",
    "must contain only finite numbers",
    "must be a text or contain at least one item",
    "must be 1 to",
    "must be unique",
    "must have at most",
    "is not allowed in assistant messages",
    "is allowed only in assistant messages",
    "must be a string of at most",
    "must be a list of at most",
    "call_id: is required",
    "call_id: must be a string",
)
SLOW = settings(
    deadline=None,
    max_examples=5,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking takes minutes
)


def lists_of(kind: Any) -> st.SearchStrategy[list[Any]]:
    members = get_args(kind)
    return st.lists(st.from_type(members[0])) if members else st.builds(list)


# Of what can be iterated over only lists can be written as JSON.
st.register_type_strategy(Iterable, lists_of)


def name_of(member: Any) -> str:
    return member.__name__


def plain(value: Any) -> Any:
    """Return a value as JSON has it: iterables are lists, and numbers finite."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else 0.0
    if isinstance(value, str | int | None):
        return value
    if isinstance(value, Iterable):
        return [plain(one) for one in value]
    return None


def check(**fields: Any) -> None:
    """Check that a body is taken, or refused by its path for a value."""
    body = {"model": "m", "input": "x", **plain(fields)}
    try:
        parse_request(json.dumps(body).encode())
    except GatewayError as error:
        assert error.reason == errors_pb2.REASON_INVALID_REQUEST
        assert error.param.startswith(tuple(fields))
        assert any(words in error.message for words in BY_VALUE), error.message


@each_row("member", ITEMS)
def test_items(member: Any) -> None:
    @SLOW
    @given(st.from_type(member))
    def is_taken(item: Any) -> None:
        check(input=[item])

    is_taken()


@pytest.mark.parametrize("member", TOOLS, ids=name_of)
def test_tools(member: Any) -> None:
    @SLOW
    @given(st.from_type(member))
    def is_taken(tool: Any) -> None:
        check(tools=[tool])

    is_taken()
