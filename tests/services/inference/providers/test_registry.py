"""Providers as the settings make them."""

from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import MEDIA_KIND_IMAGE, Block, Media, Message
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common import http
from services.common.errors import GatewayError, UpstreamError
from services.common.settings import Limits, Memory, Model, Provider
from services.inference.metrics import InferenceMetrics
from services.inference.models import discovery
from services.inference.models.routing import Models
from services.inference.providers import registry
from services.inference.request.thinking import Signer
from services.inference.routes import Routes
from services.inference.run.engine import Engine
from tests.grid import each_row
from tests.services.inference.fake_adaptation import adaptation
from tests.services.inference.fake_files import FakeFiles
from tests.services.inference.fake_memories import FakeMemories

KEYLESS = Provider(kind="openai", base_url="http://upstream.test", api_key_env="NO_SUCH_KEY")


class Sent(BaseException):
    """A request went out."""


class Unreachable(http.Client):
    """A client that says that something is sent, and sends nothing."""

    async def send(self, *_: object, **__: object) -> http.Response:
        raise Sent


def engine(providers: Mapping[str, Provider], *configured: Model) -> Engine:
    metrics = InferenceMetrics(CollectorRegistry())
    client = Unreachable(5, http.Proxies({}))
    live = metrics.upstream_calls
    built = registry.build(providers, registry.Connections(client, Limits(), live))
    responses = registry.build_responses(
        providers, registry.Connections(client, Limits(), live), set()
    )
    models = Models(configured, providers, {}, {})
    signer = Signer({"k1": b"s" * 32}, "k1")
    return Engine(
        Routes(models, built, responses=responses),
        signer,
        FakeFiles({}),
        FakeMemories(),
        Limits(),
        Memory(),
        metrics,
        lambda: 0.0,
        adaptation(metrics),
    )


def request() -> GenerateRequest:
    asked = Message(role=conversation_pb2.ROLE_USER, blocks=[Block(text="Hi")])
    return GenerateRequest(model="m", messages=[asked], max_tokens=9)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_without_its_key_a_provider_is_asked_nothing(kind: str) -> None:
    provider = KEYLESS.model_copy(update={"kind": kind})
    with pytest.raises(UpstreamError) as refused:
        await engine({"p": provider}, Model(name="m", provider="p")).generate(request())
    assert refused.value.reason == errors_pb2.REASON_UPSTREAM_AUTH
    assert "providers.p.api_key_env names NO_SUCH_KEY" in refused.value.message


async def test_a_missing_key_moves_to_the_next_model() -> None:
    providers = {"p": KEYLESS, "play": Provider(kind="sandbox")}
    there = engine(
        providers,
        Model(name="m", provider="p", fallbacks=["echo"]),
        Model(name="echo", provider="play"),
    )
    answer = await there.generate(request())
    assert (answer.route.provider, answer.route.attempts) == ("play", 2)


async def test_without_its_key_a_provider_is_not_asked_for_its_models() -> None:
    assert await discovery.learn(Unreachable(5, http.Proxies({})), {"p": KEYLESS}) == {}


@each_row("kind", ["openai", "anthropic"])
@each_row(
    ("base_url", "fetches_urls", "sent"),
    [
        ("https://upstream.test", None, True),
        ("https://upstream.test", False, False),
        ("http://127.0.0.1:8000", None, False),
        ("http://127.0.0.1:8000", True, True),
        ("http://localhost:11434/v1", None, False),
    ],
)
async def test_addresses_of_images_go_to_servers_that_may_fetch_them(
    kind: str, base_url: str, fetches_urls: bool | None, sent: bool
) -> None:
    given = {"kind": kind, "base_url": base_url, "fetches_urls": fetches_urls}
    there = engine({"p": Provider.model_validate(given)}, Model(name="m", provider="p"))
    asked = request()
    image = Media(kind=MEDIA_KIND_IMAGE, url="https://pictures.test/a.png")
    asked.messages[0].blocks.append(Block(media=image))
    with pytest.raises(Sent if sent else GatewayError):
        await there.generate(asked)


@each_row(
    ("base_url", "given", "has"),
    [
        ("https://api.openai.com/v1", None, True),
        ("https://eu.api.openai.com/v1/", None, True),
        ("https://api.openai.com/v1", False, False),
        ("https://mine.openai.azure.com/openai/v1", None, True),
        ("https://mine.openai.azure.com/openai/v1/?api-version=preview", None, True),
        ("https://mine.openai.azure.com/openai/deployments/gpt-5", None, False),
        ("https://api.deepseek.com/v1", None, False),
        ("http://127.0.0.1:8000/v1", None, False),
        ("http://127.0.0.1:8000/v1", True, True),
    ],
)
def test_requests_of_responses_go_to_servers_that_have_them(
    base_url: str, given: bool | None, has: bool
) -> None:
    settings = Provider(kind="openai", base_url=base_url, responses=given)
    assert registry.has_responses(settings) == has
    live = InferenceMetrics(CollectorRegistry()).upstream_calls
    client = Unreachable(5, http.Proxies({}))
    built = registry.build_responses(
        {"p": settings}, registry.Connections(client, Limits(), live), set()
    )
    assert list(built) == (["p"] if has else [])


def test_only_servers_of_openais_dialect_have_responses() -> None:
    with pytest.raises(ValueError, match="responses: allowed only for providers of kind openai"):
        Provider(kind="anthropic", base_url="http://x", responses=True)
    assert not registry.has_responses(
        Provider(kind="anthropic", base_url="http://api.openai.com/v1")
    )


async def test_without_its_key_responses_are_asked_nothing() -> None:
    provider = KEYLESS.model_copy(update={"responses": True})
    asked = request()
    asked.dialect = conversation_pb2.DIALECT_RESPONSES
    with pytest.raises(UpstreamError) as refused:
        await engine({"p": provider}, Model(name="m", provider="p")).generate(asked)
    assert refused.value.reason == errors_pb2.REASON_UPSTREAM_AUTH


@each_row(
    ("host", "own"),
    [
        ("api.groq.com", False),
        ("8.8.8.8", False),
        ("localhost", True),
        ("vllm", True),
        ("models.internal", True),
        ("10.0.0.5", True),
        ("100.64.0.1", True),
        ("::1", True),
    ],
)
def test_private_servers_fetch_nothing_for_callers(host: str, own: bool) -> None:
    assert registry.is_own(host) == own
