"""The ten mistakes that newcomers make most, made against a running gateway and its command."""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import anthropic
import openai
import pytest

from services.accounts.keys import make_key
from tests.e2e.gateway import Gateway, environ_of, sandbox_upstream
from tests.e2e.processes import command
from tests.forked import ForkedProcess
from tests.grid import each_row
from tests.newcomer.gateways import gateway_with

HELLO = [{"role": "user", "content": "Hello"}]
PASTED = "sk-proj-SECRETSECRETSECRET1234"
# Providers with wrong addresses, and one of a known name with another address alone.
SETTINGS = """\
[providers.bare]
kind = "openai"
base_url = "{strict}"
api_key = "upstream-key"

[providers.doubled]
kind = "openai"
base_url = "{strict}/v1/v1"
api_key = "upstream-key"

[providers.whole]
kind = "openai"
base_url = "{strict}/v1/chat/completions"
api_key = "upstream-key"

[providers.groq]
base_url = "{upstream}/v1"
"""
GROQ = {"GROQ_API_KEY": "upstream-key"}


class OfOneVersion(BaseHTTPRequestHandler):
    """A provider that has its models below /v1 and nothing elsewhere."""

    def do_GET(self) -> None:
        self._answer(200 if self.path == "/v1/models" else 404)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(404)

    def _answer(self, status: int) -> None:
        body = b'{"data": [{"id": "echo"}]}' if status == 200 else b'{"detail": "Not Found"}'
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def strict() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), OfOneVersion) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def front(strict: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("gateway")
    with sandbox_upstream() as port:
        settings = SETTINGS.format(strict=strict, upstream=f"http://127.0.0.1:{port}")
        with gateway_with(folder, settings, GROQ) as started:
            yield started


def gateway(
    folder: Path, line: str, environ: Mapping[str, str] | None = None, status: int | None = 0
) -> str:
    """Run a command of the gateway in a folder; return what it prints. None: any exit status."""
    with tempfile.TemporaryFile("w+") as output, open(os.devnull) as nothing:
        process = ForkedProcess(
            [command("gateway"), *line.split()],
            folder=folder,
            # The port is another one than the gateway's, which its lock file names.
            environ={**os.environ, **environ_of(folder, 1), **GROQ, **(environ or {})},
            stdin=nothing.fileno(),
            stdout=output.fileno(),
            stderr=output.fileno(),
        )
        ended = process.wait(60)
        output.seek(0)
        printed = output.read()
    assert status in (None, ended), printed
    assert "Traceback" not in printed
    return printed


def folder_of(front: Gateway) -> Path:
    return front.data_dir.parent


def chat(front: Gateway, model: str = "sandbox/echo", path: str = "/v1", key: str = "") -> str:
    """Ask with OpenAI's SDK; return its answer, or the error that its user sees."""
    base_url, key = front.address + path, key or front.key
    with openai.OpenAI(base_url=base_url, api_key=key, max_retries=0) as client:
        try:
            answer = client.chat.completions.create(model=model, messages=HELLO)
        except openai.APIStatusError as error:
            return str(error)
    return answer.choices[0].message.content or ""


def message(front: Gateway, path: str) -> str:
    """Ask with Anthropic's SDK; return its answer, or the error that its user sees."""
    with anthropic.Anthropic(
        base_url=front.address + path, api_key=front.key, max_retries=0
    ) as client:
        try:
            answer = client.messages.create(model="sandbox/echo", max_tokens=50, messages=HELLO)
        except anthropic.APIStatusError as error:
            return str(error)
    (block,) = answer.content
    return block.text if block.type == "text" else ""


def test_1_the_address_of_the_other_sdk(front: Gateway) -> None:
    for path in ("", "/v1", "/v1/v1", "/api/v1", "/beta/v1", "/openai/v1"):
        assert "Hello" in chat(front, path=path), path
    # This SDK adds a version itself.
    for path in ("", "/v1", "/api", "/api/v1", "/beta/v1"):
        assert "Hello" in message(front, path), path
    wrong = chat(front, path="/llm/v1")
    assert f"The base_url of OpenAI's clients is {front.address}/v1" in wrong
    wrong = message(front, "/anthropic")
    assert f"The base_url of Anthropic's clients is {front.address}, without /v1" in wrong


@pytest.mark.parametrize("name", ["bare", "doubled", "whole"])
def test_2_a_wrong_base_url_of_a_provider(front: Gateway, strict: str, name: str) -> None:
    front.process.wait_for(rf"providers\.{name}.*one answers at {strict}/v1\b")
    assert f"the operator must set providers.{name}.base_url" in chat(front, f"{name}/echo")
    examined = gateway(folder_of(front), "doctor", status=1)
    assert f'set base_url = "{strict}/v1" in [providers.{name}]' in examined


UNKNOWN = make_key(b"\xfe" * 32)


@each_row(
    ("key", "words"),
    [
        ("sk-proj-abcdefghijk", "looks like a key of OpenAI"),
        (UNKNOWN[:-3], "looks truncated"),
        (f'"{UNKNOWN}"', "is in quotation marks"),
        (f"{UNKNOWN[:9]} {UNKNOWN[9:]}", "contains a space"),
        (UNKNOWN, "is not known to this gateway"),
    ],
)
def test_3_a_key_that_is_none(front: Gateway, key: str, words: str) -> None:
    refusal = chat(front, key=key)
    assert words in refusal
    assert key[:12] not in refusal


def test_3_a_key_that_has_ended(front: Gateway) -> None:
    folder = folder_of(front)

    def made(line: str) -> str:
        (key,) = re.findall(r"^(gw-\S+)$", gateway(folder, line), re.M)
        return str(key)

    revoked, disabled = (made(f"keys create --user {name}") for name in ("ada", "bob"))
    gateway(folder, f"keys revoke {revoked[:9]}")
    gateway(folder, f"keys set {disabled[:9]} --disable")
    assert "was revoked on" in chat(front, key=revoked)
    assert "is disabled; the operator enables it" in chat(front, key=disabled)
    (admin,) = re.findall(r"^(gwadmin-\S+)$", gateway(folder, "admin-key create --name a"), re.M)
    assert "is an admin key, which is valid for /admin/v1 only" in chat(front, key=admin)


def test_4_the_name_of_a_model(front: Gateway) -> None:
    assert "unknown model 'echo'; did you mean" in chat(front, "echo")
    printed = gateway(folder_of(front), "chat sandbox/ehco Hello", status=1)
    assert "unknown model 'sandbox/ehco'; did you mean sandbox/echo?" in printed
    for name in ("gpt4o", "openai/gpt-4o"):
        assert "no provider openai is configured; set OPENAI_API_KEY" in chat(front, name)
    listed = gateway(folder_of(front), "models")
    assert "sandbox/echo" in [line.split()[0] for line in listed.splitlines()]


def test_5_a_key_in_place_of_a_variable(tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").write_text(f'[providers.openai]\napi_key_env = "{PASTED}"\n')
    for line in ("config check", "up", "doctor"):
        printed = gateway(tmp_path, line, status=2)
        assert "providers.openai.api_key_env" in printed and "api_key_file" in printed
        assert "SECRET" not in printed


def test_6_a_variable_of_the_gateway(tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").touch()
    for line in ("config check", "up"):
        printed = gateway(tmp_path, line, {"GATEWAY_PORT": "http"}, status=2)
        assert "GATEWAY_PORT: Input should be a valid integer" in printed
    printed = gateway(tmp_path, "config check", {"GATEWAY_PROT": "8080"})
    assert "GATEWAY_PROT: unknown variable, which has no effect; did you mean" in printed
    assert "GATEWAY_PORT?" in printed


def test_7_another_address_of_a_known_provider(front: Gateway) -> None:
    # Its kind and the variable of its key are those of Groq.
    assert "Hello" in chat(front, "groq/echo")


def test_8_models_and_providers_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").write_text("""\
[sandbox]
enabled = true

[providers.east]
kind = "openai"
base_url = "http://127.0.0.1:9/v1"

[[models]]
name = "a"
provider = "sandbox"
upstream = "echo"
fallbacks = ["b"]

[[models]]
name = "b"
provider = "sandbox"
upstream = "echo"
fallbacks = ["a"]
""")
    printed = gateway(tmp_path, "config check")
    assert "note: providers.east: no [[models]] uses it" in printed
    assert "note: models.a.fallbacks: a circle (a -> b -> a)" in printed
    with (tmp_path / "gateway.toml").open("a") as file:
        file.write('\n[roles]\nsummarise = "c"\n')
    assert "roles.summarise: unknown model 'c'" in gateway(tmp_path, "config check", status=2)


def test_9_the_console_of_a_gateway_elsewhere(front: Gateway, tmp_path: Path) -> None:
    link = gateway(folder_of(front), "console")
    assert link.startswith(f"{front.address}/console#code=")
    # From another folder. Others may run gateways on this machine: then all are named.
    (tmp_path / "gateway.toml").touch()
    printed = gateway(tmp_path, "console", status=None)
    assert f"no gateway runs on {tmp_path}" in printed or "none runs on" in printed
    assert str(front.data_dir) in printed


def test_10_the_example_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").touch()
    (tmp_path / "gateway.toml").write_text(gateway(tmp_path, "config example"))
    (line,) = gateway(tmp_path, "config check", {"GROQ_API_KEY": ""}).splitlines()
    assert line.startswith("The settings are valid")
    assert "configured providers: none, configured models: none, sandbox: present" in line
