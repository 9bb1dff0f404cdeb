"""How a file's name, tag and ranges are written in headers."""

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facade.transfers import downloads
from gateway.files.v1.files_pb2 import File, ReadFileRequest
from tests.grid import each_row

FILE = File(id="file-1", filename="a.txt", mime_type="text/plain", size_bytes=10, sha256="ab12")


@given(st.text(min_size=1, max_size=300))
def test_any_name_is_one_header_line_and_comes_back_whole(filename):
    header = downloads.disposition(filename)
    assert header.isascii()
    assert header.isprintable()
    found = re.fullmatch(
        r"attachment; filename=\"([^\"\\]*)\"(?:; filename\*=UTF-8''(\S*))?", header
    )
    assert found is not None
    assert (unquote(found[2]) if found[2] is not None else found[1]) == filename


@pytest.mark.parametrize(
    ("filename", "header"),
    [
        ("a b.txt", 'attachment; filename="a b.txt"'),
        ('a"b', "attachment; filename=\"a_b\"; filename*=UTF-8''a%22b"),
        ("a\r\nX: 1", "attachment; filename=\"a__X: 1\"; filename*=UTF-8''a%0D%0AX%3A%201"),
        ("π\u202e.exe", "attachment; filename=\"__.exe\"; filename*=UTF-8''%CF%80%E2%80%AE.exe"),
        ("50%.txt", "attachment; filename=\"50_.txt\"; filename*=UTF-8''50%25.txt"),
        ("a/b", 'attachment; filename="a/b"'),
    ],
)
def test_non_ascii_names_are_sent_in_both_header_forms(filename, header):
    assert downloads.disposition(filename) == header


@each_row(
    ("header", "unchanged"),
    [
        (None, False),
        ('"ab12"', True),
        ('W/"ab12"', True),
        ('"x", "ab12"', True),
        ('"x,y" ,W/"ab12"', True),
        ("*", True),
        ('"x"', False),
        ("ab12", False),
        ('"ab12', False),
        ("", False),
    ],
)
def test_a_file_the_caller_has_is_unchanged(header, unchanged):
    request = {} if header is None else {"if-none-match": header}
    assert downloads.is_unchanged(request, FILE) is unchanged


@pytest.mark.parametrize(
    ("header", "partial"),
    [
        (None, True),
        ('"ab12"', True),
        ('W/"ab12"', False),
        ('"other"', False),
        ("Fri, 20 Nov 2026 10:00:00 GMT", False),
    ],
)
def test_a_range_holds_for_the_version_it_was_meant_for(header, partial):
    request = {} if header is None else {"if-range": header}
    assert downloads.may_be_partial(request, FILE) is partial


@each_row(
    ("header", "fields"),
    [
        ("bytes=0-4", {"first": 0, "last": 4}),
        ("bytes=4-", {"first": 4}),
        ("Bytes= 4-4 ", {"first": 4, "last": 4}),
        ("bytes=-4", {"suffix": 4}),
        ("bytes=-0", {"first": (1 << 63) - 1}),
        ("", {}),
        ("bytes=-", {}),
        ("bytes=4-3", {}),
        ("bytes=0-1,3-4", {}),
        ("bytes=0-1, 3-4", {}),
        ("bytes 0-1", {}),
        ("lines=0-1", {}),
        ("bytes=a-b", {}),
        ("bytes=--1", {}),
        ("bytes=+1-2", {}),
        ("bytes=\u0661-\u0662", {}),
        ("bytes=1-" + "9" * 30, {}),
    ],
)
def test_a_range_is_one_range_of_bytes_or_none(header, fields):
    call = downloads.read_request("file-1", header)
    assert call == ReadFileRequest(id="file-1", **fields)
    assert downloads.is_range(call) is bool(fields)
