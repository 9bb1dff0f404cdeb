"""Erasing a user's data, over HTTP and by the command's code, on SQLite and on PostgreSQL."""

import signal
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import String, func, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from services.accounts.admin.users import UserAdministration
from services.accounts.erasure.eraser import Eraser
from services.accounts.erasure.repository import ErasureRepository
from services.accounts.erasure.tables import erased_items, erasures
from services.accounts.requests.tables import request_log, request_log_labels
from services.accounts.tables import audit_log
from services.articles.groups import GroupRepository
from services.common.clock import Clock
from services.common.settings import Settings, Storage
from services.common.storage.database import execute_many, metadata, open_engine, reading, writing
from services.common.storage.migrations.runner import migrate
from services.erasures import erase_batches
from services.files.repository import files, usage
from services.inference.response_cache.keys import owner_of_user as answers_owner
from services.media.conversion.cache import owner_of as conversions_owner
from tests.e2e.users import User
from tests.gateway_in_process import Gateway, running_gateway
from tests.services.processes import serving
from tests.waiting import until

# Tables that name a user who has something of everything.
OWNED = {
    *("users", "api_keys", "limits", "allowances", "files", "file_usage", "uploads"),
    *("articles", "article_operations", "article_sessions", "article_group_members"),
    "article_usage",
    *("memories", "memory_owners", "memory_facts", "responses"),
    *("conversations", "request_log", "usage_records", "usage_days", "usage_hours"),
    *("chat_completions", "chat_completion_contents"),
    *("usage_label_days", "batches", "batch_tasks"),
    *("vector_stores", "vector_store_files"),
}
ADMIN_KEY = make_admin_key(bytes(32))
SECTIONS: Mapping[str, Any] = {
    "admin": {"key_sha256": hash_admin_key(ADMIN_KEY).hex()},
    "limits": {"sweep_every_s": 0.05},
    "usage": {"write_every_s": 0.05, "tags": ["project"], "end_users": True},
    "request_log": {"enabled": True, "bodies": True, "write_every_s": 0.05},
    "response_cache": {"enabled": True},
    "memory": {"job_poll_s": 0.05},
    # Batches wait until they are erased.
    "batches": {"enabled": False},
    # So do the files of vector stores.
    "vector_stores": {"enabled": False},
}
# Tables that may still name a user who was erased.
REMEMBERING = {audit_log, erasures, erased_items}


# Requests of the user who is erased, and calls of models among them.
REQUESTS, CALLS = 22, 5


