"""Page tokens: what they carry comes back, and anything else is refused by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import GatewayError
from services.common.storage.page_tokens import read_number, read_time_and_id, write_token
from tests.grid import each_row

_NUMBERS = st.integers(0, 10**18 - 1)
_IDS = st.text("abc_019Z", min_size=1)


@given(_NUMBERS, _IDS)
def test_a_time_and_an_id_come_back(time_ms: int, name: str) -> None:
    assert read_time_and_id(write_token(time_ms, name)) == (time_ms, name)


@given(_NUMBERS)
def test_a_number_comes_back(number: int) -> None:
    assert read_number(write_token(number)) == number


@each_row(
    "token",
    [
        "",
        "?",
        "AAAA",
        "A",
        "\xe9",
        write_token("1."),
        write_token(-1),
        write_token("1e3"),
        write_token("\xb2"),
        write_token("9" * 19),
        write_token("9" * 19, "memory_1"),
        write_token("x", "memory_1"),
        write_token(1, "memory\0"),
    ],
)
def test_what_is_no_token_is_refused_by_name(token: str) -> None:
    for read in (read_time_and_id, read_number):
        with pytest.raises(GatewayError, match=r"^page_token: must be") as raised:
            read(token)
        assert raised.value.param == "page_token"
        assert raised.value.http_status == 400
