"""Requests read without aiohttp's parser are answered byte for byte as those read with it."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facade import parsing
from facade.http import connection
from facade.http.plain import PlainReader
from tests.facade.plain import corpus
from tests.facade.plain.corpus import CHAT, CODING, MESSAGES, PLAIN, WRONG_KEY, ask, body
from tests.facade.plain.pair import ClientAction, Pair, Step
from tests.thoroughness import examples, is_soak, sampled

pytestmark = pytest.mark.thorough

NEXT = ask("X-Request-Id: next")
SLOW = ask(sends=body("slow"))
STREAM = ask(sends=body("slow", stream=True))
EARLY = ask(key=f"Authorization: Bearer {WRONG_KEY}")
CHUNKED = ask(
    "Transfer-Encoding: chunked", length=None, sends=b"4b\r\n%b\r\n0\r\n\r\n" % corpus.BODY
)
GET = ask(path="/beta/v1/models", method="GET", length=None, sends=b"")
COUNT = ask(path=f"{MESSAGES}/count_tokens")
REQUESTS = {
    "plain": PLAIN,
    "early": EARLY,
    "chunked": CHUNKED,
    "slow": SLOW,
    "stream": ask(sends=body(stream=True), path=MESSAGES),
}
READ_AT_ONCE = 256 << 10  # the most that an event loop reads
READ_AHEAD = 16 << 10  # bytes, in the test of what is read ahead
END = PLAIN.index(b"\r\n\r\n") + 4


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair() as pair:
        yield pair


def compare_some(pair: Pair, conversations: Iterable[Sequence[Step]], one_in: int) -> None:
    """Compare both in one of so many conversations, in `make soak` in all."""
    for steps in sampled(conversations, one_in):
        pair.compare(*steps)


class Taken:
    """Counts the requests that are read without aiohttp's parser."""

    def __init__(self) -> None:
        self.count = 0
        self._read = PlainReader.read

    def read(self, reader: PlainReader, data: bytes) -> object:
        message = self._read(reader, data)
        self.count += message is not None
        return message


@pytest.fixture
def taken() -> Iterator[Taken]:
    taken = Taken()
    with patch.object(PlainReader, "read", lambda *given: taken.read(*given)):
        yield taken


