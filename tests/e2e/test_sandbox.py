"""The sandbox of `gateway up`, and of `gateway sandbox`."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.e2e.gateway import environ_of, without_notice
from tests.e2e.processes import Running, command
from tests.waiting import until

CLOSED = "[discovery]\nenabled = false\n"
REAL = '[providers.mine]\nkind = "openai"\nbase_url = "http://127.0.0.1:1/v1"\n'
ALWAYS = "[sandbox]\nenabled = true\n"
CHAT = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}


@contextmanager
def gateway_with(folder: Path, settings: str) -> Iterator[Running]:
    (folder / "gateway.toml").write_text(without_notice(settings))
    arguments = [command("gateway"), "up", "--workers", "1"]
    with Running(arguments, environ=environ_of(folder), folder=folder, is_forked=True) as process:
        yield process


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        (CLOSED, '"content":"Sandbox echo: you said \\"Hello\\".'),
        (CLOSED + REAL + ALWAYS, '"content":"Sandbox echo: you said \\"Hello\\".'),
        (CLOSED + REAL, '{"object":"list","data":['),
        (CLOSED + "[sandbox]\nenabled = false\n", '{"object":"list","data":['),
    ],
)
def test_the_printed_line_works_as_pasted(tmp_path: Path, settings: str, answer: str) -> None:
    with gateway_with(tmp_path, settings) as process:
        line = process.wait_for(r"^  (curl .*)")[1]
        shown = subprocess.run(
            ["sh", "-c", f"{line} --silent --show-error --fail"],
            capture_output=True,
            text=True,
            check=True,
        )
    assert answer in shown.stdout


async def test_a_reload_adds_and_removes_the_sandbox(tmp_path: Path) -> None:
    with gateway_with(tmp_path, CLOSED) as process:
        url = process.wait_for(r"listens on (http://\S+)")[1]
        key = process.wait_for(r"API key: (\S+)")[1]
        headers = {"authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(base_url=url, headers=headers) as client:

            async def status() -> int:
                return (await client.post("/beta/v1/chat/completions", json=CHAT)).status_code

            async def listed() -> set[str]:
                models = (await client.get("/beta/v1/models")).json()["data"]
                return {model["owned_by"] for model in models} - {"embedded"}

            assert (await status(), await listed()) == (200, {"sandbox"})
            for settings, expected in ((REAL, 404), (REAL + ALWAYS, 200), (REAL, 404), ("", 200)):
                (tmp_path / "gateway.toml").write_text(CLOSED + settings)
                os.kill(process.pid, signal.SIGHUP)

                async def is_reloaded(expected: int = expected) -> bool:
                    return await status() == expected

                await until(is_reloaded, every_s=0.05)
                assert await listed() == ({"sandbox"} if expected == 200 else set())

            # A model of the sandbox that goes: the settings in force stay.
            demo = '[[models]]\nname = "demo"\nprovider = "sandbox"\n'
            (tmp_path / "gateway.toml").write_text(CLOSED + REAL + demo)
            os.kill(process.pid, signal.SIGHUP)
            process.wait_for("settings not reloaded.*models.0..provider: the sandbox is absent")
            assert await status() == 200


def test_the_start_reports_fallbacks_of_an_absent_sandbox(tmp_path: Path) -> None:
    models = '[[models]]\nname = "a"\nprovider = "mine"\nfallbacks = ["sandbox/echo"]\n'
    with gateway_with(tmp_path, CLOSED + REAL + models) as process:
        process.wait_for("models.a.fallbacks.0.: unknown model .*the sandbox is absent because")
        process.wait_for("listens on")


async def test_it_is_served_without_the_sdks(tmp_path: Path) -> None:
    for name in ("openai", "anthropic"):
        (tmp_path / f"{name}.py").write_text("raise ImportError")
    arguments = [command("gateway"), "sandbox", "--port", "0"]
    with Running(arguments, environ={"PYTHONPATH": str(tmp_path)}) as process:
        url = process.wait_for(r"listens on (http://\S+)")[1]
        async with httpx2.AsyncClient(
            base_url=url, headers={"authorization": "Bearer k"}
        ) as client:
            answer = await client.post("/v1/chat/completions", json=CHAT)
    assert answer.json()["choices"][0]["message"]["content"] == 'Sandbox echo: you said "Hello".'
