"""Where a fetch connects to: asserted on connections, not on errors alone."""

import ipaddress
import ssl

import pytest
import trustme
from yarl import URL

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.settings import Limits
from services.media.fetching import connecting
from services.media.fetching.fetcher import Fetcher
from tests.services.inference.providers.scripted_server import scripted_server
from tests.services.media.fetching.internet import (
    MAX,
    PUBLIC,
    PUBLIC_6,
    AnyPort,
    Internet,
    dial,
    redirect,
    tls_server,
)

INVALID = errors_pb2.REASON_INVALID_REQUEST


async def refused(net: Internet, url: str) -> GatewayError:
    """Fetch what must not be fetched; give what is said of it."""
    with pytest.raises(GatewayError) as caught:
        await net.fetcher().fetch(url, at_most=MAX)
    assert net.forbidden.connections == 0
    return caught.value


FORBIDDEN_HOSTS = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "169.254.169.254",
    "2852039166",
    "10.0.0.1",
    "100.64.0.1",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:169.254.169.254]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "127\u30020\u30020\u30021",
    "\uff11\uff12\uff17.\uff10.\uff10.\uff11",
    "127.0.0.\u2460",
    "127%2e0.0.1",
    "localhost",
]


@pytest.mark.parametrize("host", FORBIDDEN_HOSTS)
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_no_way_of_writing_a_private_address_leads_to_it(
    net: Internet, host: str, scheme: str
) -> None:
    error = await refused(net, f"{scheme}://{host}/latest/meta-data")
    assert net.dialled == []
    assert error.reason == INVALID


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        [PUBLIC, "10.0.0.1"],
        ["192.168.0.1", PUBLIC],
        [PUBLIC, PUBLIC_6, "::1"],
        ["::ffff:10.0.0.1"],
        [PUBLIC, "no address"],
        [],
    ],
)
async def test_a_name_with_any_private_address_is_not_connected_to(
    net: Internet, addresses: list[str]
) -> None:
    net.names["media.test"] = [addresses]
    error = await refused(net, "http://media.test/a")
    assert net.dialled == []
    assert error.reason == INVALID


async def test_private_and_unknown_names_get_the_same_error(net: Internet) -> None:
    net.names["payroll.internal"] = [["10.1.2.3"]]
    private = await refused(net, "http://payroll.internal/")
    unknown = await refused(net, "http://nothing.internal/")
    assert (private.reason, private.message) == (unknown.reason, unknown.message)
    assert "10.1.2.3" not in private.message


async def test_a_name_that_is_bound_anew_leads_to_the_checked_address(net: Internet) -> None:
    net.names["media.test"] = [[PUBLIC], ["127.0.0.1"]]
    fetched = await net.fetcher().fetch("http://media.test/a", at_most=MAX)
    assert fetched.content == b"picture"
    assert net.lookups == ["media.test"]
    assert net.dialled == [(PUBLIC, 80)]
    # Each request resolves anew, and keeps no connection that was opened for another answer.
    await refused(net, "http://media.test/a")
    assert net.public.connections == 1


