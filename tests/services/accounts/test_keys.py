import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.accounts.keys import hash_key, make_key, shown_part
from services.common.key_format import is_key


@given(st.binary(min_size=32, max_size=32))
def test_any_32_bytes_make_a_key(random: bytes) -> None:
    assert is_key(make_key(random))


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_different_bytes_make_different_keys(first_secret: bytes, second_secret: bytes) -> None:
    assert (make_key(first_secret) == make_key(second_secret)) == (first_secret == second_secret)


def test_fewer_random_bytes_make_no_key() -> None:
    with pytest.raises(ValueError, match="32"):
        make_key(b"short")


def test_what_is_stored_is_the_sha256() -> None:
    key = make_key(bytes(32))
    assert key == "gw-" + "A" * 43
    assert hash_key(key) == hashlib.sha256(b"gw-" + b"A" * 43).digest()
    assert shown_part(key) == "gw-AAAAAA"
