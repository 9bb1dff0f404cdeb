"""Embeddings of OpenAI's official SDKs, new and old, at a gateway and behind a real Envoy."""

import json
import struct
import subprocess
from typing import Any

import openai
import pytest

from services.sandbox.model import models, vectors
from tests.e2e.gateway import Gateway
from tests.e2e.node import Results, run_script, value
from tests.e2e.processes import ROOT
from tests.grid import each_row

pytestmark = pytest.mark.thorough(one_in=3)

_PYTHON = ROOT / ".venv-sdk-old" / "bin" / "python"
TEXTS = ["a dog", "two cats"]
MODELS = ["sandbox/embed", "openai/embed", "gemini/embed"]


def expected(dimensions: int | None = None) -> list[list[float]]:
    made = vectors.embed(TEXTS, models.find_model("embed"), dimensions)
    size = len(made[0])
    return [list(struct.unpack(f"{size}f", struct.pack(f"{size}f", *vector))) for vector in made]


def check(packed: Any, numbers: Any) -> None:
    """Check both answers of an SDK, as JSON."""
    assert [item["embedding"] for item in packed["data"]] == expected()
    for item, vector in zip(numbers["data"], expected(8), strict=True):
        assert item["embedding"] == pytest.approx(vector, abs=1e-7)
    for answer in (packed, numbers):
        assert [item["index"] for item in answer["data"]] == [0, 1]
        assert answer["usage"]["total_tokens"] > 0


@pytest.fixture(scope="module", params=MODELS)
def results(request: pytest.FixtureRequest, front: Gateway) -> Results:
    return run_script("embeddings.mjs", front, request.param)


@each_row("sdk", ["new", "old"])
def test_node_reads_the_vectors(results: Results, sdk: str) -> None:
    check(value(results, f"{sdk}Packed"), value(results, f"{sdk}Numbers"))


@each_row("sdk", ["new", "old"])
def test_node_reads_the_field_of_an_error(results: Results, sdk: str) -> None:
    refused = results[f"{sdk}Refused"]
    assert (refused["error"], refused["param"]) == ("BadRequestError", "input[1]")


@pytest.mark.parametrize("model", MODELS)
def test_python_reads_the_vectors(front: Gateway, model: str) -> None:
    with openai.OpenAI(base_url=f"{front.address}/v1", api_key=front.key, max_retries=0) as client:
        packed = client.embeddings.create(model=model, input=TEXTS)
        numbers = client.embeddings.create(
            model=model, input=TEXTS, encoding_format="float", dimensions=8
        )
    check(packed.model_dump(), numbers.model_dump())


@pytest.mark.parametrize("model", MODELS)
def test_old_python_reads_the_vectors(front: Gateway, model: str) -> None:
    if not _PYTHON.exists():
        pytest.fail("the older SDKs are not installed; run: make sdks")
    done = subprocess.run(
        [_PYTHON, ROOT / "tests/clients/sdk-old/embeddings.py", front.address, front.key, model],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    check(results["packed"], results["numbers"])
    assert results["refused"] == {"status": 400, "param": "input[1]"}