async def admin(gateway: Gateway, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    url = f"{gateway.url}/admin/v1/{path}"
    async with gateway.http.request(method, url, json=body, headers=headers) as answer:
        return answer.status, await answer.json()


async def create_user(gateway: Gateway, name: str) -> tuple[str, User]:
    """Create a user with a key and a limit; return the id and the user."""
    status, made = await admin(gateway, "POST", "keys", {"user": name})
    assert status == 200, made
    path = f"users/{made['user_id']}/limits"
    assert (await admin(gateway, "PUT", path, {"requests_per_minute": 1_000}))[0] == 200
    return made["user_id"], User(gateway.http, gateway.url, made["key"])


async def fill(user: User, groups: Iterable[int]) -> Mapping[str, Any]:
    """Have something of every kind stored of a user; return what names it."""
    uploads = [await user.upload(b"content %d" % number) for number in range(3)]
    upload_id = (await user.begin_upload(8)).body["id"]
    assert (await user.add_part(upload_id, b"part")).status == 200
    for memory in ({"memory_id": "diary"}, {"memory_id": "plans"}, {}):
        config = {"personal_memory": True}
        labels = {"user": "end-user", "metadata": {"project": "a"}}
        answer = await user.chat("My name is Robin.", memory_config=config, **labels, **memory)
        assert answer.status == 200, answer
    response = await user.response("Hello there")
    assert (await user.chat("cache me", store=True)).status == 200
    conversation = await user.create_conversation()
    assert (await user.add_item(conversation, "an item")).status == 200
    assert (await user.message_batch("Hello")).status == 200
    assert (await user.vector_store(uploads[0].body["id"])).status == 200
    documents = []
    for group in groups:
        made = await user.article("doc/create", group=group, name="essay")
        documents.append(made.body["data"]["article"]["outer_id"])
        assert (await user.insert(await user.open_document(documents[-1]), "text")).status == 200
    return {
        "files": [upload.body["id"] for upload in uploads],
        "response": response.body["id"],
        "documents": documents,
    }


async def tables_naming(engine: AsyncEngine, user_id: str) -> set[str]:
    """Return the names of the tables that have a user's id in any column."""
    naming = set()
    async with reading(engine) as connection:
        for table in metadata.sorted_tables:
            texts = [column for column in table.columns if isinstance(column.type, String)]
            query = select(func.count()).where(or_(*(one == user_id for one in texts)))
            if texts and table not in REMEMBERING and await connection.scalar(query):
                naming.add(table.name)
    return naming


async def labels_without_entry(engine: AsyncEngine) -> Any:
    """Return the number of tags and end users of the request log whose entry is gone."""
    entries = select(request_log.c.id)
    query = select(func.count()).where(request_log_labels.c.entry_id.not_in(entries))
    async with reading(engine) as connection:
        return await connection.scalar(query)


def owned_bytes(folder: Path, user_id: str) -> set[str]:
    """Return the names of the stores that have bytes of a user."""
    owners = {"conversions": conversions_owner(user_id), "answers": answers_owner(user_id)}
    return {name for name, owner in owners.items() if any((folder / name / owner).glob("*"))}


async def go_on() -> bool:
    return True


def stored(folder: Path, name: str) -> int:
    """Return the number of blobs in a folder."""
    return sum(path.is_file() for path in (folder / name).rglob("*"))


async def insert_files(engine: AsyncEngine, folder: Path, user_id: str, number: int) -> list[Path]:
    """Insert files of four bytes; return the paths of their blobs in the order of their ids."""
    blobs = []
    async with writing(engine) as connection:
        sums = {"owner_id": user_id, "files": number, "size_bytes": 4 * number}
        await connection.execute(insert(usage).values(sums))
        rows = []
        for place in range(number):
            file_id = f"file-{place:026}"
            blob = folder / "files" / file_id
            blob.parent.mkdir(exist_ok=True)
            blob.write_bytes(b"text")
            blobs.append(blob)
            rows.append(
                {
                    **{"id": file_id, "owner_id": user_id, "filename": "a", "size_bytes": 4},
                    **{"purpose": "user_data", "mime_type": "text/plain", "sha256": ""},
                    **{"created_at_s": place, "expires_at_s": 9_999_999_999},
                }
            )
        await execute_many(connection, insert(files), rows)
    return blobs


async def test_one_user_is_erased_and_another_is_not(
    storage: Storage, engine: AsyncEngine, tmp_path: Path
) -> None:
    folder = storage.data_dir
    sections = {**SECTIONS, "storage": storage.model_dump(exclude_defaults=True)}
    async with running_gateway(tmp_path, **sections) as gateway:
        ada_id, ada = await create_user(gateway, "ada")
        bob_id, bob = await create_user(gateway, "bob")
        group_id = await GroupRepository(engine).create("shared", ada_id)
        await GroupRepository(engine).add(group_id, bob_id)
        await fill(ada, (0, group_id))
        bobs = await fill(bob, (group_id,))
        conversion = folder / "conversions" / conversions_owner(ada_id) / "x"
        conversion.parent.mkdir(parents=True)
        conversion.write_bytes(b"text")
        session = await ada.open_document(bobs["documents"][0])
        edited = await ada.insert(session, "by Ada", requestId="r")
        assert edited.status == 200

        async def is_settled() -> bool:
            """Return whether what is written later is there: facts, usage, the request log."""
            both = await tables_naming(engine, ada_id) & await tables_naming(engine, bob_id)
            _, log = await admin(gateway, "GET", f"requests?user_id={ada_id}&limit=1000")
            _, report = await admin(gateway, "GET", f"usage?by=user&user_id={ada_id}")
            return (
                OWNED <= both
                and (len(log["data"]), report["data"][0]["requests"]) == (REQUESTS, CALLS)
                and owned_bytes(folder, ada_id) == {"answers", "conversions"}
            )

        await until(is_settled, every_s=0.05)
        file_count, body_count = stored(folder, "files"), stored(folder, "request-log")
        _, log = await admin(gateway, "GET", f"requests?user_id={ada_id}&limit=1000")
        _, spent = await admin(gateway, "GET", "usage?by=model")

        status, begun = await admin(gateway, "POST", f"users/{ada_id}/erase")
        assert (status, begun["state"], begun["user_id"]) == (200, "in_progress", ada_id)
        assert begun["removed"] == {"keys": {"items": 1, "bytes": 0}}

        async def finished() -> Any:
            status, erasure = await admin(gateway, "GET", f"users/{ada_id}/erasure")
            assert status == 200
            return erasure if erasure["state"] == "finished" else None

        erasure = await until(finished, every_s=0.05)
        removed = {kind: one["items"] for kind, one in erasure["removed"].items()}
        assert removed == {
            **{
                "keys": 1,
                "files": 3,
                "memories": 2,
                "responses": 1,
                "conversations": 1,
                "batches": 1,
                "vector_stores": 1,
            },
            **{"documents": 2, "sessions": 1, "requests": 1, "memberships": 1, "conversions": 1},
            **{
                "chat_completions": 1,
                "facts": 1,
                "cached_answers": 1,
                "logged_requests": len(log["data"]),
                "usage_records": 5,
            },
        }
        sizes = {kind: one["bytes"] for kind, one in erasure["removed"].items() if one["bytes"]}
        assert sizes.keys() == {
            *("files", "memories", "responses", "conversations", "documents"),
            "chat_completions",
            *("conversions", "cached_answers", "logged_requests"),
        }
        assert (sizes["files"], sizes["conversions"]) == (27, 4)

        # Nothing names the user but the edit of another's document; usage has sums alone.
        # A worker may write allowances until it knows: a later pass removes them.
        batches = erase_batches(Settings(storage=storage), engine, Clock())
        eraser = Eraser(ErasureRepository(engine, Clock()), batches)

        async def only_edits_name_the_user() -> bool:
            await eraser.run(ada_id, go_on)
            return await tables_naming(engine, ada_id) == {"article_operations"}

        await until(only_edits_name_the_user, every_s=0.1)
        assert owned_bytes(folder, ada_id) == set()
        # Three files, and a part of an upload.
        assert stored(folder, "files") == file_count - 4
        assert await labels_without_entry(engine) == 0
        bodies = sum(entry["has_bodies"] for entry in log["data"])
        assert stored(folder, "request-log") == body_count - bodies < body_count
        assert (await admin(gateway, "GET", "usage?by=model"))[1] == spent
        _, by_user = await admin(gateway, "GET", "usage?by=user")
        assert {one["id"] for one in by_user["data"]} == {"", bob_id}

        # The other user has everything.
        assert await tables_naming(engine, bob_id) >= OWNED
        assert (await bob.content(bobs["files"][0])) == b"content 0"
        assert (await bob.stored_response(bobs["response"])).status == 200
        assert len(await bob.turns("diary")) == 1
        session = await bob.open_document(bobs["documents"][0])
        assert await bob.read(session) == ["by Ada", "text"]

        # The user is gone, the request can be repeated, and the audit log has both ends of it.
        assert (await admin(gateway, "GET", f"users/{ada_id}"))[0] == 404
        assert await admin(gateway, "POST", f"users/{ada_id}/erase") == (200, erasure)
        assert (await admin(gateway, "POST", "users/user_none/erase"))[0] == 404
        _, entries = await admin(gateway, "GET", f"audit?subject_id={ada_id}&limit=2")
        assert [entry["action"] for entry in entries["data"]] == ["user.erased", "user.erase"]
        end, beginning = entries["data"]
        assert (end["actor"], end["after"]["erased"]["files"]["items"]) == ("erasure", 3)
        assert (beginning["actor"], beginning["before"]["name"]) == ("admin.key_sha256", "ada")


async def test_a_killed_erasure_goes_on_and_counts_each_file_once() -> None:
    settings = "[limits]\nsweep_every_s = 0.05\n"
    with tempfile.TemporaryDirectory(prefix="gw-") as name:
        folder = Path(name)
        engine = open_engine(Storage(data_dir=folder))
        await migrate(engine)
        user = await UserAdministration(engine).create("ada")
        blobs = await insert_files(engine, folder, user.id, 1_000)
        # A file that cannot be deleted now: the erasure is not finished when it is killed.
        blobs[-1].unlink()
        blobs[-1].mkdir()
        (blobs[-1] / "x").touch()
        await UserAdministration(engine).erase(user.id)
        erasures = ErasureRepository(engine, Clock())

        async def removed() -> int:
            return sum(one.items for one in (await erasures.get(user.id)).erased)

        async with serving(folder, ["accounts"], settings=settings) as (process, _):
            await until(removed)
            process.send_signal(signal.SIGKILL)
            await process.wait()
        assert 0 < await removed() < 1_000
        (blobs[-1] / "x").unlink()
        blobs[-1].rmdir()
        async with serving(folder, ["accounts"], settings=settings):

            async def is_finished() -> bool:
                return (await erasures.get(user.id)).HasField("finished_at_ms")

            await until(is_finished)
        report = {
            one.kind: (one.items, one.size_bytes) for one in (await erasures.get(user.id)).erased
        }
        assert report == {"files": (1_000, 4_000)}
        assert not any(blob.exists() for blob in blobs)
        await engine.dispose()
