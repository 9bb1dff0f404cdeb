"""Callers' directives for the cache."""

import pytest

from services.inference.response_cache.directives import CacheDirectives, parse


@pytest.mark.parametrize(
    ("header", "read"),
    [
        ("", CacheDirectives()),
        ("no-store", CacheDirectives(no_store=True)),
        ("No-Cache , max-age=0", CacheDirectives(no_cache=True, max_age_s=0)),
        ('max-age="60"', CacheDirectives(max_age_s=60)),
        ("max-age=" + "9" * 300, CacheDirectives(max_age_s=9_999_999_999)),
        ("max-age=-1, max-age=soon, max-age", CacheDirectives()),
        ("only-if-cached, private=x, ,=", CacheDirectives()),
    ],
)
def test_directives_are_read(header, read):
    assert parse(header) == read
