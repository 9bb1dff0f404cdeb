"""The blocks of `docs/connect.md` for libraries that have environments of their own."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.test_programs import NODE, PROGRAMS
from tests.e2e.gateway import Gateway, gateway, sandbox_upstream
from tests.newcomer.blocks import blocks
from tests.newcomer.session import ADDRESS, KEY

pytestmark = pytest.mark.clients

# The folders of the programs, by a word of their block.
LIBRARIES = {"langchain_openai": "langchain", "pydantic_ai": "pydantic-ai", "@ai-sdk": "ai"}
MODELS = "".join(
    f'[[models]]\nname = "{name}"\nprovider = "{provider}"\nupstream = "echo"\n'
    for name, provider in (("fast", "openai"), ("claude", "anthropic"))
)


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with (
        sandbox_upstream() as upstream_port,
        gateway(tmp_path_factory.mktemp("gateway"), upstream_port, settings=MODELS) as started,
    ):
        yield started


@pytest.mark.parametrize("word", LIBRARIES)
def test_a_library_connects_as_its_block_says(word: str, front: Gateway, tmp_path: Path) -> None:
    (block,) = (block for block in blocks("docs/connect.md") if word in block.text and block.reason)
    text = block.text.replace(ADDRESS, front.address).replace(KEY, front.key)
    program = PROGRAMS / LIBRARIES[word]
    command = [str(program / ".venv" / "bin" / "python"), "-c", text]
    if block.language == "js":
        command = [str(NODE), "--input-type=module", "--eval", text]
    done = subprocess.run(
        command,
        cwd=program,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert 'you said "Hello"' in done.stdout