async def test_the_socket_goes_to_the_address_that_was_checked() -> None:
    """With true sockets: the loopback's second address stands for one that is forbidden."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority = trustme.CA()
    authority.issue_cert("media.test").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    names: list[str | None] = []
    context.sni_callback = lambda _, name, __: names.append(name)
    answers = [["127.0.0.1"], ["127.0.0.2"]]

    async def resolve(host: str) -> list[str]:
        return answers.pop(0)

    answer = b"HTTP/1.1 200 S\r\ncontent-length: 2\r\n\r\nok"
    async with tls_server(context, answer) as (port, heads):
        fetcher = Fetcher(
            Limits(),
            resolve=resolve,
            is_allowed=lambda address: str(address) == "127.0.0.1",
            ports=AnyPort(),
            tls=trusting,
        )
        url = f"https://media.test:{port}/x?a=%2F+b"
        assert (await fetcher.fetch(url, at_most=MAX)).content == b"ok"
        with pytest.raises(GatewayError):
            await fetcher.fetch(url, at_most=MAX)
    assert names == ["media.test"]
    assert len(heads) == 1
    assert heads[0].startswith(f"GET /x?a=%2F+b HTTP/1.1\r\nhost: media.test:{port}\r\n".encode())


async def test_a_certificate_for_another_name_is_refused(net: Internet) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority = trustme.CA()
    authority.issue_cert("other.test").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with tls_server(context, b"HTTP/1.1 200 S\r\n\r\nok") as (port, heads):
        fetcher = net.fetcher(tls=trusting, connect=lambda *_: dial(port))
        with pytest.raises(GatewayError) as caught:
            await fetcher.fetch("https://media.test/", at_most=MAX)
    assert caught.value.reason == errors_pb2.REASON_UPSTREAM_CONNECTION
    assert heads == []


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/admin",
        "http://2130706433/",
        "http://[::ffff:127.0.0.1]/",
        "//10.0.0.1/x",
        "http://inside.test/",
        "http://media.test:6379/",
        "http://media.test@127.0.0.1/",
        "http://user:word@media.test/",
        "ftp://media.test/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_x",
        "http://[broken/",
        "http://media.test:99999/",
        "//@media.test/",
    ],
)
async def test_a_redirect_leads_nowhere_that_is_forbidden(net: Internet, location: str) -> None:
    net.names["inside.test"] = [["10.0.0.7"]]
    net.public.plays(redirect(location))
    error = await refused(net, "http://media.test/a")
    assert net.dialled == [(PUBLIC, 80)]
    assert error.reason == INVALID
    assert "127.0.0.1" not in error.message
    assert "10.0.0" not in error.message


async def test_a_redirect_to_a_rebound_name_is_checked(net: Internet) -> None:
    net.names["media.test"] = [[PUBLIC], ["127.0.0.1"]]
    net.public.plays(redirect("/b"))
    await refused(net, "http://media.test/a")
    assert net.dialled == [(PUBLIC, 80)]


async def test_three_redirects_are_followed_and_no_fourth(net: Internet) -> None:
    net.public.plays(redirect("/again"))
    error = await refused(net, "http://media.test/a")
    assert error.reason == INVALID
    assert [request.target for request in net.public.requests] == ["/a", *["/again"] * 3]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_a_public_address_is_followed(net: Internet, status: int) -> None:
    net.names["other.test"] = [[PUBLIC_6]]

    async def script(connection: object) -> None:
        first = len(net.public.requests) == 1
        net.public.plays(script)
        if first:
            await redirect("http://other.test/bücher?q=%2f#part", status)(connection)
        else:
            await connection.answer(b"found")

    net.public.plays(script)
    fetched = await net.fetcher().fetch("http://media.test/a#b", at_most=MAX)
    assert fetched.content == b"found"
    assert net.dialled == [(PUBLIC, 80), (PUBLIC_6, 80)]
    last = net.public.requests[-1]
    assert last.headers["host"] == "other.test"
    assert last.target == "/b%C3%BCcher?q=/"
    assert fetched.url == "http://other.test/b%C3%BCcher?q=/"


async def test_https_does_not_lead_to_http(net: Internet) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority = trustme.CA()
    authority.issue_cert("media.test").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    answer = b"HTTP/1.1 302 S\r\nlocation: http://media.test/\r\ncontent-length: 0\r\n\r\n"
    async with tls_server(context, answer) as (port, _):
        fetcher = net.fetcher(
            tls=trusting, connect=lambda _, to: dial(port) if to == 443 else net.connect(_, to)
        )
        with pytest.raises(GatewayError, match="https to http"):
            await fetcher.fetch("https://media.test/", at_most=MAX)
    assert net.public.connections == 0


@pytest.mark.parametrize(
    "url",
    [
        "ftp://media.test/a",
        "file:///etc/passwd",
        "data:text/plain,x",
        "media.test/a",
        "//media.test/a",
        "http:///a",
        "http://",
        "",
        "http://media.test:22/",
        "http://media.test:0/",
        "http://media.test:99999/",
        "http://user@media.test/",
        "http://:hush@media.test/",
        "http://@media.test/",
        "http://media.test\\@127.0.0.1/",
        "http://media test/",
        "http://media.test%00.test/",
        "http://[::1%25lo]/",
        "http://[::1",
        "http://media.test/" + "a" * 9_000,
        "http://" + "a" * 300 + ".test/",
    ],
)
async def test_what_is_no_address_of_the_web_is_not_resolved(net: Internet, url: str) -> None:
    error = await refused(net, url)
    assert (net.lookups, net.dialled) == ([], [])
    assert error.reason == INVALID
    assert "hush" not in error.message


async def test_no_proxy_of_the_environment_is_used(
    net: Internet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, net.forbidden.url)
    await net.fetcher().fetch("http://media.test/a", at_most=MAX)
    assert net.forbidden.connections == 0
    assert net.public.requests[0].target == "/a"


async def test_a_request_says_who_asks_and_nothing_else(net: Internet) -> None:
    net.public.plays(redirect("/b"))
    with pytest.raises(GatewayError):
        await net.fetcher().fetch("http://MEDIA.test./a?b=c%20d&x=%2f#e", at_most=MAX)
    first, second, *_ = net.public.requests
    assert first.target == "/a?b=c%20d&x=%2f"
    assert first.headers == {
        "host": "media.test",
        "user-agent": "sluicegate (fetches addresses for its users)",
        "accept": "*/*",
        "accept-encoding": "gzip",
        "connection": "close",
    }
    assert second.headers == first.headers


async def test_the_system_s_resolver_reads_numbers_as_addresses() -> None:
    resolver = connecting.Resolver()
    try:
        assert list(await resolver("0x7f.1")) == ["127.0.0.1"]
        assert list(await resolver("::1")) == ["::1"]
    finally:
        resolver.close()


async def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    async with scripted_server() as server:
        # Nothing listens at the first.
        addresses = [ipaddress.ip_address("127.0.0.2"), ipaddress.ip_address("127.0.0.1")]
        raw = await connecting.connect(addresses, URL(server.url).port or 0)
        assert raw.getpeername()[0] == "127.0.0.1"
        raw.close()
