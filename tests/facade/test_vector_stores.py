"""Vector stores and the tool `file_search` over HTTP, with OpenAI's client."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import openai
import orjson
import pytest
import pytest_asyncio
from openai.types import VectorStore
from openai.types.responses import ResponseFileSearchToolCall, ResponseOutputMessage

from tests.facade.response_clients import ResponseGateway, response_gateway
from tests.grid import each_row
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

PUMP = "To change the filter of the pump, open the red valve and turn the ring. "
GARDEN = "Tomatoes are watered at dawn. The compost is turned in autumn."
FILLING = "The weather was fair, and nobody had anything to say about the matter at hand. "
SEARCHING = 'Call file_search. sandbox: arguments {"queries": ["When are tomatoes watered?"]}'
MAX_FILES, MAX_STORES = 4, 12


@dataclass(frozen=True)
class StoreGateway(ResponseGateway):
    """A gateway with vector stores of its users."""

    async def file(self, name: str, text: str | bytes) -> str:
        """Return the id of a new file of Ada's."""
        content = text.encode() if isinstance(text, str) else text
        return (await self.ada.files.create(file=(name, content), purpose="assistants")).id

    async def indexed(self, store_id: str) -> VectorStore:
        """Return a vector store once none of its files is in progress."""

        async def retrieve() -> VectorStore | None:
            store = await self.ada.vector_stores.retrieve(store_id)
            return None if store.file_counts.in_progress else store

        store = await until(retrieve, every_s=0.02)
        assert store is not None
        return store

    async def store(self, *texts: tuple[str, str], **fields: Any) -> VectorStore:
        """Return a vector store of Ada's with files, which are indexed."""
        file_ids = [await self.file(name, text) for name, text in texts]
        store = await self.ada.vector_stores.create(file_ids=file_ids, **fields)
        return await self.indexed(store.id)

    async def names(self, store_id: str, query: Any, **fields: Any) -> list[str]:
        """Return the names of the files that a search finds, without repetitions."""
        page = await self.ada.vector_stores.search(store_id, query=query, **fields)
        return list(dict.fromkeys(result.filename for result in page.data))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[StoreGateway]:
    sections: dict[str, Any] = {
        "roles": {"embed": "sandbox/embed"},
        "memory": {"job_poll_s": 0.05},
        "vector_stores": {"max_files": MAX_FILES, "max_per_user": MAX_STORES},
    }
    folder = tmp_path_factory.mktemp("gateway")
    async with response_gateway(folder, **sections) as one:
        yield StoreGateway(one.gateway, one.upstream, one.ada, one.bob)


async def test_files_are_indexed_found_filtered_and_removed(at: StoreGateway) -> None:
    stores = at.ada.vector_stores
    text = FILLING * 60 + PUMP + FILLING * 60
    store = await at.store(("pump.md", text), ("garden.txt", GARDEN), name="Manuals")
    assert (store.status, store.file_counts.completed) == ("completed", 2)
    assert store.usage_bytes > len(text.encode())
    garden_id = (await stores.files.list(store.id, order="asc")).data[1].id

    page = await stores.search(store.id, query="How do I change the filter of the pump?")
    assert page.data[0].filename == "pump.md" and PUMP.strip() in page.data[0].content[0].text
    assert all(0 <= result.score <= 1 for result in page.data)
    chunks = (await stores.files.content(page.data[0].file_id, vector_store_id=store.id)).data
    assert len(chunks) > 3 and all(chunk.text in text for chunk in chunks)

    changed = await stores.files.update(
        garden_id, vector_store_id=store.id, attributes={"year": 2026, "kind": "a", "old": False}
    )
    assert changed.attributes == {"year": 2026, "kind": "a", "old": False}
    newer = {"type": "gte", "key": "year", "value": 2026}
    kind = {"type": "in", "key": "kind", "value": ["a", "b"]}
    for filters, names in (
        ({"type": "and", "filters": [newer, kind]}, ["garden.txt"]),
        ({"type": "ne", "key": "old", "value": False}, ["pump.md"]),
        ({"type": "eq", "key": "year", "value": "2026"}, []),
    ):
        assert await at.names(store.id, "filter pump tomatoes", filters=filters) == names, filters
    weights = {"hybrid_search": {"embedding_weight": 0, "text_weight": 1}}
    options = {"score_threshold": 0.5, **weights}
    assert await at.names(store.id, "compost", ranking_options=options) == ["garden.txt"]

    await stores.files.delete(garden_id, vector_store_id=store.id)
    assert await at.names(store.id, "tomatoes") == ["pump.md"]
    again = await stores.files.create_and_poll(
        garden_id, vector_store_id=store.id, poll_interval_ms=20
    )
    assert again.status == "completed"
    assert (await at.names(store.id, "tomatoes"))[0] == "garden.txt"
    await stores.delete(store.id)
    with pytest.raises(openai.NotFoundError):
        await stores.search(store.id, query="tomatoes")


