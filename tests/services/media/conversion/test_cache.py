"""Conversions that are kept: whose they are, how long, and what a broken store costs."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import MemoryStore
from prometheus_client import CollectorRegistry

from gateway.accounts.v1 import accounts_pb2
from gateway.errors.v1 import errors_pb2
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.grpc.authentication import Caller, caller
from services.common.process.metrics import Counter
from services.common.settings import Storage
from services.common.storage.byte_store import (
    Bucket,
    Folder,
    StoredBytes,
    StoreLimits,
    open_store,
    overdue,
)
from services.common.storage.disk import DiskReserve
from services.inference.store_sweeper import store_sweeper
from services.media.conversion.cache import Cache
from services.media.conversion.codec import dump, load
from services.media.conversion.parts import Film, ImageFacts, PagePicture, PageText, Picture
from tests.services.inference.fake_adaptation import FailingStore, FreeLease, InMemoryStore

words = st.text()
contents = st.binary(max_size=50)
pictures = st.builds(Picture, st.integers(1, 999), contents, words, st.none() | st.floats(0, 9))
made = st.one_of(
    words,
    contents,
    st.builds(PagePicture, st.integers(1, 999), contents, words),
    st.builds(
        ImageFacts, st.integers(1, 99_999), st.integers(1, 99_999), words, st.tuples(words), words
    ),
    st.lists(st.builds(PageText, st.integers(1, 999), words, st.booleans())).map(tuple),
    st.lists(pictures, min_size=1).map(tuple),
    st.builds(Film, st.floats(0, 99), st.lists(pictures).map(tuple), st.none() | contents),
)


def serve(user: str) -> None:
    caller.set(Caller(user, "team", accounts_pb2.PLAN_ENTERPRISE))


def cache(store) -> Cache:
    lookups = Counter("lookups", "Lookups.", ["result"], registry=CollectorRegistry())
    return Cache(store, lookups)


@given(made)
def test_what_is_kept_comes_back(value):
    assert load(dump(value)) == value


@given(st.binary(max_size=200))
def test_damaged_bytes_are_reported(content):
    try:
        load(content)
    except ValueError:
        pass


async def test_a_conversion_is_found_again_by_its_user_alone():
    one = cache(InMemoryStore())
    serve("anna")
    key = await one.key(b"image", "description", "m", "prompt")
    await one.put(key, "a cat")
    assert await one.get(await one.key(b"image", "description", "m", "prompt"), str) == "a cat"
    for other in (
        (b"image", "description", "n", "prompt"),
        (b"other", "description", "m", "prompt"),
    ):
        assert await one.get(await one.key(*other), str) is None
    # Parameters are told apart.
    assert await one.key(b"i", "d", "ab", "c") != await one.key(b"i", "d", "a", "bc")
    serve("bert")  # of the same team
    assert await one.key(b"image", "description", "m", "prompt") != key


async def test_what_was_kept_of_another_kind_is_not_given():
    one = cache(InMemoryStore())
    serve("anna")
    key = await one.key(b"image", "description")
    await one.put(key, (PageText(1, "x"),))
    assert await one.get(key, str) is None


async def test_a_store_that_does_not_work_costs_the_work_alone():
    one = cache(FailingStore(GatewayError(errors_pb2.REASON_STORAGE_UNAVAILABLE, "no")))
    serve("anna")
    key = await one.key(b"image", "description")
    await one.put(key, "a cat")
    assert await one.get(key, str) is None


async def test_damaged_bytes_are_a_conversion_to_make_again(tmp_path):
    store = Folder(tmp_path / "kept", ROOM)
    one = cache(store)
    serve("anna")
    key = await one.key(b"image", "description")
    await store.put(key, b"\x00 nothing")
    assert await one.get(key, str) is None


async def test_a_folder_holds_what_was_put_for_its_user_alone(tmp_path):
    store = Folder(tmp_path / "kept", ROOM)
    assert await store.get("a/1") is None
    assert await store.entries() == []
    await store.put("a/1", b"one")
    await store.put("a/1", b"two")
    assert await store.get("a/1") == b"two"
    ((key, size, _),) = await store.entries()
    assert (key, size) == ("a/1", 3)
    assert (tmp_path / "kept" / "a").stat().st_mode & 0o77 == 0
    await store.delete(["a/1", "b/2"])
    assert await store.entries() == []


async def test_a_folder_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "kept").write_text("no folder")
    store = Folder(tmp_path / "kept", ROOM)
    for attempt in (store.put("a/1", b"one"), store.get("a/1")):
        with pytest.raises(GatewayError) as raised:
            await attempt
        assert raised.value.code == "storage_unavailable"


def entry(owner: str, number: int, size: int, age_s: float) -> StoredBytes:
    return StoredBytes(f"{owner}/{number}", size, 1000.0 - age_s)


ROOM = DiskReserve(Path(), 0)
BOUNDS = StoreLimits(kept_s=100, kept_bytes=100, kept_bytes_per_owner=60)


@pytest.mark.parametrize(
    ("entries", "going"),
    [
        ([entry("a", 1, 10, 99), entry("a", 2, 10, 101)], ["a/2"]),
        ([entry("a", 1, 40, 1), entry("a", 2, 40, 2), entry("a", 3, 20, 3)], ["a/2"]),
        ([entry("a", 1, 50, 3), entry("b", 1, 50, 2), entry("c", 1, 50, 1)], ["a/1"]),
        ([entry("a", 1, 500, 1)], ["a/1"]),
    ],
)
def test_the_oldest_go_where_there_is_too_much(entries, going):
    assert overdue(entries, 1000.0, BOUNDS) == going


async def test_the_sweeper_clears_the_folder(tmp_path):
    store = Folder(tmp_path / "kept", ROOM)
    await store.put("a/1", b"x" * 10)
    await store.put("a/2", b"x" * 10)
    old = time.time() - 1000
    os.utime(tmp_path / "kept" / "a" / "2", (old, old))
    sweeper = store_sweeper("conversions", store, FreeLease(), 60, BOUNDS, Clock())
    assert await sweeper.sweep()
    assert [one.key for one in await store.entries()] == ["a/1"]


async def test_nothing_is_kept_where_the_disk_is_almost_full(tmp_path):
    full = DiskReserve(tmp_path, 100, read=lambda folder: 99)
    one = cache(Folder(tmp_path / "kept", full))
    serve("anna")
    await one.put(await one.key(b"image", "description"), "a cat")
    assert not (tmp_path / "kept").exists()


async def test_a_bucket_does_as_the_folder():
    store = Bucket("bucket", "conversions")
    store.__dict__["_store"] = MemoryStore()  # as an S3 server answers
    assert await store.get("a/1") is None
    await store.put("a/1", b"one")
    await store.put("a/1", b"two")
    assert await store.get("a/1") == b"two"
    ((key, size, modified_s),) = await store.entries()
    assert (key, size) == ("a/1", 3)
    assert modified_s > 0
    await store.delete(["a/1", "b/2"])
    assert await store.entries() == []


@pytest.mark.parametrize(
    ("blob_url", "prefix"), [("s3://b", "conversions"), ("s3://b/x/y/", "x/y/conversions")]
)
def test_a_bucket_has_a_prefix_of_its_own_for_conversions(tmp_path, blob_url, prefix):
    store = open_store(Storage(data_dir=tmp_path, blob_url=blob_url), ROOM, "conversions")
    assert isinstance(store, Bucket)
    assert store._prefix == prefix
