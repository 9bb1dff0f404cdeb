from collections.abc import Iterator
from unittest.mock import patch

import pytest
import pytest_asyncio

from tests.gateway_in_process import running_gateway

MODELS = [
    {
        "name": f"see-{provider}",
        "provider": provider,
        "upstream": "vision",
        "inputs": ["text", "image"],
    }
    for provider in ("openai", "anthropic", "gemini")
]


@pytest.fixture(scope="module", autouse=True)
def quick_retries() -> Iterator[None]:
    """Have a provider that fails asked again at once: `tests/faults` says when it is asked."""
    with patch("services.inference.plans.policy.FIRST_DELAY_S", 0.001):
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory):
    """Return a running gateway whose providers are the sandbox behind HTTP."""
    models = [
        *MODELS,
        {"name": "with-fallback", "provider": "sandbox", "upstream": "echo", "fallbacks": ["x"]},
        {"name": "short", "provider": "sandbox", "upstream": "echo", "max_output_tokens": 10},
    ]
    folder = tmp_path_factory.mktemp("gateway")
    async with running_gateway(folder, models=models, limits={"max_body_bytes": 1 << 20}) as one:
        yield one
