"""Sign-in to the console with a one-time code."""

import logging
import time

import pytest

from services.common.storage.sign_in_codes import issue
from tests.gateway_in_process import running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def sign_in(gateway, body, **headers):
    headers = {"content-type": "application/json", **headers}
    address = f"{gateway.url}/console/sign-in"
    async with gateway.http.post(address, data=body, headers=headers) as answer:
        return answer.status, await answer.json(), answer.headers


async def test_a_code_is_good_once_and_never_logged(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    async with running_gateway(tmp_path) as gateway:
        (tmp_path / "dev.key").write_text(gateway.key)
        code = issue(str(tmp_path), time.time())
        body = f'{{"code": "{code}"}}'
        status, answer, headers = await sign_in(gateway, body)
        assert (status, answer) == (200, {"key": gateway.key})
        assert headers["cache-control"] == "no-store"
        status, answer, _ = await sign_in(gateway, body)
        assert status == 404
        assert answer["error"]["code"] == "not_found"
        assert answer["error"]["param"] == "code"
        assert code not in str(answer)
    logged = [str(vars(record)) for record in caplog.records]
    assert any("/console/sign-in" in line for line in logged)
    assert not any(code in line for line in logged)


async def test_a_gateway_without_a_development_key_redeems_none(gateway):
    status, answer, _ = await sign_in(gateway, f'{{"code": "{"A" * 43}"}}')
    assert (status, answer["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ("{}", 400, "code"),
        ('{"code": 1}', 400, "code"),
        ('{"code": "a", "key": "b"}', 400, "key"),
        ("{", 400, "JSON"),
        (f'{{"code": "{"A" * 2000}"}}', 413, "1,024"),
    ],
)
async def test_a_wrong_body_is_refused(gateway, body, status, word):
    # A key beside the code changes nothing, and neither does the format that goes with it.
    found, answer, _ = await sign_in(gateway, body, **gateway.api_key())
    assert found == status
    assert answer.keys() == {"error"}
    assert word in answer["error"]["message"]


async def test_other_content_types_are_refused(gateway):
    # A form of another site could send those without asking.
    status, _, _ = await sign_in(gateway, "{}", **{"content-type": "text/plain"})
    assert status == 415
