"""Responses over WebSockets of OpenAI's official Node SDK, at a gateway and behind a real Envoy."""

import pytest

from tests.e2e.gateway import Gateway
from tests.e2e.node import run_script, value

pytestmark = pytest.mark.thorough(one_in=3)


@pytest.mark.parametrize("model", ["openai/echo", "sandbox/echo"])
def test_node_has_responses_over_a_socket(front: Gateway, model: str) -> None:
    results = run_script("response_sockets.mjs", front, model)
    talk = value(results, "conversation")
    assert (talk["first"], talk["streamed"], talk["code"]) == ("response.created", True, 1000)
    assert 'you said "My dog is called Rex."' in talk["whole"] and talk["tokens"] > 0
    assert f"[assistant]\n{talk['whole']}\n" in talk["remembered"]
    tools = value(results, "tools")
    assert (tools["name"], set(tools["arguments"])) == ("get_weather", {"place"})
    assert "14 degrees" in tools["answer"]
    # A refused request leaves the socket open.
    assert value(results, "errors") == {
        "codes": [["model_not_found", "model"], ["invalid_request", "temperature"]],
        "after": "response.completed",
    }
    assert results["unknownKey"]["message"].endswith("401")
    # Its caller closed a socket in the middle of an answer.
    assert value(results, "leaving") == {"code": 1000, "after": "response.completed"}
