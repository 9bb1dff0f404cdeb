from services.media.fetching.naming import file_name, type_and_charset
from tests.grid import each_row
from tests.services.media.fetching.internet import MAX, Internet, say


@each_row(
    ("field", "kind", "charset"),
    [
        ("", "", ""),
        ("image/PNG", "image/png", ""),
        ("text/html; charset=UTF-8", "text/html", "UTF-8"),
        ('text/html;charset="shift_jis"; x=y', "text/html", "shift_jis"),
        ("text/html; charset*=UTF-8''utf-8", "text/html", ""),
        ("nonsense", "", ""),
        ("text/html; charset=" + "x" * 100, "text/html", ""),
        ("text/html\r\nx: y", "", ""),
    ],
)
def test_a_content_type_has_a_type_and_a_charset(field: str, kind: str, charset: str) -> None:
    assert type_and_charset(field) == (kind, charset)


@each_row(
    ("disposition", "path", "name"),
    [
        ("", "/", ""),
        ("", "/a/b/report.pdf?x=/y.png", "report.pdf"),
        ("", "/b%C3%BCcher%2F..%2Fx.pdf", "x.pdf"),
        ("inline", "/a.png", "a.png"),
        ('attachment; filename="q 1.pdf"', "/dl", "q 1.pdf"),
        ("attachment; filename=plain.pdf", "/dl", "plain.pdf"),
        ("attachment; filename*=UTF-8''na%C3%AFve.pdf; filename=n.pdf", "/dl", "naïve.pdf"),
        ('attachment; filename="b\u00c3\u00bccher.pdf"', "/dl", "bücher.pdf"),
        ('attachment; filename="../../etc/passwd"', "/dl", "passwd"),
        ('attachment; filename="..\\\\..\\\\x.exe"', "/dl", "x.exe"),
        ('attachment; filename=".."', "/dl", "dl"),
        ("", "/..", ""),
        ("", "/a%00b%0d.png", "ab.png"),
        ("", "/" + "a" * 300 + ".png", "a" * 251 + ".png"),
    ],
)
def test_a_medium_has_the_name_it_came_with(disposition: str, path: str, name: str) -> None:
    assert file_name(disposition, path) == name


async def test_what_was_fetched_has_a_type_a_charset_and_a_name(net: Internet) -> None:
    net.public.plays(
        say(
            b"<p>",
            "Content-Type: Text/HTML; Charset=koi8-r\r\n"
            'content-disposition: attachment; filename="page.html"',
        )
    )
    fetched = await net.fetcher().fetch("http://media.test/x", at_most=MAX)
    assert (fetched.mime_type, fetched.charset, fetched.name) == (
        "text/html",
        "koi8-r",
        "page.html",
    )
    assert fetched.url == "http://media.test/x"
