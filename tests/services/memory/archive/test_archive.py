"""The archive over a real database of either kind."""

import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.clock import Clock
from services.common.settings import Storage
from services.common.storage.database import open_engine, reading, writing
from services.common.storage.migrations.runner import migrate
from services.common.text.tokens import estimate_tokens
from services.memory.archive import binary_quantization, bm25f, lookup, postings
from services.memory.archive.archive import Archive, QuestionVector, Snippet
from services.memory.archive.index import MAX_TEXT, ArchivedTurn
from services.memory.storage import tables

OWNER, MEMORY, MODEL = "usr_ada", "mem_a", "hub/embed"
NOW = datetime(2026, 3, 18, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
ALL = 1 << 32
WORDS = "boat cat dog rent piano garden kite bread sister wedding doctor knee tax lamp".split()
TABLES = (
    *(tables.archived_turns, tables.postings, tables.vectors),
    *(tables.signatures, tables.archives),
)


# Questions, and texts of turns, that other searches have choked on.
HOSTILE = [
    "",
    "\0",
    "'; DROP TABLE memories; --",
    '"canary" AND (NEAR/2 OR NOT *) ^ col:x -"',
    "canary & !rent | (<-> :*",
    "%_\\ ${x} {{y}}",
    "😀👩\u200d👩\u200d👧 🏳️\u200d🌈",
    "\u202ecanary\u202c\u0301\ufeff\ud7ff\uffff",
    "canary " * 1500,
    "🦜" * 10_000,
    "q" * 10_000,
    " ".join(f"w{n}" for n in range(3000)),
    "last week " * 1000,
    "9" * 10_000,
]


def turn(number: int, text: str, *, hours_ago: float = 0) -> ArchivedTurn:
    return ArchivedTurn(number, text, NOW_MS - int(hours_ago * 3_600_000))


def talk(count: int, seed: int = 1) -> list[ArchivedTurn]:
    """Turns of some words each, over many days and sessions."""
    random = Random(seed)
    return [
        turn(number, " ".join(random.choices(WORDS, k=9)), hours_ago=(count - number) * 0.7)
        for number in range(1, count + 1)
    ]


def points(turns: Iterable[ArchivedTurn], seed: int = 1) -> dict[int, list[float]]:
    random = Random(seed)
    return {one.number: [random.gauss(0, 1) for _ in range(8)] for one in turns}


class SingleMemoryArchive:
    """One memory's archive, by default; what is searched are turns up to `before_turn`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self.archive = Archive(engine, Clock(now=lambda: NOW_MS / 1000))

    async def add(self, *turns: ArchivedTurn, owner: str = OWNER, memory: str = MEMORY) -> None:
        async with writing(self.engine) as connection:
            await self.archive.add(connection, owner, memory, turns)

    async def embed(
        self, vectors: dict[int, list[float]], model: str = MODEL, memory: str = MEMORY
    ) -> None:
        async with writing(self.engine) as connection:
            await self.archive.add_vectors(connection, memory, model, vectors)

    async def remove_from(self, first_turn: int) -> None:
        async with writing(self.engine) as connection:
            await self.archive.remove_from(connection, MEMORY, first_turn)

    async def search(
        self, question: str, *, owner: str = OWNER, memory: str = MEMORY, **more: Any
    ) -> list[Snippet]:
        chosen = {"before_turn": ALL, **more}
        return await self.archive.search(owner, memory, question, **chosen)

    async def numbers(self, question: str, **more: Any) -> list[int]:
        return [snippet.turn for snippet in await self.search(question, **more)]

    async def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        held = {}
        async with reading(self.engine) as connection:
            for table in TABLES:
                # An epoch says how often something was removed.
                columns = [one for one in table.columns if one.name != "epoch"]
                table_rows = await connection.execute(select(*columns))
                held[table.name] = sorted(tuple(row) for row in table_rows)
        return held


@pytest.fixture
def memory_archive(engine: AsyncEngine) -> SingleMemoryArchive:
    return SingleMemoryArchive(engine)


async def test_a_turn_is_found_by_what_it_says(memory_archive: SingleMemoryArchive) -> None:
    await memory_archive.add(*talk(30), turn(31, "My canary sings.\nLovely!", hours_ago=1))
    [first, *_] = await memory_archive.search("Do I have any canaries?")
    assert first.turn == 31
    assert first.text == "My canary sings.\nLovely!"
    assert first.created_at_ms == NOW_MS - 3_600_000


async def test_users_and_memories_never_see_each_other(memory_archive: SingleMemoryArchive) -> None:
    canary = turn(5, "my canary sings", hours_ago=2)
    vectors = {5: [1.0, 2.0]}
    for owner, memory in ((OWNER, MEMORY), (OWNER, "mem_b"), ("usr_bob", "mem_c")):
        await memory_archive.add(canary, owner=owner, memory=memory)
        await memory_archive.embed(vectors, memory=memory)
    vector = QuestionVector(MODEL, [1.0, 2.0])
    for owner, memory in ((OWNER, "mem_c"), ("usr_bob", MEMORY), ("usr_eve", "mem_b")):
        assert (
            await memory_archive.search("canary", owner=owner, memory=memory, vector=vector) == []
        )
        assert (
            await memory_archive.archive.without_vectors(
                owner, memory, "other", after_turn=0, limit=9
            )
            == []
        )
    before = await memory_archive.search("canary", vector=vector)
    async with writing(memory_archive.engine) as connection:
        await memory_archive.archive.remove(connection, "mem_b")
    await memory_archive.add(*talk(40), owner="usr_bob", memory="mem_d")
    assert await memory_archive.search("canary", vector=vector) == before
    assert await memory_archive.search("canary", memory="mem_b", vector=vector) == []


async def test_a_search_computes_outside_the_event_loop(
    memory_archive: SingleMemoryArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()

    def noting(work: Callable[..., list[int]]) -> Callable[..., list[int]]:
        def noted(*args: Any, **kwargs: Any) -> list[int]:
            threads.add(threading.get_ident())
            return work(*args, **kwargs)

        return noted

    for module, name in (
        (bm25f, "score_turns"),
        (binary_quantization, "nearest_by_hamming"),
        (binary_quantization, "cosine_similarities"),
    ):
        monkeypatch.setattr(module, name, noting(getattr(module, name)))
    await memory_archive.add(turn(1, "my canary sings"))
    await memory_archive.embed({1: [1.0, 2.0]})
    assert await memory_archive.numbers("canary", vector=QuestionVector(MODEL, [1.0, 2.0])) == [1]
    assert threads and threading.get_ident() not in threads


async def test_an_owner_that_is_not_the_memorys_adds_nothing(
    memory_archive: SingleMemoryArchive,
) -> None:
    await memory_archive.add(turn(1, "mine"))
    with pytest.raises(ValueError, match="another"):
        await memory_archive.add(turn(2, "canary"), owner="usr_eve")
    assert await memory_archive.numbers("canary") == []


async def test_only_the_rarest_terms_are_read(
    memory_archive: SingleMemoryArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {2: "canary canary", 4: "rent", 8: "rent", 20: "boat", 22: "boat", 24: "boat"}
    await memory_archive.add(*(turn(number, text) for number, text in texts.items()))
    for most, expected in ((0, {2}), (2, {2}), (3, {2, 4, 8}), (6, set(texts))):
        monkeypatch.setattr(lookup, "_MAX_POSTINGS", most * postings.SIZE)
        assert set(await memory_archive.numbers("boat rent canary tulip")) == expected


async def test_turns_that_go_out_raw_stay_out(memory_archive: SingleMemoryArchive) -> None:
    turns = talk(60)
    await memory_archive.add(*turns)
    await memory_archive.embed(points(turns))
    for before_turn in (-1, 0, 1, 17, 60, 1 << 40, 1 << 64):
        numbers = await memory_archive.numbers(
            "boat cat dog rent piano",
            before_turn=before_turn,
            limit=100,
            vector=QuestionVector(MODEL, [1.0] * 8),
        )
        assert set(numbers) == set(range(1, min(61, before_turn)))


async def test_texts_stay_within_the_budget_and_long_ones_are_cut(
    memory_archive: SingleMemoryArchive,
) -> None:
    filler = "so much happened that day in the garden "
    await memory_archive.add(
        *(turn(n, f"{filler * 150} the canary {n} {filler * 150}") for n in range(1, 25))
    )
    snippets = await memory_archive.search("canary")
    assert len(snippets) == 16
    assert 1500 < sum(estimate_tokens(snippet.text) for snippet in snippets) <= 2000
    assert all(f"canary {snippet.turn}" in snippet.text for snippet in snippets)
    assert await memory_archive.search("canary", max_tokens=0) == []
    assert len(await memory_archive.search("canary", limit=3)) == 3


async def test_ranking_is_equal_on_both_engines_and_repeatable(
    memory_archive: SingleMemoryArchive, tmp_path: Path
) -> None:
    other = SingleMemoryArchive(open_engine(Storage(data_dir=tmp_path / "other")))
    await migrate(other.engine)
    turns = talk(300)
    for one in (memory_archive, other):
        for first in range(0, 300, 7 if one is memory_archive else 50):
            await one.add(*turns[first : first + (7 if one is memory_archive else 50)])
        await one.embed(points(turns))
    random = Random(5)
    for _ in range(10):
        question = " ".join(random.choices(WORDS, k=3))
        vector = QuestionVector(MODEL, [random.gauss(0, 1) for _ in range(8)])
        snippets = await memory_archive.search(question, vector=vector, limit=20)
        assert snippets == await other.search(question, vector=vector, limit=20)
        assert snippets == await memory_archive.search(question, vector=vector, limit=20)
    await other.engine.dispose()


async def test_hostile_questions_do_no_harm(memory_archive: SingleMemoryArchive) -> None:
    await memory_archive.add(*talk(20), turn(21, "my canary sings"))
    await memory_archive.add(*(turn(22 + n, question) for n, question in enumerate(HOSTILE)))
    rows = await memory_archive.rows()
    for question in HOSTILE:
        snippets = await memory_archive.search(question)
        assert len(snippets) <= 16
        assert sum(estimate_tokens(snippet.text) for snippet in snippets) <= 2000
    assert await memory_archive.rows() == rows
    assert 21 in await memory_archive.numbers("a canary that sings")


async def test_both_ends_of_a_very_long_question_count(memory_archive: SingleMemoryArchive) -> None:
    await memory_archive.add(turn(1, "canary"), turn(5, "rent"), turn(9, "other"))
    middle = " ".join(f"w{n}" for n in range(3000))
    assert set(await memory_archive.numbers(f"canary {middle}")) >= {1}
    assert set(await memory_archive.numbers(f"{middle} rent?")) >= {5}


async def test_nul_is_replaced_and_long_text_truncated(memory_archive: SingleMemoryArchive) -> None:
    await memory_archive.add(turn(1, "my\0canary " + "x" * MAX_TEXT + " hidden"))
    assert (await memory_archive.search("canary", max_tokens=10**6))[0].text.startswith(
        "my\ufffdcanary"
    )
    assert await memory_archive.numbers("hidden") == []


async def test_removing_leaves_what_there_was_without_the_removed(
    memory_archive: SingleMemoryArchive,
) -> None:
    turns = [one._replace(number=one.number + 4070) for one in talk(60)]
    vectors = points(turns)
    for kept in (0, 10, 26, 59, 60):
        await memory_archive.add(*turns[:kept])
        await memory_archive.embed({one.number: vectors[one.number] for one in turns[:kept]})
        rows = await memory_archive.rows()
        await memory_archive.add(*turns[kept:], turn(9000, "canary"))
        await memory_archive.embed(vectors | {9000: [1.0] * 8})
        await memory_archive.remove_from(4071 + kept)
        if kept:
            assert await memory_archive.rows() == rows
            await memory_archive.remove_from(4071 + kept)
            assert await memory_archive.rows() == rows
        assert await memory_archive.numbers("canary") == []
        async with writing(memory_archive.engine) as connection:
            await memory_archive.archive.remove(connection, MEMORY)
        assert not any((await memory_archive.rows()).values())


async def test_a_removed_turns_words_are_not_those_of_its_successor(
    memory_archive: SingleMemoryArchive,
) -> None:
    await memory_archive.add(turn(1, "rent"), turn(9, "my canary sings"))
    await memory_archive.embed({9: [1.0, 0.0]})
    await memory_archive.remove_from(2)
    await memory_archive.add(turn(9, "we sold the boat"))
    assert await memory_archive.numbers("canary") == []
    assert await memory_archive.numbers("", vector=QuestionVector(MODEL, [1.0, 0.0])) == []
    assert (await memory_archive.search("boat"))[0].turn == 9


async def test_removing_ends_with_the_callers_transaction(
    memory_archive: SingleMemoryArchive,
) -> None:
    await memory_archive.add(turn(1, "canary"))
    with pytest.raises(ZeroDivisionError):
        async with writing(memory_archive.engine) as connection:
            await memory_archive.archive.remove(connection, MEMORY)
            await memory_archive.archive.add(connection, OWNER, MEMORY, [turn(2, "canary again")])
            raise ZeroDivisionError
    assert await memory_archive.numbers("canary") == [1]


async def test_adding_twice_adds_once(memory_archive: SingleMemoryArchive) -> None:
    turns = talk(20)
    await memory_archive.add(*turns)
    await memory_archive.embed(points(turns))
    rows = await memory_archive.rows()
    await memory_archive.add(*(one._replace(text="canary") for one in turns))
    await memory_archive.embed(points(turns, seed=2))
    assert await memory_archive.rows() == rows


async def test_batches_add_up_to_one(memory_archive: SingleMemoryArchive) -> None:
    turns = talk(20)
    await memory_archive.add(*turns[:7])
    await memory_archive.add(*reversed(turns[5:]))
    rows = await memory_archive.rows()
    async with writing(memory_archive.engine) as connection:
        await memory_archive.archive.remove(connection, MEMORY)
    await memory_archive.add(*turns)
    assert await memory_archive.rows() == rows


async def test_the_neighbour_of_what_was_asked_for_comes_along(
    memory_archive: SingleMemoryArchive,
) -> None:
    turns = [turn(n, "rent and tax", hours_ago=500 - 2 * n) for n in range(1, 41)]
    turns[19] = turn(20, "I have a name for the canary at last!", hours_ago=460)
    turns[20] = turn(21, "Rufus it is.", hours_ago=459.9)
    await memory_archive.add(*turns)
    assert set((await memory_archive.numbers("What is my canary's name?"))[:3]) >= {20, 21}


async def test_dates_and_the_latest_are_found(memory_archive: SingleMemoryArchive) -> None:
    await memory_archive.add(
        *(turn(n, "I cooked some stew", hours_ago=(40 - n) * 72) for n in range(1, 41))
    )
    day = int(datetime(2026, 2, 4, tzinfo=UTC).timestamp() * 1000)
    on_day = [n for n in range(1, 41) if 0 <= NOW_MS - (40 - n) * 259_200_000 - day < 86_400_000]
    assert on_day == [26]
    assert (await memory_archive.numbers("What did I cook on February 4?"))[0] == 26
    assert (await memory_archive.numbers("What did I cook most recently?"))[0] == 40
    last_week = await memory_archive.numbers("What did I cook last week?")
    assert set(last_week[:3]) == {37, 38, 39}


async def test_the_latest_comes_first_where_it_is_asked_for(
    memory_archive: SingleMemoryArchive,
) -> None:
    await memory_archive.add(
        turn(1, "I cooked stew and then cooked more", hours_ago=400),
        *(turn(n, "rent and tax", hours_ago=400 - 5 * n) for n in range(2, 40)),
        turn(40, "I cooked and then we had rent to pay"),
    )
    assert (await memory_archive.numbers("What did I cook?"))[0] == 1
    assert (await memory_archive.numbers("What did I cook lately?"))[0] == 40


async def test_vectors_find_what_words_do_not(memory_archive: SingleMemoryArchive) -> None:
    turns = talk(50)
    await memory_archive.add(*turns)
    vectors = points(turns)
    await memory_archive.embed(vectors)
    assert await memory_archive.numbers("zzz") == []
    assert (await memory_archive.numbers("zzz", vector=QuestionVector(MODEL, vectors[33])))[0] == 33


async def test_vectors_of_another_model_or_size_are_not_compared(
    memory_archive: SingleMemoryArchive,
) -> None:
    await memory_archive.add(turn(1, "boat"), turn(5, "rent"))
    await memory_archive.embed({1: [1.0, 0.0]}, model="hub/old")
    await memory_archive.embed({5: [0.0, 1.0]})
    assert await memory_archive.numbers("zzz", vector=QuestionVector(MODEL, [1.0, 0.0])) == [5]
    assert await memory_archive.numbers("zzz", vector=QuestionVector(MODEL, [1.0, 0.0, 0.0])) == []
    assert await memory_archive.numbers("zzz", vector=QuestionVector("hub/new", [1.0, 0.0])) == []
    await memory_archive.embed({1: [0.0, 1.0], 5: [1.0, 0.2]}, model="hub/both")
    await memory_archive.embed({5: [-1.0, 0.0]}, model="hub/old")
    assert await memory_archive.numbers("zzz", vector=QuestionVector("hub/both", [1.0, 0.0])) == [
        5,
        1,
    ]


async def test_vectors_of_another_model_do_not_crowd_out(
    memory_archive: SingleMemoryArchive,
) -> None:
    turns = talk(300)
    await memory_archive.add(*turns)
    await memory_archive.embed({one.number: [1.0, 0.0] for one in turns}, model="hub/old")
    await memory_archive.embed({7: [-1.0, 0.5]})
    assert await memory_archive.numbers("zzz", vector=QuestionVector(MODEL, [1.0, 0.0])) == [7]


async def test_turns_without_vectors_are_listed_in_batches(
    memory_archive: SingleMemoryArchive,
) -> None:
    turns = talk(6)
    await memory_archive.add(*turns)
    await memory_archive.embed({2: [1.0], 5: [1.0], 77: [1.0]})
    await memory_archive.embed({1: [1.0]}, model="hub/old")

    async def missing(after_turn: int, limit: int) -> list[ArchivedTurn]:
        return await memory_archive.archive.without_vectors(
            OWNER, MEMORY, MODEL, after_turn=after_turn, limit=limit
        )

    assert await missing(0, 3) == [turns[0], turns[2], turns[3]]
    assert await missing(4, 3) == [turns[5]]


async def test_other_process_sees_additions_and_removals(
    memory_archive: SingleMemoryArchive, engine: AsyncEngine
) -> None:
    other = Archive(engine, Clock(now=lambda: NOW_MS / 1000))
    await memory_archive.add(turn(1, "boat"), turn(2, "canary"))
    await memory_archive.embed({1: [0.0, 1.0], 2: [1.0, 0.0]})
    asked = QuestionVector(MODEL, [1.0, 0.0])
    assert (await other.search(OWNER, MEMORY, "", before_turn=9, vector=asked))[0].turn == 2
    await memory_archive.remove_from(2)
    snippets = await other.search(OWNER, MEMORY, "", before_turn=9, vector=asked)
    assert [snippet.turn for snippet in snippets] == [1]


async def test_search_cost_does_not_grow_with_the_memory(
    memory_archive: SingleMemoryArchive,
) -> None:
    await memory_archive.add(
        *(turn(n, "rent " * 3 + "canary" * (n == 9), hours_ago=1) for n in range(1, 400))
    )
    async with reading(memory_archive.engine) as connection:
        rows = await connection.scalar(select(func.count()).select_from(tables.postings))
    # A row for each term and block of 4,096 turns, not for each turn.
    assert rows is not None
    assert rows < 10
