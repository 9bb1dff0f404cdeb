"""Groups, permissions and copies of documents, as users of the service change them."""

import pytest

from gateway.articles.v1 import articles_pb2 as wire
from services.common.articles import limits
from services.common.errors import GatewayError
from tests.services.articles.editor_services import Client, EditorServices, code_of, paragraph
from tests.services.articles.test_quotas import account
from tests.services.articles.test_sessions import code


async def group_of(client: Client, name: str = "lab") -> int:
    group_id: int = (await client.call("CreateGroup", name=name)).group.id
    return group_id


async def members_of(client: Client) -> list[tuple[str, str, bool]]:
    [group] = (await client.call("ListGroups")).groups
    return [(member.user_id, member.name, member.is_creator) for member in group.members]


async def test_members_of_a_group_share_documents(editors: EditorServices) -> None:
    ada, bob = editors.client("ada"), editors.client("bob")
    group = await group_of(ada)
    assert (await bob.call("ListGroups")).user_id == "user_bob"
    article = await ada.create(name="mine")
    assert await code(bob.open(article.id)) == 40402
    for _ in range(2):
        await ada.call("AddGroupMember", group_id=group, user_id="user_bob")
    assert await members_of(bob) == [("user_ada", "ada", True), ("user_bob", "bob", False)]
    shared = await ada.call("ShareArticle", article_id=article.id, group_id=group)
    assert (shared.article.group_id, shared.article.permission) == (
        group,
        wire.PERMISSION_GROUP_ONLY,
    )
    renamed = await bob.call("RenameArticle", article_id=article.id, name="ours")
    assert renamed.article.name == "ours"
    session_id = (await bob.open(article.id)).session_id
    await bob.insert(session_id, "a")
    private = wire.PERMISSION_PRIVATE
    await ada.call("ShareArticle", article_id=article.id, permission=private)
    assert await code(bob.read(session_id)) == 40402
    await ada.call(
        "ShareArticle", article_id=article.id, permission=wire.PERMISSION_GROUP_ONLY, group_id=0
    )
    assert await code(bob.open(article.id)) == 40402
    [own, empty] = await ada.groups()
    assert [document.name for document in own.articles] == ["ours"] and not empty.articles


async def test_who_has_no_right_changes_and_learns_nothing(editors: EditorServices) -> None:
    ada, bob, eve = [editors.client(user) for user in ("ada", "bob", "eve")]
    group, other = await group_of(ada), await group_of(eve, "other")
    await ada.call("AddGroupMember", group_id=group, user_id="user_bob")
    article = await ada.create(group_id=group)
    for client, method, fields, expected in (
        (bob, "ShareArticle", {"article_id": article.id, "group_id": 0}, 40301),
        (eve, "ShareArticle", {"article_id": article.id, "group_id": 0}, 40402),
        (ada, "ShareArticle", {"article_id": article.id, "group_id": other}, 40406),
        (ada, "ShareArticle", {"article_id": article.id, "group_id": -1}, 40406),
        (ada, "ShareArticle", {"article_id": article.id}, 40004),
        (ada, "ShareArticle", {"article_id": article.id, "permission": 0}, 40004),
        (eve, "RenameArticle", {"article_id": article.id, "name": "x"}, 40402),
        (ada, "RenameArticle", {"article_id": article.id, "name": ""}, 40003),
        (ada, "RenameArticle", {"article_id": article.id, "name": "x" * 201}, 40003),
        (bob, "AddGroupMember", {"group_id": group, "user_id": "user_eve"}, 40301),
        (bob, "AddGroupMember", {"group_id": group, "user_id": "user_nobody"}, 40301),
        (eve, "AddGroupMember", {"group_id": group, "user_id": "user_eve"}, 40406),
        (ada, "AddGroupMember", {"group_id": group, "user_id": "user_nobody"}, 40409),
        (ada, "AddGroupMember", {"group_id": group, "user_id": "eve"}, 40409),
        (ada, "AddGroupMember", {"group_id": group, "user_id": ""}, 40409),
        (bob, "RemoveGroupMember", {"group_id": group, "user_id": "user_ada"}, 40301),
        (bob, "RemoveGroupMember", {"group_id": group, "user_id": "user_eve"}, 40301),
        (ada, "RemoveGroupMember", {"group_id": group, "user_id": "user_eve"}, 40409),
        (eve, "RemoveGroupMember", {"group_id": group, "user_id": "user_bob"}, 40406),
        (eve, "RemoveGroupMember", {"group_id": 0}, 40406),
        (ada, "CreateGroup", {"name": ""}, 40003),
        (ada, "CreateGroup", {"name": "a\nb"}, 40003),
    ):
        assert await code(client.call(method, **fields)) == expected, (method, fields)
    # A group that is not the caller's, and one that does not exist.
    errors = set()
    for named in (group, 7):
        with pytest.raises(GatewayError) as raised:
            await eve.call("AddGroupMember", group_id=named, user_id="user_eve")
        errors.add((code_of(raised), raised.value.message, raised.value.param))
    assert len(errors) == 1
    assert [member[0] for member in await members_of(ada)] == ["user_ada", "user_bob"]


