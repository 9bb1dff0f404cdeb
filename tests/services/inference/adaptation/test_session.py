"""The conversions of one request: how many at a time, and what they share."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from gateway.conversation.v1.conversation_pb2 import Block, Media, Usage
from gateway.inference.v1.inference_pb2 import (
    Choice,
    GenerateRequest,
    GenerateResponse,
    Multimodal,
    RouteInfo,
)
from services.common.process.byte_budget import Charge, open_budget
from services.common.settings import Limits, Model, Roles
from services.common.settings import Provider as ProviderSettings
from services.inference.adaptation.rules import IMAGE, MediaCapabilities
from services.inference.adaptation.session import Session
from services.inference.adaptation.single_flight import SingleFlight, all_of
from services.inference.media import AdaptationError, MediaRef
from services.inference.metrics import InferenceMetrics
from services.inference.models.routing import Models
from services.inference.routes import Routes
from services.inference.stored_files import StoredFiles
from tests.services.inference.fake_adaptation import adaptation
from tests.services.inference.fake_files import FakeFiles
from tests.waiting import until

BLIND = MediaCapabilities("blind", frozenset(), frozenset(), frozenset())
SEES = [Model(name="sees", provider="p", inputs=["text", "image"])]
PROVIDERS = {"p": ProviderSettings(kind="openai", base_url="http://127.0.0.1")}


class Helper:
    """A model that describes images, one word each, and counts those under way."""

    def __init__(self) -> None:
        self.asked: list[GenerateRequest] = []
        self.now = self.most = 0
        self.may_go = asyncio.Event()
        self.may_go.set()

    async def generate(self, request: GenerateRequest) -> GenerateResponse:
        self.asked.append(request)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await self.may_go.wait()
            await asyncio.sleep(0)
        finally:
            self.now -= 1
        return GenerateResponse(
            choices=[Choice(blocks=[Block(text="cat")])],
            usage=Usage(input_tokens=3, cache_read_input_tokens=4, output_tokens=1),
            route=RouteInfo(model="sees", provider="p"),
        )


def session(helper: Helper, **image) -> Session:
    routes = Routes(Models(SEES, PROVIDERS, {}, {}), {}, Roles())
    made = adaptation(InferenceMetrics(CollectorRegistry()))
    multimodal = Multimodal(image=image) if image else Multimodal()
    charge = Charge(open_budget(Limits()), "user")
    stored = StoredFiles(FakeFiles({}), charge)
    return made.session(multimodal, routes, helper.generate, 1000, charge, stored)


def images(*contents: bytes, is_remembered: bool = False) -> list[MediaRef]:
    return [
        MediaRef(
            f"messages[0].content[{number}]",
            Block(media=Media(kind=IMAGE, data=content, mime_type="image/png")),
            is_remembered,
        )
        for number, content in enumerate(contents)
    ]


async def test_four_models_at_once_are_asked_and_all_in_the_end():
    helper = Helper()
    adapted = await session(helper).adapt(images(*(b"%d" % n for n in range(12))), BLIND)
    assert (helper.most, len(helper.asked)) == (4, 12)
    assert len(adapted.replacements) == 12


async def test_an_image_used_repeatedly_is_described_once():
    helper = Helper()
    one = session(helper)
    first, again = await asyncio.gather(
        one.adapt(images(b"a", b"a"), BLIND), one.adapt(images(b"a"), BLIND)
    )
    assert len(helper.asked) == 1
    assert (len(first.entries), len(again.entries)) == (2, 1)
    (used,) = one.used
    assert (used.input_tokens, used.output_tokens) == (7, 1)


async def test_a_step_that_is_given_up_leaves_the_work_to_the_other():
    helper = Helper()
    helper.may_go.clear()
    one = session(helper)
    first = asyncio.create_task(one.adapt(images(b"a"), BLIND))
    other = asyncio.create_task(one.adapt(images(b"a"), BLIND))
    await until(lambda: bool(helper.asked))
    first.cancel()
    helper.may_go.set()
    assert (await other).entries == ["messages[0].content[0]:image-described"]
    assert (len(helper.asked), helper.now) == (2, 0)


async def test_too_many_images_are_refused_before_any_call():
    helper = Helper()
    with pytest.raises(AdaptationError) as refused:
        await session(helper, max_images=2).adapt(images(b"a", b"b", b"c"), BLIND)
    assert refused.value.param == "messages[0].content[2]"
    assert helper.asked == []


async def test_of_remembered_images_the_newest_are_described():
    helper = Helper()
    media = [*images(b"a", b"b", b"c", is_remembered=True), *images(b"d")]
    adapted = await session(helper, max_images=2).adapt(media, BLIND)
    texts = [adapted.replacements[place][0].text for place in range(4)]
    assert [text.endswith("no longer kept]") for text in texts] == [True, True, False, False]
    assert len(helper.asked) == 2


async def test_a_helper_is_asked_without_conversions_of_its_own():
    helper = Helper()
    await session(helper, prompt="Count").adapt(images(b"a"), BLIND)
    (asked,) = helper.asked
    assert asked.multimodal == Multimodal(enabled=False)
    assert asked.messages[0].blocks[0].text == "Count"


async def test_the_first_failure_is_reported_and_ends_the_others():
    async def fail(name: str) -> None:
        raise AdaptationError(2, name)

    with pytest.raises(AdaptationError, match="first"):
        await all_of([asyncio.sleep(9), fail("first"), fail("second")])


async def test_work_that_failed_is_done_again_for_the_next():
    flights, made = SingleFlight(), iter([AdaptationError(2, "no"), None])

    async def make() -> str:
        if error := next(made):
            raise error
        return "done"

    with pytest.raises(AdaptationError):
        await flights.get("key", make)
    assert await flights.get("key", make) == await flights.get("key", make) == "done"
