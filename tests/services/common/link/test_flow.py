"""Sending and receiving, without a connection: order, credit, turns and room."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.link import frames
from services.common.link.frames import BATCH, FRAGMENT, MAX_BATCH, MESSAGE_COST, WINDOW, FrameError
from services.common.link.receiving import Holdings, Inbox
from services.common.link.sending import Outbox, Outgoing

KIB = 1 << 10


class Ends:
    """Both ends of some calls that send in one direction, and the wire between them."""

    def __init__(self, calls: int, *, room: int = 1 << 30, wanted: bool = False):
        self.sending, self.receiving = Outbox(()), Outbox(())
        self.holdings = Holdings(room=room)
        self.outgoing = [Outgoing(self.sending, call) for call in range(calls)]
        self.inboxes = [
            Inbox(self.receiving, call, self.holdings, is_wanted=wanted) for call in range(calls)
        ]
        self.shares: list[dict[int, int]] = []

    def carry(self) -> bool:
        """Carry one batch over, and the credit back; tell whether there was any."""
        there, back = self.sending.take(), self.receiving.take()
        assert len(there) < MAX_BATCH
        share: dict[int, int] = {}
        for call, kind, at, stop in frames.scan(there):
            share[call] = share.get(call, 0) + stop - at
            if kind == frames.MESSAGE:
                self.inboxes[call].begin(*frames.read_message(there, at, stop))
            elif kind == frames.MORE:
                self.inboxes[call].go_on(there[at:stop])
            else:
                assert kind == frames.HALF_CLOSE
                self.inboxes[call].end()
        if share:
            self.shares.append(share)
        for call, kind, at, stop in frames.scan(back):
            assert kind == frames.CREDIT
            self.outgoing[call].add_credit(frames.read_credit(back, at, stop))
        return bool(there or back)

    def carry_all(self) -> None:
        while self.carry():
            pass


def in_loop(test):
    """Run a test in a loop, which the futures of outboxes and inboxes are made by."""

    def run(*arguments, **named):
        async def start():
            result = test(*arguments, **named)
            if asyncio.iscoroutine(result):
                await result

        asyncio.run(start())

    run.__name__ = test.__name__
    return run


sizes = st.one_of(
    st.integers(0, 200), st.integers(4_000, 5_000), st.integers(60_000, 70_000), st.just(300_000)
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 2), sizes),
        st.tuples(st.just("carry"), st.just(0), st.just(0)),
        st.tuples(st.just("take"), st.integers(0, 2), st.just(0)),
    ),
    max_size=60,
)


@given(steps)
def test_messages_arrive_whole_and_in_order_whatever_comes_between(script):
    @in_loop
    def run():
        ends = Ends(3, wanted=True)
        sent, got = [[] for _ in range(3)], [[] for _ in range(3)]
        for number, (step, call, size) in enumerate(script):
            if step == "send":
                message = number.to_bytes(2, "big") * (size // 2) + b"x" * (size % 2)
                sent[call].append(message)
                ends.outgoing[call].send_message(message)
            elif step == "carry":
                ends.carry()
            elif not ends.inboxes[call].is_empty:
                got[call].append(ends.inboxes[call].take())
        for outgoing in ends.outgoing:
            outgoing.send_frame(frames.bare(outgoing.call, frames.HALF_CLOSE))
        moved = True
        while moved:
            moved = ends.carry()
            for call, inbox in enumerate(ends.inboxes):
                while not inbox.is_empty:
                    got[call].append(inbox.take())
                    moved = True
        assert got == sent
        assert all(inbox.is_ended for inbox in ends.inboxes)
        assert all(outgoing.is_empty for outgoing in ends.outgoing)
        assert ends.holdings.unread == 0

    run()


@given(st.lists(sizes, min_size=1, max_size=40))
def test_what_nobody_takes_is_bounded(to_send):
    @in_loop
    def run():
        ends = Ends(1)
        for size in to_send:
            ends.outgoing[0].send_message(b"x" * size)
        ends.carry_all()
        assert ends.holdings.unread <= WINDOW

    run()


@in_loop
def test_empty_messages_take_credit_too():
    ends = Ends(1)
    for _ in range(10_000):
        ends.outgoing[0].send_message(b"")
    ends.carry_all()
    taken = 0
    while not ends.inboxes[0].is_empty:
        ends.inboxes[0].take()
        taken += 1
    assert taken == WINDOW // MESSAGE_COST


@in_loop
def test_a_large_message_leaves_the_others_their_turn():
    ends = Ends(1001, wanted=True)
    ends.outgoing[0].send_message(b"x" * (50 << 20))
    for _ in range(50):
        for outgoing in ends.outgoing[1:]:
            outgoing.send_message(b"a token")
        ends.shares.clear()
        ends.carry()
        assert len(ends.shares[0]) == 1001
        assert ends.shares[0][0] <= FRAGMENT + 64


@in_loop
def test_many_large_messages_take_turns():
    ends = Ends(8, wanted=True)
    for outgoing in ends.outgoing:
        outgoing.send_message(b"x" * (1 << 20))
    ends.carry_all()
    assert all(sum(share.values()) < BATCH + 2 * FRAGMENT for share in ends.shares)
    assert all(max(share.values()) <= FRAGMENT + 64 for share in ends.shares)
    for first, second in zip(ends.shares, ends.shares[1:], strict=False):
        assert not first.keys() & second.keys()
    assert all(len(inbox.take()) == 1 << 20 for inbox in ends.inboxes)


@in_loop
def test_a_message_larger_than_the_window_comes_once_somebody_waits_for_it():
    ends = Ends(1)

    async def run():
        ends.outgoing[0].send_message(b"x" * (5 * WINDOW))
        ends.carry_all()
        assert ends.inboxes[0].is_empty
        waiting = asyncio.create_task(ends.inboxes[0].wait())
        await asyncio.sleep(0)
        ends.carry_all()
        await waiting
        assert len(ends.inboxes[0].take()) == 5 * WINDOW

    return run()


@in_loop
def test_large_messages_wait_for_room_in_the_order_they_began():
    ends = Ends(4, room=1000 * KIB, wanted=True)
    for outgoing in ends.outgoing[:3]:
        outgoing.send_message(b"x" * (600 * KIB))
    ends.outgoing[3].send_message(b"x" * (100 * KIB))
    ends.carry_all()
    assert [not inbox.is_empty for inbox in ends.inboxes] == [True, False, False, True]
    ends.inboxes[1].drop()
    ends.outgoing[1].drop()
    ends.inboxes[0].take()
    ends.carry_all()
    assert [not inbox.is_empty for inbox in ends.inboxes] == [False, False, True, True]


@in_loop
def test_one_message_may_be_larger_than_all_room():
    ends = Ends(2, room=KIB, wanted=True)
    for outgoing in ends.outgoing:
        outgoing.send_message(b"x" * (600 * KIB))
    ends.carry_all()
    assert len(ends.inboxes[0].take()) == 600 * KIB
    ends.carry_all()
    assert len(ends.inboxes[1].take()) == 600 * KIB


@in_loop
def test_a_writer_waits_while_much_is_waiting_and_goes_on_when_it_is_dropped():
    ends = Ends(2)

    async def run():
        first, second = ends.outgoing
        for outgoing in ends.outgoing:
            while not outgoing.is_full:
                outgoing.send_message(b"x" * FRAGMENT)
        waiting = [asyncio.create_task(outgoing.drained()) for outgoing in ends.outgoing]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        second.drop()
        await waiting[1]
        ends.carry_all()
        await waiting[0]
        assert not first.is_full

    return run()


@pytest.mark.parametrize(
    "feed",
    [
        lambda inbox: inbox.begin(10, b""),
        lambda inbox: inbox.begin(10, b"x" * 11),
        lambda inbox: inbox.go_on(b"x"),
        lambda inbox: (inbox.begin(3, b"x"), inbox.begin(3, b"x")),
        lambda inbox: (inbox.begin(3, b"x"), inbox.go_on(b"xxx")),
        lambda inbox: (inbox.begin(3, b"x"), inbox.go_on(b"")),
        lambda inbox: (inbox.begin(3, b"x"), inbox.end()),
        lambda inbox: (inbox.end(), inbox.begin(1, b"x")),
        lambda inbox: [inbox.begin(FRAGMENT, b"x" * FRAGMENT) for _ in range(4)],
        lambda inbox: [inbox.begin(0, b"") for _ in range(WINDOW // MESSAGE_COST + 1)],
    ],
)
def test_what_may_not_come_is_refused(feed):
    @in_loop
    def run():
        with pytest.raises(FrameError):
            feed(Inbox(Outbox(()), 1))

    run()


@in_loop
def test_the_first_message_is_the_last_where_one_is_taken():
    inbox = Inbox(Outbox(()), 1, takes_one=True)
    inbox.begin(1, b"x")
    assert inbox.is_ended
    with pytest.raises(FrameError):
        inbox.begin(1, b"x")


@pytest.mark.parametrize("calls", [2, 3])
async def test_frames_wait_for_company_when_several_calls_are_in_flight(calls):
    outbox = Outbox(range(calls))
    batches = []

    async def write(batch):
        batches.append(batch)

    pumping = asyncio.create_task(outbox.pump(write))
    await asyncio.sleep(0)
    outbox.add(b"a")
    for piece in (b"b", b"c"):
        await asyncio.sleep(0)
        outbox.add(piece)
    for _ in range(10):
        await asyncio.sleep(0)
    assert b"".join(batches) == b"abc"
    assert len(batches) == (1 if calls == 3 else 3)
    pumping.cancel()