async def test_a_batch_of_files_has_its_own_states(at: StoreGateway) -> None:
    stores = at.ada.vector_stores
    store = await stores.create(name="Batches")
    good = await at.file("good.txt", GARDEN)
    image = await at.file("a.png", b"\x89PNG\r\n\x1a\n" + bytes(64))
    blank = await at.file("blank.txt", " \n ")
    batch = await stores.file_batches.create_and_poll(
        vector_store_id=store.id, file_ids=[good, image, blank], poll_interval_ms=20
    )
    counts = batch.file_counts
    assert (counts.completed, counts.failed, counts.total) == (1, 2, 3)
    listed = stores.file_batches.list_files(batch.id, vector_store_id=store.id, filter="failed")
    errors = {file.id: file.last_error async for file in listed}
    assert {name: error and error.code for name, error in errors.items()} == {
        image: "unsupported_file",
        blank: "invalid_file",
    }
    ended = await stores.file_batches.cancel(batch.id, vector_store_id=store.id)
    assert ended.status == "completed" and ended.file_counts.completed == 1
    # They take longer to be indexed than the request.
    store = await stores.create(name="Large files")
    files = [await at.file(f"{number}.txt", GARDEN * 4_000) for number in range(MAX_FILES)]
    batch = await stores.file_batches.create(store.id, file_ids=files)
    raw = stores.file_batches.with_raw_response
    polled = await raw.retrieve(batch.id, vector_store_id=store.id)
    assert polled.headers["openai-poll-after-ms"] == "500"
    for _ in range(2):
        cancelled = await stores.file_batches.cancel(batch.id, vector_store_id=store.id)
        assert cancelled.status == "cancelled" and cancelled.file_counts.cancelled
    polled = await raw.retrieve(batch.id, vector_store_id=store.id)
    assert "openai-poll-after-ms" not in polled.headers


async def test_lists_are_paged_both_ways(at: StoreGateway) -> None:
    stores = at.ada.vector_stores
    made = [(await stores.create(name=f"Page {number}")).id for number in range(3)]
    ascending = [one.id async for one in stores.list(limit=1, order="asc")]
    assert ascending[-3:] == made
    before = await stores.list(before=made[0], order="desc", limit=2)
    assert [one.id for one in before.data] == made[:0:-1]
    for store_id in made:
        await stores.delete(store_id)
    assert not {one.id async for one in stores.list()} & set(made)


async def test_metadata_and_expiry_can_be_changed(at: StoreGateway) -> None:
    stores = at.ada.vector_stores
    store = await stores.create(
        name="A", metadata={"a": "b"}, expires_after={"anchor": "last_active_at", "days": 2}
    )
    assert store.expires_at == store.last_active_at + 2 * 86_400
    changed = await stores.update(store.id, name="B", metadata={"c": "d"}, expires_after=None)
    assert (changed.name, changed.metadata, changed.expires_at) == ("B", {"c": "d"}, None)
    await stores.delete(store.id)


