"""Facts about users: their versions, their sources, and the rest after turns are deleted."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.storage.database import reading, writing
from services.memory.profile.fact_store import MAX_FACTS, FactStore
from services.memory.profile.fact_versions import FactVersion, find_restated, supersession_changes
from services.memory.profile.facts import (
    ExtractedFact,
    Fact,
    FactSource,
    is_same_value,
    normalize_topic,
    normalize_value,
    profile_text,
)
from services.memory.storage.tables import facts as table
from tests.manual_clock import ManualClock

HOME = ("home", "place")
ONE_DATABASE = pytest.mark.parametrize("storage", ["sqlite"], indirect=True)


class Profile:
    """Facts that tests put one by one, a second after each other."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self.clock = ManualClock()
        self.facts = FactStore(engine)

    async def say(
        self,
        normalize_value: str,
        said_in: tuple[str, int] | None = None,
        key: tuple[str, str] = HOME,
        owner: str = "ada",
        at_s: float | None = None,
    ) -> None:
        self.clock.now_s += 1
        at_ms = self.clock.now_ms() if at_s is None else int(at_s * 1000)
        async with writing(self.engine) as connection:
            source = FactSource(*said_in) if said_in else None
            await self.facts.put(
                connection, owner, [ExtractedFact(*key, normalize_value)], source, at_ms
            )

    async def withdraw(self, entity_id: str, first_turn: int) -> None:
        async with writing(self.engine) as connection:
            await self.facts.withdraw_from(connection, entity_id, first_turn)

    async def known(self, owner: str = "ada") -> list[str]:
        return [fact.value for fact in await self.facts.of(owner)]

    async def kept(self) -> list[str]:
        """Return the values of all facts, superseded ones too."""
        async with reading(self.engine) as connection:
            return sorted(await connection.scalars(select(table.c.value)))


async def test_a_fact_is_corrected_and_deleted_alone(engine: AsyncEngine) -> None:
    profile = Profile(engine)
    await profile.say("Basel", ("m1", 1))
    await profile.say("Bern", ("m1", 2))
    await profile.say("tea", ("m1", 3), ("preferences", "drink"))
    home = (await profile.facts.of("ada"))[0]

    async def correct(value: str, owner: str = "ada", fact_id: str = home.id) -> str:
        profile.clock.now_s += 1
        async with writing(engine) as connection:
            return await profile.facts.correct(
                connection, owner, fact_id, value, profile.clock.now_ms()
            )

    async def remove(fact_id: str, owner: str = "ada") -> bool:
        async with writing(engine) as connection:
            return await profile.facts.remove(connection, owner, fact_id)

    assert await correct("Thun", owner="eve") == ""
    # The same words in other letters are the same fact, as it is written now.
    assert await correct("BERN") == home.id
    corrected = await correct("Thun")
    assert await profile.known() == ["Thun", "tea"]
    assert await correct("Chur") == "", "a superseded fact is none that a user sees"
    # It is the user's own word, which stays without the conversation.
    await profile.withdraw("m1", 1)
    assert await profile.known() == ["Thun"]
    await profile.say("Genf", ("m2", 1))
    [current] = await profile.facts.of("ada")
    assert not await remove(corrected)
    assert not await remove(current.id, owner="eve")
    assert await remove(current.id)
    assert await profile.kept() == [], "what it superseded does not come back"


@ONE_DATABASE
async def test_what_is_said_later_supersedes_and_nothing_is_erased(engine: AsyncEngine) -> None:
    profile = Profile(engine)
    await profile.say("Basel", ("m1", 1))
    await profile.say("Bern", ("m1", 2))
    assert await profile.known() == ["Bern"]
    assert await profile.kept() == ["Basel", "Bern"]


async def test_withdrawn_fact_restores_the_superseded_one(engine: AsyncEngine) -> None:
    profile = Profile(engine)
    await profile.say("Basel", ("m1", 1))
    await profile.say("Bern", ("m1", 5))
    await profile.say("Thun", ("m1", 7))
    await profile.say("tea", ("m1", 8), ("preferences", "drink"))
    await profile.withdraw("m1", 7)
    assert await profile.known() == ["Bern"]
    await profile.withdraw("m1", 2)
    assert await profile.known() == ["Basel"]
    await profile.withdraw("m1", 1)
    assert await profile.kept() == []


async def test_a_fact_that_another_turn_says_too_stays(engine: AsyncEngine) -> None:
    profile = Profile(engine)
    await profile.say("Basel", ("m1", 3))
    await profile.say("Basel", ("m2", 9))
    await profile.say("Basel", ("m1", 4))
    await profile.withdraw("m1", 1)
    [fact] = await profile.facts.of("ada")
    assert fact.sources == (FactSource("m2", 9),)
    # It is as old as what still says it.
    assert fact.updated_at_ms == profile.clock.now_ms() - 1000


@ONE_DATABASE
async def test_withdrawing_a_middle_version_keeps_the_newest(engine: AsyncEngine) -> None:
    profile = Profile(engine)
    await profile.say("Basel", ("m1", 1))
    await profile.say("Bern", ("m2", 1))
    await profile.say("Thun", ("m1", 2))
    await profile.withdraw("m2", 1)
    assert await profile.known() == ["Thun"]
    await profile.withdraw("m1", 2)
    assert await profile.known() == ["Basel"]