async def test_the_longest_member_manages_the_group_that_is_left(editors: EditorServices) -> None:
    ada, bob, eve = [editors.client(user) for user in ("ada", "bob", "eve")]
    group = await group_of(ada)
    for user in ("eve", "bob"):
        editors.clock.now_s += 1
        await ada.call("AddGroupMember", group_id=group, user_id=f"user_{user}")
    article = await bob.create(group_id=group)
    await ada.call("RemoveGroupMember", group_id=group)
    assert await members_of(bob) == [("user_eve", "eve", True), ("user_bob", "bob", False)]
    await eve.call("RemoveGroupMember", group_id=group, user_id="user_eve")
    assert await code(bob.call("RemoveGroupMember", group_id=group)) == 40906
    await bob.call("DeleteArticle", article_id=article.id)
    await bob.call("RemoveGroupMember", group_id=group)
    assert not (await bob.call("ListGroups")).groups
    # The document can be restored to its group, which the operator gives to someone.
    await editors.articles.restore(article.id)
    await editors.groups.add(group, "user_bob")
    [_, restored] = await bob.groups()
    assert [document.id for document in restored.articles] == [article.id]


async def test_an_empty_group_is_gone(editors: EditorServices) -> None:
    ada = editors.client("ada")
    group = await group_of(ada)
    await ada.call("RemoveGroupMember", group_id=group)
    assert not await editors.groups.list_all()


async def test_groups_and_their_members_are_limited(
    editors: EditorServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bob, eve = [editors.client(user) for user in ("ada", "bob", "eve")]
    monkeypatch.setattr(limits, "GROUPS_OF_A_USER", 2)
    monkeypatch.setattr(limits, "MEMBERS", 2)
    group, _ = await group_of(ada), await group_of(ada, "b")
    assert await code(group_of(ada, "c")) == 40003
    await ada.call("AddGroupMember", group_id=group, user_id="user_bob")
    assert await code(ada.call("AddGroupMember", group_id=group, user_id="user_eve")) == 40003
    third = await group_of(eve)
    assert await code(eve.call("AddGroupMember", group_id=third, user_id="user_ada")) == 40003
    await editors.groups.add(group, "user_eve")
    assert len((await bob.call("ListGroups")).groups[0].members) == 3


async def test_a_document_is_made_from_a_template(editors: EditorServices) -> None:
    ada, bob = editors.client("ada"), editors.client("bob")
    group = await group_of(ada)
    await ada.call("AddGroupMember", group_id=group, user_id="user_bob")
    source = await ada.create(group_id=group)
    session_id = (await ada.open(source.id)).session_id
    for reference_id in ("kept", "left"):
        reference = {"id": reference_id, "title": "T"}
        await ada.edit(session_id, "add_reference", reference=reference)
    template = {"isTemplate": True, "style": {"color": "red"}}
    cited = [{"text": "Method", "cite": "kept"}]
    blocks = [
        {"type": "h1", "children": cited, "style": template},
        {"type": "paragraph", "children": [{"text": "example", "cite": "left"}]},
        {"type": "image", "image": [{"fileId": "file-a"}], "style": {"isTemplate": True}},
    ]
    editors.files.files.add(("user_ada", "file-a"))
    edited = await ada.edit(session_id, "insert_blocks", path=[0], blocks=blocks)
    await ada.edit(session_id, "set_article_style", style={"global": {"paperSize": "A5"}})
    source_read = await ada.read(session_id)

    made = (await bob.call("CreateArticle", source_id=source.id, name="New")).article
    assert (made.name, made.group_id) == ("New", 0)
    opened = await bob.open(made.id)
    assert (opened.block_count, opened.revision) == (2, 1)
    read = await bob.read(opened.session_id)
    assert read.text == "# Method[1]\n\n![](/beta/v1/files/file-a/content)"
    assert (read.style, len(read.references)) == (
        source_read.style,
        len('[{"id":"kept","title":"T"}]'),
    )
    assert not {block.id for block in read.blocks} & {*edited.ids}
    block = await bob.call("ReadBlock", session_id=opened.session_id, block_id=read.blocks[0].id)
    assert b'"isTemplate":true' in block.block

    copy = (await bob.call("CreateArticle", source_id=source.id, copies_all=True)).article
    session_id = (await bob.open(copy.id)).session_id
    read = await bob.read(session_id)
    assert (read.text, read.references) == (source_read.text, source_read.references)
    await bob.call("ReverseEdit", session_id=session_id)
    assert (await bob.read(session_id)).text == ""
    assert (await account(editors, "bob")).size_bytes == 2 * (1024 + (16 << 10))

    empty = await ada.create()
    assert await code(ada.call("CreateArticle", source_id=empty.id)) == 40003
    assert (await ada.call("CreateArticle", source_id=empty.id, copies_all=True)).article.id
    plain = await ada.begin()
    await ada.insert(plain, "a")
    for source_id in (empty.id, "7", "x"):
        assert await code(bob.call("CreateArticle", source_id=source_id)) == 40402
    assert len((await bob.groups())[0].articles) == 2


async def test_a_copy_beyond_the_quota_is_refused(editors: EditorServices) -> None:
    ada, bob = editors.client("ada"), editors.client("bob")
    group = await group_of(ada)
    await ada.call("AddGroupMember", group_id=group, user_id="user_bob")
    source = await ada.create(group_id=group)
    session_id = (await ada.open(source.id)).session_id
    blocks = [paragraph("x" * 40_000)] * 2
    await ada.edit(session_id, "insert_blocks", path=[0], blocks=blocks)
    quota = editors.settings.quota.model_copy(update={"personal_free": 64 << 10})
    editors.settings = editors.settings.model_copy(update={"quota": quota})
    await editors.start()
    bob = editors.client("bob", 1)
    copying = bob.call("CreateArticle", source_id=source.id, copies_all=True)
    assert await code(copying) == 40303
    assert not (await bob.groups())[0].articles
