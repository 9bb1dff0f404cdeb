"""Reading forms: the same events however the bytes are split, and no form read in two ways."""

import email.parser
import email.policy
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facade.transfers.multipart import (
    MAX_AROUND,
    MAX_PART_HEADERS,
    MAX_PARTS,
    Mark,
    Parser,
    Part,
    boundary_of,
)
from services.common.errors import GatewayError
from tests.grid import each_row

BOUNDARY = b"xYzZY"
# What looks like a boundary, or the beginning of one.
NEAR_BOUNDARY = st.sampled_from(
    [b"\r", b"\n", b"\r\n", b"--", b"\r\n-", b"\r\n--", b"\r\n--xYzZ", b"--xYzZY", b"xYzZY", b"\0"]
)
CONTENT = st.lists(st.one_of(NEAR_BOUNDARY, st.binary(max_size=8)), max_size=12).map(b"".join)


def contents():
    """Return contents that do not hold the boundary itself, as a client makes sure of."""
    return CONTENT.filter(lambda content: b"--" + BOUNDARY not in content)


def write(parts, *, preamble=b"", epilogue=b"\r\n"):
    form = preamble
    for headers, content in parts:
        form += b"--" + BOUNDARY + b"\r\n" + headers + b"\r\n\r\n" + content + b"\r\n"
    return form + b"--" + BOUNDARY + b"--" + epilogue


def named(name, content=b"", extra=b""):
    return b'Content-Disposition: form-data; name="%b"%b' % (name, extra), content


def read(pieces):
    """Return each part with its content, and whether the form ended."""
    parser = Parser(BOUNDARY)
    parts: list[tuple[Part, bytes]] = []
    ended = 0
    marks = []
    for piece in pieces:
        for event in parser.feed(piece):
            if isinstance(event, Part):
                parts.append((event, b""))
            elif isinstance(event, bytes):
                assert event
                assert len(marks) == len(parts) - 1, "content outside of a part"
                parts[-1] = (parts[-1][0], parts[-1][1] + event)
            elif event is Mark.PART:
                marks.append(len(parts))
            else:
                ended += 1
    parser.close()
    assert marks == list(range(1, len(parts) + 1))
    assert ended == 1
    return parts


def split(form, cuts):
    positions = [0, *sorted(cut % (len(form) + 1) for cut in cuts), len(form)]
    return [form[a:b] for a, b in itertools.pairwise(positions)]


@given(
    st.lists(contents(), max_size=4),
    st.lists(st.integers(min_value=0), max_size=8),
    st.sampled_from([b"", b"preamble\r\n", b"\r\n"]),
    st.sampled_from([b"", b"\r\n", b"\r\nepilogue --xYzZY\r\n"]),
)
def test_a_form_reads_the_same_however_it_is_split(written, cuts, preamble, epilogue):
    form = write(
        [named(b"f%d" % index, content) for index, content in enumerate(written)],
        preamble=preamble,
        epilogue=epilogue,
    )
    expected = [(f"f{index}", content) for index, content in enumerate(written)]
    assert [(part.name, content) for part, content in read(split(form, cuts))] == expected


@given(contents())
def test_a_form_reads_the_same_byte_by_byte(content):
    form = write([named(b"a", content), named(b"b", content)])
    ((_, one), (_, two)) = read([form[index : index + 1] for index in range(len(form))])
    assert (one, two) == (content, content)


# The standard library's reader takes a lone carriage return or line feed for a line end.
ONE_LINE = CONTENT.map(lambda content: content.replace(b"\r", b"").replace(b"\n", b"")).filter(
    lambda content: b"--" + BOUNDARY not in content
)


@given(st.lists(ONE_LINE, min_size=1, max_size=3))
def test_the_standard_library_reads_the_same_parts(written):
    form = write([named(b"f%d" % index, content) for index, content in enumerate(written)])
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(
        b"Content-Type: multipart/form-data; boundary=" + BOUNDARY + b"\r\n\r\n" + form
    )
    theirs = [part.get_payload(decode=True) for part in message.iter_parts()]
    assert [content for _, content in read([form])] == theirs


def test_a_part_may_be_empty_with_or_without_a_line_end():
    form = (
        b'--xYzZY\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
        b'--xYzZY\r\nContent-Disposition: form-data; name="b"\r\n\r\n\r\n--xYzZY--'
    )
    assert [(part.name, content) for part, content in read([form])] == [("a", b""), ("b", b"")]


def test_white_space_may_follow_a_boundary():
    form = write([named(b"a", b"1")]).replace(b"--xYzZY\r\n", b"--xYzZY \t\r\n", 1)
    for size in (1, 7, len(form)):
        pieces = [form[at : at + size] for at in range(0, len(form), size)]
        assert [content for _, content in read(pieces)] == [b"1"]


def test_content_comes_out_as_it_goes_in_without_waiting():
    parser = Parser(BOUNDARY)
    parser.feed(b"--xYzZY\r\n" + named(b"a")[0] + b"\r\n\r\nbeginning")
    data = bytes(1 << 16)
    assert parser.feed(data)[0] is data


