"""Documents in groups: who sees, edits and deletes which, and what becomes of deleted ones."""

from itertools import pairwise

import pytest
from sqlalchemy import func, select

from gateway.articles.v1 import articles_pb2 as wire
from services.articles.repository import ArticleRepository
from services.articles.tables import articles, operations
from services.common.errors import GatewayError
from services.common.settings import Articles
from services.common.storage.database import reading
from tests.services.articles.editor_services import EditorServices, code_of
from tests.services.articles.test_sessions import code

MONTH_S = 30 * 86_400


async def lab(editors: EditorServices) -> int:
    """Make a group of ada's with bob in it."""
    group = await editors.groups.create("lab", "user_ada")
    await editors.groups.add(group, "user_bob")
    return group


async def test_a_document_is_created_with_the_fields_given(editors: EditorServices) -> None:
    ada = editors.client()
    named, unnamed = await ada.create("Paper"), await ada.create()
    assert named == wire.Article(
        id=named.id,
        name="Paper",
        group_id=0,
        may_edit=True,
        permission=wire.PERMISSION_GROUP_ONLY,
        depth=0,
        created_at=int(editors.clock.now_s),
    )
    assert named.id.isdecimal()
    assert unnamed.name == "Untitled"
    assert int(named.id) >> 22 == int(editors.clock.now_s * 1000)


async def test_a_name_has_at_most_200_characters(editors: EditorServices) -> None:
    ada = editors.client()
    assert (await ada.create("é" * 200)).name == "é" * 200
    for name in ("é" * 201, "a\0b"):
        with pytest.raises(GatewayError) as raised:
            await ada.create(name)
        assert (code_of(raised), raised.value.param) == (40003, "/name")
    assert len((await ada.groups())[0].articles) == 1


async def test_the_private_group_is_always_there_and_first(editors: EditorServices) -> None:
    ada = editors.client()
    (private,) = await ada.groups()
    assert (private.group_id, private.is_creator, list(private.articles)) == (0, True, [])
    group = await lab(editors)
    editors.clock.now_s += 1
    first = await ada.create("1")
    editors.clock.now_s += 1
    second = await ada.create("2")
    shared = await ada.create("3", group)
    private, theirs = await ada.groups()
    assert list(private.articles) == [second, first]
    assert (theirs.group_id, theirs.name, list(theirs.articles)) == (group, "lab", [shared])
    assert theirs.created_at == 1_700_000_000


async def test_private_group_documents_are_hidden_from_others(editors: EditorServices) -> None:
    ada, bob = editors.client("ada"), editors.client("bob")
    article = await ada.create()
    errors = []
    for named in (article.id, "123", "x", "9" * 30, "", "²"):
        for method in ("CreateSession", "DeleteArticle"):
            with pytest.raises(GatewayError) as raised:
                await bob.call(method, article_id=named)
            errors.append((raised.value.article_code, raised.value.message, raised.value.param))
    assert set(errors) == {(40402, errors[0][1], "/docId")}
    assert [list(group.articles) for group in await bob.groups()] == [[]]
    await ada.open(article.id)


async def test_members_share_a_groups_documents_and_others_see_none(
    editors: EditorServices,
) -> None:
    group = await lab(editors)
    ada, bob, eve = (editors.client(user) for user in ("ada", "bob", "eve"))
    article = await ada.create("shared", group)
    session_id = (await bob.open(article.id)).session_id
    await bob.insert(session_id, "by bob")
    assert await ada.texts((await ada.open(article.id)).session_id) == ["by bob"]
    assert [one.is_creator for one in await ada.groups()] == [True, True]
    _, theirs = await bob.groups()
    assert not theirs.is_creator
    assert [one.may_edit for one in theirs.articles] == [True]
    assert [one.group_id for one in await eve.groups()] == [0]
    assert await code(eve.open(article.id)) == 40402


async def test_a_group_of_others_is_unknown(editors: EditorServices) -> None:
    group = await lab(editors)
    eve = editors.client("eve")
    errors = set()
    for named in (group, 5, -1, (1 << 63) - 1):
        with pytest.raises(GatewayError) as raised:
            await eve.create(group_id=named)
        errors.add((raised.value.article_code, raised.value.message, raised.value.param))
    assert [(number, param) for number, _, param in errors] == [(40406, "/group")]


