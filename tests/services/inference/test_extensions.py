"""Requests that need what is not built yet are refused, all others are not."""

import pytest

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import GatewayError
from services.inference import extensions


def test_a_plain_request_needs_nothing() -> None:
    extensions.check_request(GenerateRequest(model="m"))


def test_built_in_tools_are_refused() -> None:
    with pytest.raises(GatewayError) as caught:
        extensions.check_request(GenerateRequest(use_built_in_tools=True))
    assert (caught.value.code, caught.value.param) == ("not_implemented", "use_built_in_tools")