@ONE_DATABASE
async def test_whoever_changes_their_mind_twice_says_something_new(engine: AsyncEngine) -> None:
    profile = Profile(engine)
    for number, place in enumerate(("Basel", "Bern", "Basel"), 1):
        await profile.say(place, ("m1", number))
    assert await profile.known() == ["Basel"]
    assert await profile.kept() == ["Basel", "Basel", "Bern"]
    await profile.withdraw("m1", 3)
    assert await profile.known() == ["Bern"]


@ONE_DATABASE
async def test_what_is_said_outside_of_memories_cites_none_and_stays(engine: AsyncEngine) -> None:
    profile = Profile(engine)
    for _ in range(3):
        await profile.say("Basel")
    await profile.say("Bern", ("m1", 1))
    await profile.withdraw("m1", 1)
    [fact] = await profile.facts.of("ada")
    assert (fact.value, fact.sources) == ("Basel", ())


async def test_users_do_not_see_or_lose_each_others_facts(engine: AsyncEngine) -> None:
    profile = Profile(engine)
    await profile.say("Basel", ("m1", 1), owner="ada")
    await profile.say("Bern", ("m2", 1), owner="bob")
    assert (await profile.known("ada"), await profile.known("bob")) == (["Basel"], ["Bern"])
    async with writing(engine) as connection:
        await profile.facts.withdraw_from(connection, "m1", 0)
        await profile.facts.remove_owner(connection, "eve")
    assert (await profile.known("ada"), await profile.known("bob")) == ([], ["Bern"])
    async with writing(engine) as connection:
        await profile.facts.remove_owner(connection, "bob")
    assert await profile.kept() == []


@ONE_DATABASE
async def test_least_recently_said_facts_are_left_out(engine: AsyncEngine) -> None:
    profile = Profile(engine)
    for number in range(MAX_FACTS + 2):
        await profile.say("x", ("m1", number), ("likes", f"thing {number:02}"))
    await profile.say("x", ("m1", 99), ("likes", "thing 00"))
    kept_topics = {fact.sub_topic for fact in await profile.facts.of("ada")}
    assert len(kept_topics) == MAX_FACTS
    assert {f"thing {number:02}" for number in range(MAX_FACTS + 2)} - kept_topics == {
        "thing 01",
        "thing 02",
    }


async def test_facts_that_are_found_at_once_are_all_kept(engine: AsyncEngine) -> None:
    profile = Profile(engine)
    await asyncio.gather(
        *(profile.say(f"place {number % 3}", (f"m{number}", 1)) for number in range(8))
    )
    await profile.say("the end", ("m9", 1))
    assert await profile.known() == ["the end"]


_SAID = st.lists(
    st.tuples(st.sampled_from("AB"), st.sampled_from(["m1", "m2"]), st.integers(1, 4)),
    max_size=7,
    unique_by=lambda one: one[1:],
)


@ONE_DATABASE
@given(said=_SAID, order=st.randoms(), first=st.integers(1, 5))
@settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
async def test_what_is_withdrawn_is_as_if_it_had_never_been_said(
    engine: AsyncEngine,
    said: Sequence[tuple[str, str, int]],
    order: st.randoms,  # type: ignore[valid-type]  # hypothesis gives a Random
    first: int,
) -> None:
    timed = list(enumerate(said))
    found = timed.copy()
    order.shuffle(found)
    both = []
    for put, withdraws in ((found, True), (timed, False)):
        profile = Profile(engine)
        async with writing(engine) as connection:
            await profile.facts.remove_owner(connection, "ada")
        for at_s, (place, entity_id, turn) in put:
            if withdraws or entity_id != "m1" or turn < first:
                await profile.say(place, (entity_id, turn), at_s=at_s)
        if withdraws:
            await profile.withdraw("m1", first)
        both.append([(one.value, one.updated_at_ms) for one in await profile.facts.of("ada")])
    assert both[0] == both[1]


def test_a_chain_has_one_end_and_each_links_to_the_next() -> None:
    chain = [
        FactVersion("c", "3", 30, 1, None),
        FactVersion("a", "1", 10, 0, None),
        FactVersion("b", "2", 20, 2, "x"),
    ]
    assert list(supersession_changes(chain)) == [("a", "b"), ("b", "c")]
    assert list(supersession_changes([])) == []


def test_restated_value_joins_its_neighbour_or_is_new() -> None:
    chain = [FactVersion("a", "Basel", 10, 0, "b"), FactVersion("b", "Bern", 30, 1, None)]
    assert find_restated(chain, "basel", 20) == "a"
    assert find_restated(chain, "Bern", 20) == "b"
    assert find_restated(chain, "Thun", 20) is None
    assert find_restated(chain, "Basel", 40) is None


def test_capitals_articles_and_signs_do_not_make_another_value() -> None:
    assert is_same_value("The  Hague!", "the hague")
    assert is_same_value("日本", "日本")
    assert not is_same_value("C", "C++")
    assert not is_same_value("…", "?")
    assert is_same_value("…", "…")


def test_topics_and_values_are_kept_short_and_on_one_line() -> None:
    assert normalize_topic("  My  Favourite_Food ") == "my favourite_food"
    assert len(normalize_topic("x" * 100)) == 64
    assert normalize_value(" a\n b\0 ") == "a b"
    assert len(normalize_value("x" * 500)) == 200


def test_the_same_facts_are_the_same_text() -> None:
    facts = [
        Fact("name", "name", "Ada", (), 1),
        Fact("home", "place", "Basel", (FactSource("m1", 1),), 2),
    ]
    assert profile_text(facts) == "- name: Ada\n- home, place: Basel"
    assert profile_text([]) == ""