async def test_a_private_document_in_a_group_is_its_creators_alone(editors: EditorServices) -> None:
    group = await lab(editors)
    ada, bob = editors.client("ada"), editors.client("bob")
    article = await bob.create("mine", group)
    session_id = (await ada.open(article.id)).session_id
    await editors.articles.share(article.id, "private")
    assert await code(ada.insert(session_id, "x")) == 40402
    assert await code(ada.open(article.id)) == 40402
    assert await code(ada.call("DeleteArticle", article_id=article.id)) == 40402
    assert list((await ada.groups())[1].articles) == []
    (seen,) = (await bob.groups())[1].articles
    assert seen.permission == wire.PERMISSION_PRIVATE
    await bob.insert((await bob.open(article.id)).session_id, "x")


async def test_other_members_may_not_delete_a_document(editors: EditorServices) -> None:
    group = await lab(editors)
    ada, bob = editors.client("ada"), editors.client("bob")
    await editors.groups.add(group, "user_cy")
    article = await bob.create("by bob", group)
    with pytest.raises(GatewayError) as raised:
        await editors.client("cy").call("DeleteArticle", article_id=article.id)
    assert (code_of(raised), raised.value.http_status) == (40301, 403)
    assert await code(bob.call("DeleteArticle", article_id="1")) == 40402
    await ada.call("DeleteArticle", article_id=article.id)
    other = await bob.create("by bob", group)
    await bob.call("DeleteArticle", article_id=other.id)
    assert list((await bob.groups())[1].articles) == []


async def test_a_deleted_document_is_gone_and_can_be_brought_back(editors: EditorServices) -> None:
    ada = editors.client()
    article = await ada.create("Paper")
    session_id = (await ada.open(article.id)).session_id
    await ada.insert(session_id, "kept")
    await ada.call("DeleteArticle", article_id=article.id)
    assert list((await ada.groups())[0].articles) == []
    assert await code(ada.call("DeleteArticle", article_id=article.id)) == 40402
    editors.clock.now_s += MONTH_S - 1
    await editors.sweeper().sweep()
    await editors.articles.restore(article.id)
    assert await ada.texts((await ada.open(article.id)).session_id) == ["kept"]
    with pytest.raises(GatewayError):
        await editors.articles.restore(article.id)


async def test_after_a_month_a_deleted_document_is_gone_for_good(editors: EditorServices) -> None:
    ada = editors.client()
    kept, gone = await ada.create("kept"), await ada.create("gone")
    for article in (kept, gone):
        await ada.insert((await ada.open(article.id)).session_id, "x")
    await ada.call("DeleteArticle", article_id=gone.id)
    editors.clock.now_s += MONTH_S
    await editors.sweeper().sweep()
    with pytest.raises(GatewayError):
        await editors.articles.restore(gone.id)
    async with reading(editors.engine) as connection:
        assert list(await connection.scalars(select(articles.c.id))) == [kept.id]
        left = await connection.scalars(select(operations.c.article_id))
        assert list(left) == [kept.id]


async def test_one_sweeper_at_a_time_purges_all_documents(editors: EditorServices) -> None:
    ada = editors.client()
    for _ in range(41):
        article = await ada.create()
        await ada.call("DeleteArticle", article_id=article.id)
    editors.clock.now_s += MONTH_S
    first, second = editors.sweeper(), editors.sweeper()
    assert await first.sweep()
    assert not await second.sweep()
    async with reading(editors.engine) as connection:
        assert await connection.scalar(select(func.count()).select_from(articles)) == 0
    await first.stop()
    assert await second.sweep()


async def test_ids_of_one_moment_differ_and_reveal_no_count(editors: EditorServices) -> None:
    ada = editors.client()
    ids = {(await ada.create()).id for _ in range(20)}
    assert len(ids) == 20
    low = sorted(int(one) & ((1 << 22) - 1) for one in ids)
    assert max(after - before for before, after in pairwise(low)) > 1000


async def test_the_random_bits_of_ids_come_from_outside(editors: EditorServices) -> None:
    made = ArticleRepository(editors.engine, editors.clock, lambda bits: bits)
    article = await made.create("user_ada", "personal_free", 0, "")
    assert int(article.id) == (1_700_000_000_000 << 22) + 22


class TestGrants:
    @pytest.fixture
    def settings(self) -> Articles:
        return Articles(require_grant=True)

    async def test_a_grant_is_required_where_the_settings_say_so(
        self, editors: EditorServices
    ) -> None:
        ada = editors.client()
        for call in (
            ada.groups(),
            ada.create(),
            ada.open("1"),
            ada.call("DeleteArticle", article_id="1"),
            ada.read("s"),
            ada.insert("s", "x"),
            ada.call("DestroySession", session_id="s"),
        ):
            assert await code(call) == 40302
        await editors.groups.give_grant("user_ada")
        await editors.groups.give_grant("user_ada")
        await ada.insert(await ada.begin(), "x")
        await editors.groups.take_grant("user_ada")
        assert await code(ada.groups()) == 40302
