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