async def test_another_user_sees_nothing(at: StoreGateway) -> None:
    store = await at.store(("garden.txt", GARDEN))
    [file] = (await at.ada.vector_stores.files.list(store.id)).data
    bob = at.bob.vector_stores
    own = await bob.create(name="Own")
    assert [one.id async for one in bob.list()] == [own.id]
    tool: Any = {"type": "file_search", "vector_store_ids": [store.id]}
    for call in (
        bob.retrieve(store.id),
        bob.delete(store.id),
        bob.update(store.id, name="Mine"),
        bob.search(store.id, query="tomatoes"),
        bob.files.list(store.id),
        bob.files.retrieve(file.id, vector_store_id=store.id),
        bob.files.content(file.id, vector_store_id=store.id),
        bob.files.delete(file.id, vector_store_id=store.id),
        bob.files.create(file_id=file.id, vector_store_id=store.id),
        bob.files.create(file_id=file.id, vector_store_id=own.id),
        bob.file_batches.create(file_ids=[file.id], vector_store_id=own.id),
        at.bob.responses.create(model="sandbox/echo", input="Hi", tools=[tool]),
    ):
        with pytest.raises(openai.NotFoundError):
            await call
    assert await at.names(store.id, "tomatoes") == ["garden.txt"]


@each_row(
    ("path", "body", "param"),
    [
        ("", {"file_ids": ["file-01JZ6QXV9T2M4N8P0R3S5W7Y9B"]}, "file_ids[0]"),
        ("", {"name": "a" * 257}, "name"),
        ("", {"expires_after": {"anchor": "last_active_at", "days": 0}}, "expires_after.days"),
        ("/{id}/files", {"file_id": "file-01JZ6QXV9T2M4N8P0R3S5W7Y9B"}, "file_id"),
        ("/{id}/files", {"file_id": "a", "attributes": {"a": []}}, "attributes.a"),
        (
            "/{id}/files",
            {"file_id": "{file}", "chunking_strategy": {"type": "static"}},
            "chunking_strategy.static",
        ),
        (
            "/{id}/file_batches",
            {
                "files": [
                    {
                        "file_id": "{file}",
                        "chunking_strategy": {
                            "type": "static",
                            "static": {"max_chunk_size_tokens": 200, "chunk_overlap_tokens": 101},
                        },
                    }
                ]
            },
            "files[0].chunking_strategy.static.chunk_overlap_tokens",
        ),
        ("", {"chunking_strategy": {"type": "static"}}, "chunking_strategy.static"),
        (
            "",
            {
                "file_ids": ["{file}"],
                "chunking_strategy": {
                    "type": "static",
                    "static": {"max_chunk_size_tokens": 200, "chunk_overlap_tokens": 101},
                },
            },
            "chunking_strategy.static.chunk_overlap_tokens",
        ),
        ("/{id}/file_batches", {}, "file_ids"),
        ("/{id}/search", {"query": ""}, "query"),
        ("/{id}/search", {"query": "a", "max_num_results": 51}, "max_num_results"),
        (
            "/{id}/search",
            {"query": "a", "filters": {"type": "or", "filters": [{"type": "eq", "value": 1}]}},
            "filters.filters[0].key",
        ),
    ],
)
async def test_invalid_fields_are_named(
    at: StoreGateway, path: str, body: dict[str, Any], param: str
) -> None:
    file_id = await at.file("a.txt", "a")
    store = await at.ada.vector_stores.create(name="Invalid")
    text = orjson_text(body).replace("{file}", file_id)
    url = f"{at.gateway.url}/v1/vector_stores{path.format(id=store.id)}"
    headers = {**at.gateway.bearer(), "content-type": "application/json"}
    async with at.gateway.http.post(url, data=text, headers=headers) as answer:
        error = (await answer.json())["error"]
    assert (answer.status in (400, 404), error["param"]) == (True, param), error
    assert (await at.ada.vector_stores.retrieve(store.id)).file_counts.total == 0
    await at.ada.vector_stores.delete(store.id)


