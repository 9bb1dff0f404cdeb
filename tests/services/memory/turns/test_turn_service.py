"""Turns of a memory over gRPC, on both databases."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors.v1.errors_pb2 import Reason
from gateway.memory.v1 import memory_pb2
from services.common.errors import GatewayError
from services.memory.storage.tables import memories
from tests.services.memory.builders import count_all
from tests.services.memory.conversations import call, image, model, result, text, thought, user
from tests.services.memory.job_worker import fails, hangs, rows, says
from tests.services.memory.memory_server import READ_ONLY, MemoryServer, memory_server, texts
from tests.waiting import until


@pytest.fixture
async def service(engine: AsyncEngine) -> AsyncIterator[MemoryServer]:
    async with memory_server(engine) as one:
        yield one


def reason_of(error: GatewayError) -> str:
    return Reason.Name(error.reason).removeprefix("REASON_")


async def turns_of(service: MemoryServer, name: str = "ada") -> list[list[str]]:
    """Return the texts of all turns of the diary, the oldest first."""
    pages: list[list[str]] = []
    token = ""
    while True:
        request = memory_pb2.ListTurnsRequest(memory_id="diary", page_token=token)
        page = await service.call("ListTurns", request, name)
        pages += [texts(turn.messages) for turn in page.turns]
        token = page.next_page_token
        if not token:
            return pages[::-1]


async def memory_of(service: MemoryServer, name: str = "ada") -> memory_pb2.Memory:
    request = memory_pb2.GetMemoryRequest(memory_id="diary")
    answer = await service.call("GetMemory", request, name)
    memory: memory_pb2.Memory = answer.memory
    return memory


async def test_a_turn_is_seen_by_the_next(service: MemoryServer) -> None:
    first = await service.say("I am Ada.", answer=model(thought("hm"), "Hello Ada."))
    assert (texts(first.messages), first.newest_user_message_index, len(first.turns)) == (
        ["I am Ada."],
        0,
        0,
    )
    second = await service.say("Who am I?")
    assert [texts(turn.messages) for turn in second.turns] == [["I am Ada.", "Hello Ada."]]
    assert texts(second.messages) == ["Who am I?"]


@pytest.mark.parametrize("first", range(3))
async def test_full_and_newest_only_requests_store_the_same(
    service: MemoryServer, first: int
) -> None:
    exchanges = [("one", "1"), ("two", "2"), ("three", "3"), ("four", "4"), ("five", "5")]
    history = [message for ask, answer in exchanges for message in (user(ask), model(answer))]
    for place, (ask, answer) in enumerate(exchanges):
        whole = history[: 2 * place + 1]
        sent = whole if place % 3 == first else whole[-3:] if place % 2 else whole[-1:]
        context = await service.say(*sent, answer=answer)
        assert texts(context.messages) == [ask]
        assert len(context.turns) == place
    assert await turns_of(service) == [list(pair) for pair in exchanges]


async def test_an_edit_takes_back_what_came_after(service: MemoryServer) -> None:
    await service.say("one", answer="1")
    await service.say("two", answer="2")
    await service.say("three", answer="3")
    edited = [user("one"), model("1"), user("two"), model("2"), user("other")]
    context = await service.say(*edited, answer="4")
    assert [texts(turn.messages) for turn in context.turns] == [["one", "1"], ["two", "2"]]
    assert await turns_of(service) == [["one", "1"], ["two", "2"], ["other", "4"]]
    assert (await memory_of(service)).turns == 3


async def test_a_turn_that_is_left_changes_nothing(service: MemoryServer) -> None:
    await service.say("one", answer="1")
    async with service.taking("two"):
        pass
    with pytest.raises(ZeroDivisionError):
        async with service.taking(user("other"), model("x"), user("three")):
            raise ZeroDivisionError
    assert await turns_of(service) == [["one", "1"]]


async def test_a_memory_whose_first_turn_is_left_never_was(
    service: MemoryServer, engine: AsyncEngine
) -> None:
    async with service.taking("one") as holding:
        assert texts(holding.context.messages) == ["one"]
    with pytest.raises(GatewayError) as raised:
        await memory_of(service)
    assert reason_of(raised.value) == "NOT_FOUND"

    async def is_gone() -> bool:
        return not await count_all(engine, memories)

    await until(is_gone, every_s=0.01)


async def test_reading_an_unknown_memory_answers_and_makes_none(
    service: MemoryServer, engine: AsyncEngine
) -> None:
    async with service.taking("hello", mode=READ_ONLY) as holding:
        assert texts(holding.context.messages) == ["hello"]
        with pytest.raises(GatewayError) as raised:
            await holding.commit(model("hi"))
    assert reason_of(raised.value) == "INVALID_REQUEST"
    assert await count_all(engine, memories) == 0


async def test_reading_changes_nothing(service: MemoryServer) -> None:
    await service.say("one", answer="1")
    async with service.taking("two", mode=READ_ONLY) as holding:
        assert [texts(turn.messages) for turn in holding.context.turns] == [["one", "1"]]
    assert await turns_of(service) == [["one", "1"]]


async def test_one_writes_at_a_time_while_others_read(engine: AsyncEngine) -> None:
    async with memory_server(engine, lock_wait_s=0.05, max_readers=2) as service:
        await service.say("one")
        async with service.taking("two") as writer:
            with pytest.raises(GatewayError) as refused:
                await service.say("three")
            assert reason_of(refused.value) == "MEMORY_BUSY"
            assert refused.value.retry_after_s
            async with (
                service.taking("a", mode=READ_ONLY),
                service.taking("b", mode=READ_ONLY),
            ):
                with pytest.raises(GatewayError) as refused:
                    async with service.taking("c", mode=READ_ONLY):
                        pass
                assert reason_of(refused.value) == "MEMORY_BUSY"
            await writer.commit(model("2"))
        await service.say("three")
        assert len(await turns_of(service)) == 3


async def test_tools_are_called_and_answered_within_one_turn(service: MemoryServer) -> None:
    await service.say("Weather?", answer=model(call("c1", "weather", '{"city": "Bonn"}')))
    context = await service.say(user(result("c1", "sunny")), answer="Sunny.")
    assert len(context.turns) == 0
    kinds = [[block.WhichOneof("kind") for block in one.blocks] for one in context.messages]
    assert kinds == [["text"], ["tool_use"], ["tool_result"]]
    assert context.newest_user_message_index == 0
    assert (await memory_of(service)).turns == 1
    after = await service.say("Thanks")
    assert len(after.turns) == 1
    assert [m.blocks[0].WhichOneof("kind") for m in after.turns[0].messages] == [
        "text",
        "tool_use",
        "tool_result",
        "text",
    ]


async def test_images_are_remembered_by_their_hash(service: MemoryServer) -> None:
    await service.say(user(image(b"png"), "What is this?"))
    context = await service.say("And now?")
    block = context.turns[0].messages[0].blocks[0]
    assert block.media.WhichOneof("source") == "sha256" or block.text


async def test_users_share_nothing_but_the_name_of_a_memory(service: MemoryServer) -> None:
    mine = {"personal_memory": True}
    await service.say("My name is Ada. The password is swordfish.", name="ada", **mine)
    context = await service.say("What is the password? My name is Eve.", name="eve", **mine)
    assert (len(context.turns), context.profile, len(context.snippets)) == (0, "", 0)
    assert await turns_of(service, "eve") == [["What is the password? My name is Eve.", "Noted."]]
    await service.call("DeleteMemory", memory_pb2.DeleteMemoryRequest(memory_id="diary"), "eve")
    assert (await memory_of(service, "ada")).turns == 1
    with pytest.raises(GatewayError):
        await memory_of(service, "eve")
    search = memory_pb2.SearchMemoryRequest(memory_id="diary", query="password")
    with pytest.raises(GatewayError):
        await service.call("SearchMemory", search, "eve")


async def test_old_turns_are_summarised_and_retrieved_once(service: MemoryServer) -> None:
    await service.say("My boat is called Melusine.", answer="A fine name.")
    for number in range(24):
        context = await service.say(f"Let us talk about topic {number}.")
    raw = [turn.number for turn in context.turns]
    assert raw == list(range(raw[0], 25))
    assert len(raw) >= 10
    context = await service.say("What is my boat called?")
    assert "Melusine" in context.summary
    assert "Melusine" in context.snippets[0].text
    assert context.snippets[0].turn == 1
    assert all(snippet.turn < context.turns[0].number for snippet in context.snippets)
    memory = await memory_of(service)
    assert memory.turns == memory.summarised + memory.pending + 10 == 26
    assert not memory.degraded


async def test_no_model_is_asked_on_the_way_unless_a_batch_is_due(engine: AsyncEngine) -> None:
    async with memory_server(engine, summarise="fake/model") as service:
        for number in range(14):
            await service.say(f"turn {number}")
        assert service.inference.asked == []
        await service.say("turn 14")
        await service.say("turn 15")
        assert len(service.inference.asked) == 1
        assert (await memory_of(service)).summary == "A summary."


@pytest.mark.parametrize("act", [fails, hangs])
async def test_a_summariser_that_never_works_blocks_no_conversation(
    engine: AsyncEngine, act: object
) -> None:
    async with memory_server(engine, summarise="fake/model", sync_wait_s=0.05) as service:
        service.inference.act = act
        await service.say("My boat is called Melusine.")
        for number in range(25):
            context = await service.say(f"turn {number}")
        assert len(context.turns) < 20
        memory = await memory_of(service)
        assert memory.degraded
        assert "Melusine" in memory.summary


async def test_profile_holds_only_what_the_user_said(
    service: MemoryServer, engine: AsyncEngine
) -> None:
    mine = {"personal_memory": True, "memory_id": ""}
    for _ in range(10):
        await service.say("My name is Ada.", answer="My name is Canary.", **mine)
    facts = await until(lambda: _facts(service), within_s=20, every_s=0.01)
    assert [fact.value for fact in facts] == ["Ada"]
    context = await service.say("Hello", name="ada", memory_id="other", personal_memory=True)
    assert "Ada" in context.profile
    assert "Canary" not in context.profile
    await service.call("DeleteProfile", memory_pb2.DeleteProfileRequest())
    assert await _facts(service) == []


async def _facts(service: MemoryServer) -> list[memory_pb2.Fact]:
    answer = await service.call("GetProfile", memory_pb2.GetProfileRequest())
    return list(answer.facts)


async def test_a_plan_has_so_many_memories_and_deleting_frees_one(engine: AsyncEngine) -> None:
    async with memory_server(engine, quota={"personal_free": 2}) as service:
        await service.say("a", memory_id="one")
        await service.say("b", memory_id="two")
        with pytest.raises(GatewayError) as refused:
            await service.say("c", memory_id="three")
        assert reason_of(refused.value) == "MEMORY_QUOTA_EXCEEDED"
        await service.say("b again", memory_id="two")
        await service.call("DeleteMemory", memory_pb2.DeleteMemoryRequest(memory_id="one"))
        await service.say("c", memory_id="three")


async def test_what_one_process_wrote_another_reads(engine: AsyncEngine) -> None:
    async with memory_server(engine) as one, memory_server(engine) as other:
        for number in range(20):
            await (one, other)[number % 2].say(f"turn {number}", answer=f"answer {number}")
        assert len(await turns_of(one)) == len(await turns_of(other)) == 20
        context = await other.say("last")
        assert texts(context.turns[-1].messages) == ["turn 19", "answer 19"]


async def test_deleting_a_memory_leaves_nothing_of_it(
    service: MemoryServer, engine: AsyncEngine
) -> None:
    for number in range(20):
        await service.say(f"My name is Ada{number}.", personal_memory=True)
    await service.call("DeleteMemory", memory_pb2.DeleteMemoryRequest(memory_id="diary"))
    from services.common.storage.database import metadata

    left = {
        name: len(table_rows)
        for name, table in metadata.tables.items()
        if name.startswith("memor") and (table_rows := await rows(engine, table))
    }
    assert {name: count for name, count in left.items() if "owner" not in name} == {}
    assert await _facts(service) == []


@pytest.mark.parametrize(
    ("opening", "param"),
    [
        ({"memory_id": ""}, "memory_id"),
        ({"memory_id": "a\n"}, "memory_id"),
        ({"memory_id": "x" * 257}, "memory_id"),
        ({"history_window": 4}, "memory_config.history_window"),
        ({"summary_window": 0}, "memory_config.summary_window"),
    ],
)
async def test_an_opening_that_breaks_a_rule_is_refused(
    service: MemoryServer, opening: dict[str, object], param: str
) -> None:
    with pytest.raises(GatewayError) as raised:
        await service.say("hello", **opening)
    assert (reason_of(raised.value), raised.value.param) == ("INVALID_REQUEST", param)


async def test_a_turn_that_begins_with_a_commit_is_refused(service: MemoryServer) -> None:
    with pytest.raises(GatewayError) as raised:
        async with service.taking(user(text(" "))):
            pass
    assert raised.value.param == "messages"


async def test_the_steps_of_a_tool_loop_look_for_facts_once(engine: AsyncEngine) -> None:
    async with memory_server(engine, summarise="fake/model") as service:
        # An answer that is one, or the jobs would fail, and ask again seconds later.
        service.inference.act = says('{"facts": []}')
        mine = {"personal_memory": True}
        await service.say("I am Ada. Weather?", answer=model(call("c1", "weather")), **mine)
        for step in range(1, 4):
            answer = model(call(f"c{step + 1}", "weather"))
            await service.say(user(result(f"c{step}", "sunny")), answer=answer, **mine)
        await service.say("Thanks", **mine)
        await until(lambda: len(service.inference.asked) >= 2, within_s=20, every_s=0.01)
        inputs = [request.prompt.input for _, request in service.inference.asked]
        assert sorted("Weather?" in text for text in inputs) == [False, True]


async def test_an_embedding_model_that_hangs_keeps_nobody_waiting(engine: AsyncEngine) -> None:
    async with memory_server(engine, embed="fake/embed", embed_wait_s=0.05) as service:
        service.inference.act = hangs
        await service.say("My boat is called Melusine.")
        for number in range(19):
            await service.say(f"turn {number}")
        async with asyncio.timeout(20):
            context = await service.say("What is my boat called?")
        assert "Melusine" in context.snippets[0].text
