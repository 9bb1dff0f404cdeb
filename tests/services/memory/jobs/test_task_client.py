"""The client of side jobs, against an inference that does what a test says."""

import asyncio

import pytest

from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import GatewayError
from tests.services.memory.job_worker import fails, fake_inference, hangs, says

PROMPT = pb.Prompt(instructions="do", input="this", max_tokens=5)


async def test_texts_and_vectors_come_for_the_user_they_are_for() -> None:
    async with fake_inference(summarise="m", embed="e") as (fake, tasks):
        assert tasks.can_summarise
        assert tasks.can_embed
        assert await tasks.summarise("ada", PROMPT) == "A summary."
        assert await tasks.extract("bob", PROMPT) == "A summary."
        embedding = await tasks.embed("eve", ["a dog", "a cat"])
        await tasks.embed("eve", ["Which pets?"], is_query=True)
    assert embedding.model == "sandbox/embed"
    assert [len(vector) for vector in embedding.vectors] == [256, 256]
    asked = [(user_id, request.task) for user_id, request in fake.asked]
    assert asked == [
        ("ada", pb.TASK_SUMMARISE),
        ("bob", pb.TASK_EXTRACT),
        ("eve", pb.TASK_EMBED),
        ("eve", pb.TASK_EMBED),
    ]
    assert [request.is_query for _, request in fake.asked[2:]] == [False, True]
    assert fake.asked[0][1].prompt == PROMPT
    assert list(fake.asked[2][1].texts) == ["a dog", "a cat"]


async def test_which_roles_have_a_model_is_known_without_asking() -> None:
    async with fake_inference() as (fake, tasks):
        assert not tasks.can_summarise
        assert not tasks.can_embed
        tasks.roles = tasks.roles.model_copy(update={"embed": "e"})
        assert tasks.can_embed
    assert not fake.asked


async def test_thoughts_are_taken_out() -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = says("<think>hm\nhm</think>\nAda has a dog.")
        assert await tasks.summarise("ada", PROMPT) == "Ada has a dog."
        assert await tasks.extract("ada", PROMPT) == "Ada has a dog."


@pytest.mark.parametrize(
    "act",
    [
        fails,
        *map(says, ("", " \n", "<think>only thoughts</think>", "<thinking>cut off")),
    ],
)
async def test_a_failure_or_an_empty_answer_is_reported(act) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = act
        with pytest.raises(GatewayError):
            await tasks.summarise("ada", PROMPT)


async def test_a_missing_vector_is_a_failure() -> None:
    async with fake_inference(embed="e") as (fake, tasks):
        fake.act = says("no vectors")
        with pytest.raises(GatewayError):
            await tasks.embed("ada", ["a"])


async def test_silence_is_a_failure_after_a_while_and_ends_the_work() -> None:
    ended = asyncio.Event()

    async def noted(request: pb.RunTaskRequest) -> pb.RunTaskResponse:
        try:
            return await hangs(request)
        finally:
            ended.set()

    # Longer each time that a busy machine lets it pass before the work begins.
    for timeout_s in (0.1, 1, 10):
        async with fake_inference(timeout_s=timeout_s, summarise="m") as (fake, tasks):
            fake.act = noted
            with pytest.raises(GatewayError) as raised:
                await tasks.summarise("ada", PROMPT)
            assert raised.value.code == "timeout"
            if fake.called.is_set():
                await asyncio.wait_for(ended.wait(), 60)
                break
    assert ended.is_set()