@each_row(
    ("extra", "filename"),
    [
        (b'; filename="a b.txt"', "a b.txt"),
        (b"; filename=plain.txt", "plain.txt"),
        (b'; filename=""', ""),
        (b'; filename="say %22hi%22.txt"', 'say "hi".txt'),
        (b'; filename="say \\"hi\\".txt"', 'say "hi".txt'),
        (b'; filename="a%0D%0Ab"', "a\r\nb"),
        (b'; filename="100%25.txt"', "100%25.txt"),
        (b'; filename="C:\\dir\\a.txt"', "C:\\dir\\a.txt"),
        (b'; filename="a\\\\b"', "a\\b"),
        (b'; filename="a;b=c.txt"', "a;b=c.txt"),
        ('; filename="π.txt"'.encode(), "π.txt"),
        (b"; filename*=UTF-8''%CF%80.txt", "π.txt"),
        (b"; filename=\"x\"; filename*=utf-8'en'%CF%80.txt", "π.txt"),
        (b"", None),
    ],
)
def test_a_filename_is_read_as_clients_write_it(extra, filename):
    ((part, content),) = read([write([named(b"file", b"1", extra)])])
    assert (part.filename, content) == (filename, b"1")


def test_a_part_says_its_type():
    headers = b'content-disposition: form-data; name="a"\r\nCONTENT-TYPE:  text/plain; a="b"  '
    ((part, _),) = read([write([(headers, b"1")])])
    assert part.content_type == 'text/plain; a="b"'


def refusal(form):
    with pytest.raises(GatewayError) as caught:
        read([form])
    assert caught.value.code == "invalid_request"
    assert caught.value.message.startswith(f"{caught.value.param}: ")
    return caught.value


WHOLE = write([named(b"file", b"content")], epilogue=b"")


@each_row("length", range(len(WHOLE)))
def test_a_form_that_ends_early_is_refused(length):
    refusal(WHOLE[:length])


@each_row(
    "form",
    [
        b"no boundary at all",
        WHOLE.replace(BOUNDARY, b"other"),
        WHOLE.replace(b"\r\n", b"\n"),
        WHOLE.replace(b"--xYzZY\r\n", b"--xYzZYabc\r\n"),
        write([(b"Content-Type: text/plain", b"")]),
        write([(b"", b"1")]),
        write([(b"Content-Disposition: form-data", b"")]),
        write([(b'Content-Disposition: form-data; name=""', b"")]),
        write([(b'Content-Disposition: attachment; name="a"', b"")]),
        write([(b'Content-Disposition: form-data; name="a"; name="b"', b"")]),
        write([named(b"a", b"", b'; filename="x"; filename="y"')]),
        write([named(b"a", b"", b"; filename*=x")]),
        write([named(b"a", b"", b"; filename*=UTF-8''%FF")]),
        write([named(b"a", b"", b'; filename="\xff"')]),
        write([(named(b"a")[0] + b"\r\n" + named(b"b")[0], b"")]),
        write([(named(b"a")[0] + b"\r\n folded: 1", b"")]),
        write([(named(b"a")[0] + b"\r\nno colon", b"")]),
        write([(named(b"a")[0] + b"\r\nContent-Transfer-Encoding: base64", b"MQ==")]),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(form):
    refusal(form)


def test_the_part_at_fault_is_named():
    form = write([named(b"first", b"1"), named(b"second", b"2")])
    assert refusal(form[: form.index(b"2")]).param == "second"


def test_parts_are_bounded():
    assert len(read([write([named(b"a")] * MAX_PARTS)])) == MAX_PARTS
    assert str(MAX_PARTS) in refusal(write([named(b"a")] * (MAX_PARTS + 1))).message


@pytest.mark.parametrize("size", [64, 1 << 16])
def test_headers_are_bounded_before_they_end(size):
    parser = Parser(BOUNDARY)
    parser.feed(b"--xYzZY\r\nX: ")
    with pytest.raises(GatewayError, match="headers"):
        for _ in range(MAX_PART_HEADERS // size + 2):
            parser.feed(b"x" * size)


def test_data_around_the_parts_is_bounded():
    for form in (
        b"x" * (MAX_AROUND + 1),
        WHOLE + b"x" * (MAX_AROUND + 1),
    ):
        parser = Parser(BOUNDARY)
        with pytest.raises(GatewayError, match="outside"):
            for at in range(0, len(form), 1000):
                parser.feed(form[at : at + 1000])


def test_white_space_behind_a_boundary_is_bounded():
    parser = Parser(BOUNDARY)
    with pytest.raises(GatewayError):
        for _ in range(100):
            parser.feed(b"--xYzZY" + b" " * 1000)


@pytest.mark.parametrize(
    ("content_type", "boundary"),
    [
        ("multipart/form-data; boundary=abc", b"abc"),
        ('multipart/form-data; boundary="a b:c"', b"a b:c"),
        ("multipart/form-data; charset=utf-8; BOUNDARY=----WebKit1", b"----WebKit1"),
        (f"multipart/form-data; boundary={'b' * 70}", b"b" * 70),
    ],
)
def test_a_boundary_is_found(content_type, boundary):
    assert boundary_of(content_type) == boundary


@pytest.mark.parametrize(
    "parameters", ["", "; boundary=", '; boundary=""', f"; boundary={'b' * 71}", "; boundary=π"]
)
def test_a_boundary_is_needed(parameters):
    with pytest.raises(GatewayError) as caught:
        boundary_of("multipart/form-data" + parameters)
    assert caught.value.param == "Content-Type"
