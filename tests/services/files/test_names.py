import pytest

from services.common.errors import GatewayError
from services.files.names import clean_filename
from tests.grid import each_row


@each_row(
    ("written", "name"),
    [
        ("a.txt", "a.txt"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\ada\\a.txt", "a.txt"),
        ("a\\b/c.txt", "c.txt"),
        ("/a", "a"),
        (" a b.txt ", "a b.txt"),
        ("...", "..."),
        (".profile", ".profile"),
        ("données 数据 😀.pdf", "données 数据 😀.pdf"),
        ("a\u202egpj.exe", "a\u202egpj.exe"),
        ("x" * 255, "x" * 255),
        ("f/" * 300 + "a", "a"),
    ],
)
def test_folders_are_cut_off_and_the_name_stays(written: str, name: str) -> None:
    assert clean_filename(written) == name


@each_row(
    "written",
    ["", " ", "/", "a/", "..", "a/..", ".", "\\", "a\0.txt", "a\r\nb", "a\tb", "\x7f", "a\x85"],
)
def test_control_characters_or_nothing_left_are_refused(written: str) -> None:
    with pytest.raises(GatewayError) as raised:
        clean_filename(written)
    assert raised.value.param == "file"
    assert "file" in raised.value.message


def test_a_name_of_256_characters_is_refused() -> None:
    with pytest.raises(GatewayError) as raised:
        clean_filename("x" * 1000)
    assert "255" in raised.value.message
