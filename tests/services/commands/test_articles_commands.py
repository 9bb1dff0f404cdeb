"""`gateway groups`, `grants` and `articles`, over a SQLite database of its own."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar, get_args

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from typer.testing import CliRunner

from gateway.articles.v1 import articles_pb2 as wire
from services import cli
from services.accounts.repository import AccountRepository
from services.articles.groups import EDIT_ARTICLES, GroupRepository
from services.articles.repository import ArticleRepository
from services.articles.tables import PERMISSIONS
from services.commands import articles
from services.common.settings import Storage
from services.common.storage.database import open_engine
from services.common.storage.migrations.runner import migrate

Result = TypeVar("Result")


def on_database(folder: Path, work: Callable[[AsyncEngine], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        engine = open_engine(Storage(data_dir=folder))
        await migrate(engine)
        try:
            return await work(engine)
        finally:
            await engine.dispose()

    return asyncio.run(run())


@pytest.fixture
def users(tmp_path: Path) -> dict[str, str]:
    """Make ada and bob; give their ids."""

    async def work(engine: AsyncEngine) -> dict[str, str]:
        accounts = AccountRepository(engine)
        for user in ("ada", "bob"):
            await accounts.create_key(user)
        return {user: (await accounts.caller_named(user)).user_id for user in ("ada", "bob")}

    return on_database(tmp_path, work)


def run(folder: Path, *words: str, status: int = 0) -> str:
    environ = {"GATEWAY_DATA_DIR": str(folder), "GATEWAY_DATABASE_URL": None}
    result = CliRunner().invoke(cli.app, words, env=environ, prog_name="gateway")
    assert result.exit_code == status, result.output
    return result.output


def groups_of(folder: Path, user_id: str) -> list[wire.ArticleGroup]:
    return on_database(folder, lambda engine: ArticleRepository(engine).list_groups(user_id))


def test_a_group_is_made_joined_listed_and_left(tmp_path: Path, users: dict[str, str]) -> None:
    group = run(tmp_path, "groups", "create", "Our lab", "--user", "ada").strip()
    assert 0 < int(group) < 1 << 53
    for _ in range(2):
        run(tmp_path, "groups", "add", group, "--user", "bob")
    heading, line = run(tmp_path, "groups", "list").splitlines()
    assert heading.split() == ["ID", "NAME", "CREATOR", "MEMBERS", "DOCUMENTS", "CREATED"]
    assert re.split(r"\s{2,}", line)[:5] == [group, "Our lab", users["ada"], "2", "0"]
    assert [(one.group_id, one.is_creator) for one in groups_of(tmp_path, users["bob"])] == [
        (0, True),
        (int(group), False),
    ]
    run(tmp_path, "groups", "remove", group, "--user", "bob")
    assert len(groups_of(tmp_path, users["bob"])) == 1
    assert "not a member" in run(tmp_path, "groups", "remove", group, "--user", "bob", status=1)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("groups", "create", "lab", "--user", "eve"), "'eve'"),
        (("groups", "create", "", "--user", "ada"), "name"),
        (("groups", "create", "x" * 201, "--user", "ada"), "name"),
        (("groups", "create", "a\nb", "--user", "ada"), "name"),
        (("groups", "add", "7", "--user", "ada"), "no group 7"),
        (("groups", "remove", "7", "--user", "ada"), "no group 7"),
        (("grants", "add", "--user", "eve"), "'eve'"),
        (("articles", "share", "7", "private"), "document"),
        (("articles", "restore", "7"), "document"),
    ],
)
def test_error_messages_name_the_mistake(
    tmp_path: Path, users: dict[str, str], words: tuple[str, ...], named: str
) -> None:
    assert named in run(tmp_path, *words, status=1)


def test_a_grant_is_given_and_taken(tmp_path: Path, users: dict[str, str]) -> None:
    def has() -> bool:
        return on_database(tmp_path, lambda engine: GroupRepository(engine).has_grant(users["ada"]))

    assert not has()
    run(tmp_path, "grants", "add", "--user", "ada")
    assert has()
    run(tmp_path, "grants", "remove", "--user", "ada", "articles")
    assert not has()


def test_a_document_is_shared_and_restored(tmp_path: Path, users: dict[str, str]) -> None:
    async def make(engine: AsyncEngine) -> str:
        return (await ArticleRepository(engine).create(users["ada"], "enterprise", 0, "Paper")).id

    article_id = on_database(tmp_path, make)
    run(tmp_path, "articles", "share", article_id, "private")
    (article,) = groups_of(tmp_path, users["ada"])[0].articles
    assert article.permission == wire.PERMISSION_PRIVATE
    on_database(tmp_path, lambda engine: ArticleRepository(engine).delete(users["ada"], article_id))
    assert not groups_of(tmp_path, users["ada"])[0].articles
    run(tmp_path, "articles", "restore", article_id)
    assert [one.id for one in groups_of(tmp_path, users["ada"])[0].articles] == [article_id]


def test_the_names_that_commands_take_are_those_of_the_service() -> None:
    assert set(get_args(articles.Permission)) == set(PERMISSIONS)
    assert get_args(articles.Grant) == (EDIT_ARTICLES,)
