"""The access log of a running gateway."""

import json
import urllib.request

from tests.e2e.gateway import Gateway


def test_a_request_has_a_line_with_its_id_and_without_its_key(plain_gateway: Gateway) -> None:
    body = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "a word of mine"}]}
    request = urllib.request.Request(
        f"http://127.0.0.1:{plain_gateway.port}/beta/v1/chat/completions",
        json.dumps(body).encode(),
        {
            "Authorization": f"Bearer {plain_gateway.key}",
            "Content-Type": "application/json",
            "x-request-id": "req_of_mine",
        },
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200
    match = plain_gateway.process.wait_for(r'^(\{.*"request_id":"req_of_mine".*\})$')
    line = json.loads(match[1])
    assert line["message"] == "request"
    assert (line["method"], line["route"]) == ("POST", "/beta/v1/chat/completions")
    assert line["status"] == 200
    assert line["ms"] > 0
    assert "a word of mine" not in plain_gateway.process.output
    assert "gw-" not in match[1]