@pytest.mark.parametrize("path", corpus.PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_what_api_clients_send_is_read_without_the_parser(pair, taken, path, stream):
    request = ask("Connection: keep-alive", path=path, sends=body(stream=stream))
    outcome = pair.compare(
        request, ClientAction.SETTLE, request, ClientAction.SETTLE, request[:-9], request[-9:]
    )
    assert outcome.written.count(b"HTTP/1.1 200 OK\r\n") == 3
    assert taken.count == 3


def test_one_request(pair, taken):
    every = [*corpus.callers(*corpus.PATHS), *corpus.broken(*corpus.PATHS)]
    for request in sampled([*corpus.heads(), *every], 11):
        pair.compare(request)
    assert taken.count > (150 if is_soak() else 12)


def test_one_request_behind_a_plain_one_and_before_one(pair, taken):
    every = [*corpus.heads(), *corpus.callers(CODING), *corpus.broken(CHAT)]
    for request in sampled(every, 13, first=1):
        pair.compare(PLAIN, ClientAction.SETTLE, request, ClientAction.SETTLE, NEXT)
    assert taken.count > (700 if is_soak() else 50)


def test_requests_in_one_packet(pair, taken):
    every = [*corpus.heads(), *corpus.callers(MESSAGES), *corpus.broken(CHAT)]
    for request in sampled(every, 14, first=1):
        pair.compare(PLAIN + request + NEXT, ClientAction.SETTLE, PLAIN)
    for request in sampled(every, 14, first=8):
        pair.compare(PLAIN[:-1], PLAIN[-1:] + request, ClientAction.WAIT, NEXT)
    assert taken.count > (500 if is_soak() else 35)


def test_heads_that_differ_by_their_length_alone(pair, taken):
    def conversations() -> Iterator[Sequence[Step]]:
        for last in ("X: a", ""):
            for length in corpus.LENGTHS:
                one, other = (
                    ask(f"Content-Length: {each}", last, length=None, sends=sends)
                    for each, sends in ((len(corpus.BODY), corpus.BODY), (length, body("mm")))
                )
                longer = ask(f"Content-Length: {len(body('m' * 99))}", last, length=None)
                for then in (other, longer, longer.replace(b"X: a", b"X: b"), one[:-3]):
                    yield one, ClientAction.SETTLE, then, ClientAction.SETTLE, one

    compare_some(pair, conversations(), 7)
    assert taken.count > (150 if is_soak() else 25)


@pytest.mark.parametrize("gap", [(), (ClientAction.WAIT,)])
@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_every_split_of_a_request(pair, request_, gap):
    for at in sampled(range(1, len(request_)), 41, first=20 * len(gap)):
        pair.compare(request_[:at], *gap, request_[at:], *gap, NEXT)


def test_every_split_of_two_requests(pair):
    both = PLAIN + NEXT
    for at in sampled(range(1, len(both)), 31):
        pair.compare(both[:at], both[at:])
    for at in sampled(range(1, len(both)), 43, first=2):
        pair.compare(SLOW, both[:at], ClientAction.WAIT, both[at:])


def test_bytes_one_by_one(pair):
    for request in REQUESTS.values():
        pieces = [request[at : at + 1] for at in range(len(request))]
        pair.compare(*pieces, NEXT)
        pair.compare(*pieces, ClientAction.SETTLE, NEXT)


@pytest.mark.parametrize(
    "then", [ClientAction.LEAVE, ClientAction.END, ClientAction.WAIT, ClientAction.LINGER]
)
def test_a_request_that_stops_coming(pair, then):
    def conversations() -> Iterator[Sequence[Step]]:
        for request in REQUESTS.values():
            for at in (1, 40, END - 1, END, END + 1, len(request) - 1):
                sent, remaining = request[:at], request[at:]
                yield sent, then
                yield (
                    *(PLAIN, ClientAction.SETTLE, sent, then),
                    *(remaining, ClientAction.SETTLE, NEXT),
                )
                yield SLOW, sent, then, remaining, ClientAction.WAIT, NEXT

    compare_some(pair, conversations(), 7)


@pytest.mark.parametrize("then", [ClientAction.LEAVE, ClientAction.END, ClientAction.STALL])
@pytest.mark.parametrize("stream", [False, True])
def test_a_caller_who_leaves_before_the_end_or_reads_no_more(pair, then, stream):
    def conversations() -> Iterator[Sequence[Step]]:
        for model in ("m", "slow", "silent", "large", "busy", "breaks"):
            request = ask(sends=body(model, stream=stream))
            for before in (
                [],
                [ClientAction.SETTLE],
                [ClientAction.WAIT],
                [NEXT],
                [NEXT + NEXT, ClientAction.SETTLE],
                [ClientAction.LINGER],
            ):
                yield request, *before, then
                yield request[:-1], *before, then, request[-1:], ClientAction.LINGER, NEXT
                yield then, request, *before, ClientAction.WAIT, ClientAction.READ, NEXT
                yield then, request, *before, ClientAction.LINGER, ClientAction.LINGER

    # Of each model some conversations, with each beginning and each end.
    compare_some(pair, conversations(), 11)


def test_time_between_requests(pair):
    for request in REQUESTS.values():
        pair.compare(ClientAction.LINGER, request)
        pair.compare(
            ClientAction.WAIT,
            request,
            ClientAction.LINGER,
            NEXT,
            ClientAction.LINGER,
            NEXT,
            ClientAction.LINGER,
            ClientAction.LINGER,
        )
        pair.compare(request, *[ClientAction.WAIT] * 7, NEXT, *[ClientAction.WAIT] * 7)
        # A stream that outlasts the time that an idle connection has.
        pair.compare(
            PLAIN,
            ClientAction.LINGER,
            *[STREAM] * 5,
            ClientAction.LINGER,
            ClientAction.LINGER,
            NEXT,
        )


def test_requests_that_do_not_wait_for_answers(pair):
    def conversations() -> Iterator[Sequence[Step]]:
        for request in REQUESTS.values():
            for count in range(1, 8):
                yield SLOW, *[request] * count, ClientAction.LINGER, NEXT
                yield SLOW + request * count, ClientAction.LINGER, NEXT
                yield request * count, NEXT * count
                yield SLOW, request[:-1], request[-1:] + NEXT * count, ClientAction.WAIT, NEXT

    compare_some(pair, conversations(), 9)


def test_empty_lines_between_requests(pair):
    for lines in (b"\r\n", b"\n", b"\r\n" * 9, b"\r", b"\r\n" * 5_000):
        pair.compare(lines, PLAIN, ClientAction.SETTLE, NEXT)
        pair.compare(PLAIN, lines, ClientAction.SETTLE, NEXT, ClientAction.SETTLE, lines + PLAIN)
        pair.compare(PLAIN + lines, ClientAction.SETTLE, NEXT)
        pair.compare(lines + PLAIN, NEXT)


@pytest.mark.parametrize("most", [64_000, 200_000, 600_000])
def test_large_bodies(pair, most):
    for size in (4_000, 4_096, 4_097, 300_000, 1_100_000):
        request = ask(sends=b" " * (size - len(corpus.BODY)) + corpus.BODY)
        first, *pieces = [request[at : at + most] for at in range(0, len(request), most)]
        # One that is too large may be refused before its second piece comes.
        pair.compare(first, ClientAction.SETTLE, *pieces, ClientAction.SETTLE, NEXT)
        pair.compare(
            first, ClientAction.SETTLE, *pieces[:-1], *[piece + NEXT for piece in pieces[-1:]]
        )
        pair.compare(request[:END], ClientAction.SETTLE, *pieces, ClientAction.SETTLE, NEXT)
        if most <= READ_AT_ONCE:
            pair.compare(SLOW, first, *pieces, ClientAction.WAIT, NEXT)


def test_large_bodies_that_are_taken(monkeypatch):
    # A thread would take another time on either side.
    monkeypatch.setattr(parsing, "_SMALL", 4 << 20)
    with Pair(limits={"max_body_bytes": 4 << 20}) as pair:
        for most in (64_000, 200_000, 600_000):
            request = ask(sends=corpus.BODY + b" " * 1_100_000)
            pieces = [request[at : at + most] for at in range(0, len(request), most)]
            outcome = pair.compare(*pieces, ClientAction.SETTLE, NEXT)
            assert outcome.written.count(b"HTTP/1.1 200 OK") == 2
            pair.compare(*pieces[:-1], ClientAction.WAIT, pieces[-1] + NEXT)
            pair.compare(*pieces[:-1], ClientAction.LINGER, NEXT)


def test_more_than_is_read_ahead_of_an_answer(pair, monkeypatch):
    monkeypatch.setattr(connection, "_READ_AHEAD", READ_AHEAD)
    large = ask(sends=b" " * 3_000 + corpus.BODY)
    for behind in (large, CHUNKED, GET, EARLY):
        count = 2 * READ_AHEAD // len(behind)
        pieces = [behind * (count // 4)] * 4
        pair.compare(SLOW, *pieces, ClientAction.WAIT, NEXT, ClientAction.LINGER)
        pair.compare(
            SLOW[:-9], ClientAction.SETTLE, SLOW[-9:] + pieces[0], *pieces, ClientAction.LEAVE
        )


def test_the_same_head_with_another_length(pair, taken):
    bodies = [body("m" * count) for count in (1, 9, 99, 999)]
    requests = [ask(sends=one) for one in bodies]
    pair.compare(*[step for one in requests for step in (one, ClientAction.SETTLE)])
    assert taken.count == len(requests)
    inside = ask("X-A: Content-Length: 1", sends=bodies[1])
    pair.compare(requests[0], ClientAction.SETTLE, inside, ClientAction.SETTLE, NEXT)


def test_what_looks_like_a_request_within_another(pair):
    begun = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
    begun_of_body = ask(length=str(len(PLAIN)), sends=b"")
    wait, settle = ClientAction.WAIT, ClientAction.SETTLE

    def conversations() -> Iterator[Sequence[Step]]:
        for first in (
            *(begun + b"X: ", begun, begun[:-2], begun + b"Content-Length: 9\r\n\r\n", b"G", b"\r"),
            *(begun_of_body, begun_of_body + b"x", begun_of_body.replace(b"POST", b"PUT")),
            *(begun_of_body + PLAIN[:-1], begun_of_body + PLAIN[:9]),
            *(CHUNKED[:-5], CHUNKED[:-1], CHUNKED[: CHUNKED.index(b"4b\r\n") + 4]),
        ):
            for before in ([], [PLAIN, settle], [SLOW], [SLOW, GET], [GET, settle]):
                yield *before, first, PLAIN, NEXT
                yield *before, first, wait, PLAIN, settle, NEXT
                yield *before, GET + first, wait, PLAIN, settle, NEXT
                yield *before, PLAIN[:-1], PLAIN[-1:] + first, wait, PLAIN, NEXT
                yield *before, COUNT[:-1], COUNT[-1:] + first, wait, PLAIN, NEXT

    compare_some(pair, conversations(), 9)


@pytest.mark.parametrize(
    ("before", "count"),
    [
        ([GET], 1),
        ([GET, ClientAction.SETTLE, GET], 1),
        ([COUNT], 1),
        ([COUNT[:-9], ClientAction.SETTLE, COUNT[-9:]], 1),
        ([CHUNKED], 0),
        ([GET + GET], 0),
        ([GET[:9], GET[9:]], 0),
        ([SLOW, PLAIN, ClientAction.WAIT], 3),
    ],
)
def test_a_connection_on_which_other_requests_came(pair, taken, before, count):
    pair.compare(*before, ClientAction.SETTLE, PLAIN)
    assert taken.count == count


def test_pages_of_other_origins():
    with Pair(cors_origins=["https://app.example"]) as pair:
        for origin in ("https://app.example", "https://evil.example", "null"):
            for request in (ask(f"Origin: {origin}"), ask(f"Origin: {origin}", key="")):
                pair.compare(
                    request, ClientAction.SETTLE, ask(f"Origin: {origin}", sends=body(stream=True))
                )


@pytest.mark.thorough(one_in=5)
@pytest.mark.parametrize("at", [1, END, END + 1, len(PLAIN)])
@pytest.mark.parametrize("before", [[], [ClientAction.SETTLE], [ClientAction.WAIT]])
def test_room_for_other_connections(at, before):
    for request in REQUESTS.values():
        # A new one each time: the log tells of it every ten seconds.
        with Pair(limits={"max_connections": 3, "reserved_connections": 0.5}) as pair:
            pair.compare(request[:at], *before, *[ClientAction.ANOTHER] * 4, *before, request[at:])


@pytest.mark.thorough(one_in=5)
@pytest.mark.parametrize(
    "before", [[], [ClientAction.SETTLE], [ClientAction.SETTLE, NEXT], [NEXT + NEXT]]
)
@pytest.mark.parametrize("model", ["m", "slow", "silent", "large"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_gateway_that_stops(before, model, stream):
    request = ask(sends=body(model, stream=stream))
    for at in (END - 1, END, len(request) - 1, len(request)):
        with Pair(limits={"drain_s": 1}) as pair:
            pair.compare(
                PLAIN,
                ClientAction.SETTLE,
                request[:at],
                *before,
                ClientAction.STOP,
                request[at:],
                NEXT,
            )


# What hypothesis puts together: mostly what is plain, with something else here and there.
fields = st.lists(st.sampled_from(corpus.FIELDS), max_size=2).map(tuple)
requests = st.builds(
    lambda fields, others: ask(*fields, **others),
    fields,
    st.fixed_dictionaries(
        {},
        optional={
            "path": st.sampled_from([*corpus.PATHS, *corpus.TARGETS]),
            "method": st.sampled_from(("POST", *corpus.METHODS)),
            "key": st.sampled_from(corpus.KEYS),
            "length": st.sampled_from(["", None, *corpus.LENGTHS]),
            "sends": st.sampled_from(corpus.BODIES)
            | st.builds(
                body, st.sampled_from(["m", "slow", "busy", "breaks"]), stream=st.booleans()
            ),
        },
    ),
)
plain = st.sampled_from([PLAIN, NEXT, STREAM, SLOW, GET, CHUNKED])
client_actions = st.sampled_from(
    [
        ClientAction.SETTLE,
        ClientAction.WAIT,
        ClientAction.SETTLE,
        ClientAction.END,
        ClientAction.LEAVE,
        ClientAction.STALL,
        ClientAction.READ,
    ]
)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Return `data` in pieces, cut at places that need not be in it."""
    ends = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[begin:end] for begin, end in pairwise(ends)]


@st.composite
def conversations(draw: st.DrawFn) -> list[Step]:
    """Return requests in reads of any size, with something between the reads."""
    data = b"".join(draw(st.lists(plain | requests, min_size=1, max_size=4)))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(data)))
        changed = draw(st.binary(max_size=2) | st.sampled_from([b"\r\n", b"\n", b"\r", b" ", b":"]))
        data = data[:at] + changed + data[at + draw(st.integers(0, 3)) :]
    steps: list[Step] = []
    for piece in cut(data, draw(st.lists(st.integers(0, 2_000), max_size=4))):
        # Settled, as a request may be refused before or after the rest of its body has come.
        steps += [piece, ClientAction.SETTLE, *draw(st.lists(client_actions, max_size=1))]
    return steps


@settings(max_examples=examples(30))
@given(steps=conversations())
def test_anything(pair, steps):
    pair.compare(*steps)