async def test_files_and_stores_of_a_user_are_bounded(at: StoreGateway) -> None:
    stores = at.ada.vector_stores
    file_ids = [await at.file(f"{number}.txt", GARDEN) for number in range(MAX_FILES + 1)]
    store = await stores.create(name="Full")
    with pytest.raises(openai.APIStatusError) as refused:
        await stores.file_batches.create(vector_store_id=store.id, file_ids=file_ids)
    assert f"at most {MAX_FILES} files" in refused.value.message
    made = [store.id]
    with pytest.raises(openai.APIStatusError) as refused:
        while len(made) <= MAX_STORES:
            made.append((await stores.create(name="One more")).id)
    assert "maximum" in refused.value.message
    for store_id in made:
        await stores.delete(store_id)


@each_row("is_streamed", [False, True])
async def test_any_model_searches_files_and_cites_them(at: StoreGateway, is_streamed: bool) -> None:
    store = await at.store(("garden.txt", GARDEN), ("pump.md", PUMP))
    request: dict[str, Any] = {
        "model": "sandbox/echo",
        "input": SEARCHING,
        "tools": [
            {
                "type": "file_search",
                "vector_store_ids": [store.id],
                "max_num_results": 1,
                "ranking_options": {"score_threshold": 0.1},
            }
        ],
        "include": ["file_search_call.results"],
    }
    kinds: list[str] = []
    if is_streamed:
        async with at.ada.responses.stream(**request) as events:
            kinds = [event.type async for event in events]
            response: Any = await events.get_final_response()
    else:
        response = await at.ada.responses.create(**request)
    [call] = [one for one in response.output if isinstance(one, ResponseFileSearchToolCall)]
    assert (call.status, call.queries) == ("completed", ["When are tomatoes watered?"])
    assert [(one.filename, one.text) for one in call.results or ()] == [("garden.txt", GARDEN)]
    message = response.output[-1]
    assert isinstance(message, ResponseOutputMessage)
    [part] = message.content
    assert part.type == "output_text"
    [cited] = part.annotations
    assert cited.type == "file_citation" and cited.filename == "garden.txt"
    assert part.text[cited.index :].startswith("garden.txt")
    if is_streamed:
        searching = [kind for kind in kinds if "file_search_call" in kind]
        names = ("in_progress", "searching", "completed")
        assert searching == [f"response.file_search_call.{name}" for name in names]
        assert "response.output_text.annotation.added" in kinds
    # The items are sent back, without results that the caller has not asked for.
    del request["include"]
    request["input"] = [user(SEARCHING), *(one.to_dict() for one in response.output), user("So?")]
    later = await at.ada.responses.create(**request)
    assert later.status == "completed"
    await at.ada.vector_stores.delete(store.id)


@each_row(
    ("fields", "param"),
    [
        ({"vector_store_ids": ["{id}", "vs_abc123"]}, "vector_store_ids"),
        ({"filters": {"type": "like"}}, "filters.type"),
        ({"max_num_results": 0}, "max_num_results"),
        ({"ranking_options": {"score_threshold": 2}}, "ranking_options"),
        ({"vector_store_ids": ["vs_01JZ6QXV9T2M4N8P0R3S5W7Y9B"]}, "vector_store_ids"),
    ],
)
async def test_an_invalid_file_search_is_refused(
    at: StoreGateway, fields: dict[str, Any], param: str
) -> None:
    store = await at.ada.vector_stores.create(name="Refused")
    tool: Any = {"type": "file_search", "vector_store_ids": [store.id], **fields}
    tool["vector_store_ids"] = [one.format(id=store.id) for one in tool["vector_store_ids"]]
    with pytest.raises((openai.BadRequestError, openai.NotFoundError)) as refused:
        await at.ada.responses.create(model="sandbox/echo", input="Hi", tools=[tool])
    assert refused.value.param == f"tools[0].{param}", refused.value.message
    await at.ada.vector_stores.delete(store.id)


def user(text: str) -> dict[str, str]:
    """Return a message of a user."""
    return {"role": "user", "content": text}


def orjson_text(value: object) -> str:
    """Return the JSON of a value."""
    return orjson.dumps(value).decode()
