"""Models with several deployments: what only one account can read."""

from typing import Any

import pytest
from aiohttp import web

from tests.facade.deployment_upstream import DeploymentUpstream, Script, failing
from tests.gateway_in_process import running_gateway, serving


def thinking(name: str) -> Script:
    """Return a script of a server that reads the reasoning which it has encrypted itself alone."""
    own = f"gAAAA{name}"

    def respond(body: dict[str, Any]) -> web.StreamResponse:
        for item in body["input"] if isinstance(body["input"], list) else ():
            if item.get("encrypted_content", own) != own:
                words = "The encrypted content gAAA... could not be verified."
                return failing(400, message=words)(body)
        message = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": name, "annotations": []}],
        }
        reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": own}
        return web.json_response(
            {
                "id": "resp_1",
                "object": "response",
                "created_at": 1,
                "status": "completed",
                "model": "m",
                "output": [reasoning, message],
                "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
            }
        )

    return respond


@pytest.mark.parametrize("is_limited", [False, True])
async def test_reasoning_of_one_account_is_left_out_at_another(tmp_path, is_limited):
    upstream = DeploymentUpstream()
    names = ("east", "west")
    async with serving(upstream.app) as address:
        providers = upstream.providers(address, *names)
        for name in names:
            upstream.scripts[name] = thinking(name)
            providers[name]["responses"] = True
        models = [{"name": "m", "deployments": [{"provider": name} for name in names]}]
        async with running_gateway(
            tmp_path, address, providers=providers, models=models
        ) as gateway:

            async def respond(*items: dict[str, Any]) -> tuple[int, dict[str, Any]]:
                body = {"model": "m", "input": [*items], "store": False}
                async with gateway.http.post(
                    gateway.url + "/beta/v1/responses", json=body, headers=gateway.bearer()
                ) as answer:
                    return answer.status, await answer.json()

            asked = {"role": "user", "content": "Think."}
            status, first = await respond(asked)
            assert status == 200
            [home] = upstream.asked
            if is_limited:
                upstream.scripts[home] = failing(429, {"retry-after": "60"})
            status, second = await respond(
                asked, *first["output"], {"role": "user", "content": "And now?"}
            )
    assert status == 200
    [text] = [item for item in second["output"] if item["type"] == "message"]
    sent = [
        [item["encrypted_content"] for item in body["input"] if "encrypted_content" in item]
        for body in upstream.bodies[1:]
    ]
    if not is_limited:
        assert upstream.asked == [home, home]
        assert sent == [[f"gAAAA{home}"]]
        return
    other = "west" if home == "east" else "east"
    assert upstream.asked == [home, home, other, other]
    assert text["content"][0]["text"] == other
    # The other one refuses what it cannot read, and is asked without it.
    assert sent == [[f"gAAAA{home}"]] * 2 + [[]]
