"""A wheel in an empty environment, and requests to the gateway that it starts there."""

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pypdf

from services.common.version import VERSION
from tests.e2e.processes import Running, free_port

_TEXT = "Harbour master"
_LITELLM = """\
model_list:
  - model_name: fast
    litellm_params: {model: openai/gpt-4o-mini, api_key: os.environ/OPENAI_API_KEY}
"""


def install(folder: Path, wheel: Path, extras: str = "") -> Path:
    """Install a wheel with extras, such as `[media]`; return the folder of its programs."""
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
    requirement = f"sluicegate{extras} @ {wheel.as_uri()}"
    python = str(folder / "bin" / "python")
    command = [uv, "pip", "install", "--quiet", "--python", python, requirement]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "bin"


@contextmanager
def running(programs: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Run the gateway in a folder; yield its address and its development key."""
    folder.mkdir(exist_ok=True)
    environ = {name: "" for name in os.environ if name.endswith("_API_KEY")}
    environ |= {
        "PATH": f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "PYTHONPATH": "",
        "GATEWAY_CONFIG": "",
        "GATEWAY_PORT": str(free_port()),
        "GATEWAY_METRICS_PORT": str(free_port()),
    }
    command = [str(programs / "sluicegate"), "up", "--workers", "1"]
    with Running(command, environ=environ, folder=folder) as process:
        url = process.wait_for(r"The gateway listens on (\S+)", within_s=120)[1]
        key = process.wait_for(r"API key: (\S+)")[1]
        yield url, key
        assert process.stop() == 0, process.output


def check(programs: Path, folder: Path) -> None:
    """Run the gateway in an empty folder, and check what a newcomer tries.

    Raises:
        AssertionError: an answer is not as expected.
    """
    shown = subprocess.run(
        [str(programs / "sluicegate"), "--version"], capture_output=True, text=True, check=True
    )
    assert shown.stdout == f"gateway {VERSION}\n"
    with running(programs, folder) as (url, key):
        answer_text, _ = ask(url, key, "sandbox/echo", "Hello")
        assert "Hello" in answer_text, answer_text
        page = _get(f"{url}/console").decode()
        for asset in re.findall(r'"(/console/assets/[^"]+)"', page):
            assert _get(url + asset)
        assert json.loads(_get(f"{url}/openapi.json"))["info"]["version"] == VERSION
        data = base64.b64encode(_pdf()).decode()
        part = {
            "type": "file",
            "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{data}"},
        }
        text = {"type": "text", "text": "(sandbox: recite)"}
        answer_text, adapted = ask(url, key, "sandbox/text", [text, part])
        assert _TEXT in answer_text and adapted, (answer_text, adapted)


def check_bare(programs: Path, folder: Path) -> None:
    """Check what works without extras: chat, and the import of another proxy's settings.

    Raises:
        AssertionError: an answer is not as expected.
    """
    with running(programs, folder) as (url, key):
        assert "Hello" in ask(url, key, "sandbox/echo", "Hello")[0]
    (folder / "config.yaml").write_text(_LITELLM)
    command = [str(programs / "sluicegate"), "import", "litellm", "config.yaml"]
    subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": ""}, check=True)
    assert 'name = "fast"' in (folder / "gateway.toml").read_text()


def ask(url: str, key: str, model: str, content: object) -> tuple[str, str]:
    """Return the answer to a message, and what the gateway converted for it."""
    body = {"model": model, "messages": [{"role": "user", "content": content}]}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urlopen(request) as answer:
        message = json.load(answer)["choices"][0]["message"]
        return str(message["content"]), answer.headers.get("x-gateway-adapted", "")


def _get(url: str) -> bytes:
    with urlopen(url) as answer:
        content: bytes = answer.read()
        return content


def _pdf() -> bytes:
    """Return a PDF of one page with a text."""
    import io

    import typst

    content = typst.compile(f"#set page(width: 10cm, height: 4cm)\n{_TEXT}".encode())
    assert isinstance(content, bytes) and pypdf.PdfReader(io.BytesIO(content)).pages
    return content
