"""Tools of OpenAI's own that coding agents offer beside their functions, whichever the model."""

from typing import Any

import pytest

from tests.gateway_in_process import Gateway
from tests.grid import each_row

pytestmark = pytest.mark.asyncio(loop_scope="module")

FUNCTION = {"type": "function", "name": "run", "parameters": {"type": "object"}, "strict": False}
NAMESPACE = {"type": "namespace", "name": "agents", "description": "d", "tools": [FUNCTION]}
SEARCH = {"type": "web_search", "external_web_access": True}
MODELS = ["openai/echo", "anthropic/echo", "gemini/echo", "sandbox/echo"]


async def ask(gateway: Gateway, model: str, *tools: Any, **fields: Any) -> tuple[int, Any, str]:
    body = {"model": model, "input": "Hello", "tools": tools, **fields}
    async with gateway.http.post(
        f"{gateway.url}/beta/v1/responses", json=body, headers=gateway.bearer()
    ) as answer:
        return answer.status, await answer.json(), answer.headers.get("x-gateway-dropped", "")


@pytest.mark.parametrize("model", MODELS)
async def test_they_are_left_out_where_nobody_has_them(gateway: Gateway, model: str) -> None:
    status, answer, dropped = await ask(gateway, model, FUNCTION, NAMESPACE, SEARCH)
    assert (status, answer.get("status")) == (200, "completed"), answer
    # Gemini has a search of its own; a namespace is offered as functions.
    left_out = {"tools[0]", "tools[1]", "tools[2]"} & set(dropped.split(", "))
    assert left_out == (set() if model == "gemini/echo" else {"tools[2]"})


@each_row("model", MODELS)
async def test_the_only_tool_is_not_left_out(gateway: Gateway, model: str) -> None:
    # Gemini has a search of its own.
    if model != "gemini/echo":
        status, answer, _ = await ask(gateway, model, SEARCH)
        assert (status, answer["error"]["param"]) == (400, "tools[0]")
    status, answer, _ = await ask(gateway, model, NAMESPACE)
    assert (status, answer["error"]) == (200, None)


@pytest.mark.parametrize("model", MODELS)
async def test_a_chosen_tool_is_not_left_out(gateway: Gateway, model: str) -> None:
    choice = {"type": "web_search"}
    status, answer, _ = await ask(gateway, model, FUNCTION, SEARCH, tool_choice=choice)
    assert status == 400
    assert answer["error"]["param"].partition(".")[0] in ("tools[1]", "tool_choice")
