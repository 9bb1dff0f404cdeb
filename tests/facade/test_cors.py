"""Pages of other origins are refused unless the operator names their origin."""

import re
from pathlib import Path

import pytest

import facade
from facade.cors import EXPOSED
from services.common.grpc.hops import HOPS_KEY
from tests.gateway_in_process import running_gateway

APP = "https://app.example"
CHAT = "/beta/v1/chat/completions"
BODY = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hi"}]}
PREFLIGHT = {
    "Origin": APP,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,x-api-key,content-type,anthropic-version,"
    "anthropic-dangerous-direct-browser-access,openai-organization,x-stainless-os,x-other",
}
PATHS = [CHAT, "/beta/v1/messages", "/beta/v1/files/file-1/content", "/article/v1/doc/list", "/no"]
PATHS.append("/admin/v1/users/user_1")


def served(tmp_path, *origins: str):
    return running_gateway(tmp_path, server={"cors_origins": list(origins)})


def names(header: str) -> set[str]:
    return {name.strip() for name in header.split(",")}


async def preflight(gateway, path, **headers):
    async with gateway.http.options(gateway.url + path, headers=PREFLIGHT | headers) as answer:
        return answer


def told(headers) -> dict[str, str]:
    prefix = "access-control-"
    return {key.lower(): value for key, value in headers.items() if key.lower().startswith(prefix)}


@pytest.mark.parametrize("origins", [(APP,), ("https://other.example", APP), ("*",)])
async def test_a_preflight_needs_no_key(tmp_path, origins):
    async with served(tmp_path, *origins) as gateway:
        for path in PATHS:
            answer = await preflight(gateway, path)
            assert answer.status == 204, path
            said = told(answer.headers)
            assert said["access-control-allow-origin"] == ("*" if "*" in origins else APP)
            methods = {"GET", "POST", "PUT", "PATCH", "DELETE"}
            assert names(said["access-control-allow-methods"]) >= methods
            allowed = names(said["access-control-allow-headers"])
            asked = names(PREFLIGHT["Access-Control-Request-Headers"])
            assert asked - allowed == {"x-other"}
            assert "*" not in allowed
            assert "access-control-allow-credentials" not in said
            assert (answer.headers.get("Vary") == "Origin") is ("*" not in origins)


@pytest.mark.parametrize("stream", [False, True])
async def test_answers_and_errors_may_be_read(tmp_path, stream):
    async with served(tmp_path, APP) as gateway:
        url, key = gateway.url + CHAT, gateway.bearer()
        for headers, body, status in (
            (key, BODY, 200),
            (key, {}, 400),
            (key, BODY | {"model": "sandbox/fail-500", "fallback": "disabled"}, 502),
            ({}, BODY, 401),
        ):
            async with gateway.http.post(
                url, json=body | {"stream": stream}, headers=headers | {"Origin": APP}
            ) as answer:
                await answer.read()
            assert answer.status == status
            said = told(answer.headers)
            assert said["access-control-allow-origin"] == APP
            assert answer.headers["Vary"] == "Origin"
            exposed = names(said["access-control-expose-headers"])
            assert exposed >= {"x-request-id", "request-id", "retry-after", "x-gateway-model"}
            own = {name.lower() for name in answer.headers if name.lower().startswith("x-")}
            assert own - {"x-accel-buffering"} <= exposed
            assert "access-control-allow-credentials" not in said
        async with gateway.http.get(gateway.url + "/no", headers={"Origin": APP}) as answer:
            assert (answer.status, len(told(answer.headers))) == (404, 2)


async def test_other_origins_get_no_headers(tmp_path):
    async with served(tmp_path, APP) as gateway:
        for origin in ("https://evil.example", APP + ".evil", APP.upper(), "null", "*", ""):
            answer = await preflight(gateway, CHAT, Origin=origin)
            assert (answer.status, told(answer.headers)) == (405, {})
            async with gateway.http.post(
                gateway.url + CHAT, json=BODY, headers=gateway.bearer() | {"Origin": origin}
            ) as answer:
                assert (answer.status, told(answer.headers)) == (200, {})
                assert answer.headers["Vary"] == "Origin"


async def test_without_the_setting_there_is_no_cors(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        answer = await preflight(gateway, CHAT)
        assert (answer.status, told(answer.headers)) == (405, {})
        assert "Vary" not in answer.headers


async def test_options_without_a_page_are_a_method_like_others(tmp_path):
    async with served(tmp_path, "*") as gateway:
        async with gateway.http.options(gateway.url + CHAT) as answer:
            assert answer.status == 405


async def test_a_preflight_of_any_size_is_answered(tmp_path):
    async with served(tmp_path, "*") as gateway:
        sent = [f"x-stainless-{number}" for number in range(90)]
        sent += ["anthropic-\t x", "anthropic-(", "", *("x-stainless-late" for _ in range(10))]
        answer = await preflight(
            gateway, CHAT, **{"Access-Control-Request-Headers": ",".join(sent)}
        )
        assert answer.status == 204
        allowed = names(answer.headers["Access-Control-Allow-Headers"])
        assert allowed >= {*sent[:90], "x-stainless-late"}
        assert not any(name.startswith("anthropic-") for name in allowed)
        answer = await preflight(
            gateway, CHAT, **{"Access-Control-Request-Headers": "a," * 100 + "openai-late"}
        )
        assert "openai-late" not in answer.headers["Access-Control-Allow-Headers"]


def test_every_header_of_the_gateways_is_exposed():
    folder = Path(facade.__file__).parent
    found = {
        name
        for file in folder.rglob("*.py")
        for name in re.findall(r'"(x-(?:gateway|memory|upstream)-[a-z-]+)"', file.read_text())
    }
    assert found
    assert found - {HOPS_KEY} <= set(EXPOSED)
