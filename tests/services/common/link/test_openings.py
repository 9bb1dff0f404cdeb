"""How calls are opened when much is waiting to be sent: in order, or not at all."""

from hypothesis import given
from hypothesis import strategies as st

from services.common.link import frames
from services.common.link.exchange import Exchange
from services.common.link.sending import Outbox
from tests.services.common.link.test_flow import in_loop

KIB = 1 << 10


class Wire:
    """A link whose server reads batches as they come, and heeds the rules on numbers.

    Attributes:
        opened: the calls that it knows, each with the bytes that came of its message.
        cancelled: those that were cancelled.
    """

    def __init__(self) -> None:
        self.outbox = Outbox(())
        self.opened: dict[int, int] = {}
        self.cancelled: set[int] = set()
        self._last = 0
        self._made: dict[int, Exchange] = {}

    def make(self, size: int) -> Exchange:
        """Make a call whose request has so many bytes."""
        exchange = Exchange(
            b"/test.T/Unary",
            b"",
            b"x" * size,
            streams_responses=False,
            max_message=1 << 20,
            timeout=None,
            is_patient=False,
        )
        exchange.start(self)
        return exchange

    def take_in(self, exchange: Exchange) -> int:
        self._made[len(self._made) + 1] = exchange
        return len(self._made)

    def forget(self, call: int) -> None: ...

    def carry(self) -> bool:
        """Carry a batch over, and give credit for it; tell whether there was any."""
        batch = self.outbox.take()
        for call, kind, at, stop in frames.scan(batch):
            if kind == frames.OPEN:
                assert call > max(self.opened, default=0), "calls are opened in order"
                self.opened[call] = 0
                continue
            assert call in self.opened, "what comes first of a call is its opening"
            if kind == frames.CANCEL:
                self.cancelled.add(call)
                continue
            assert call not in self.cancelled
            size = stop - at - (4 if kind == frames.MESSAGE else 0)
            self.opened[call] += size
            outgoing = self._made[call].outgoing
            assert outgoing is not None
            outgoing.add_credit(size)
        return bool(batch)


sizes = st.one_of(st.integers(0, 4_000), st.integers(30_000, 300_000))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("make"), st.sampled_from([1, 3, 50]), sizes),
        st.tuples(st.just("cancel"), st.integers(1, 30), st.just(0)),
        st.tuples(st.just("carry"), st.just(1), st.just(0)),
    ),
    max_size=40,
)


@given(steps)
def test_a_server_hears_of_calls_in_order_and_of_none_that_it_does_not_know(script):
    @in_loop
    def run():
        wire = Wire()
        calls: list[tuple[Exchange, int]] = []
        for step, count, size in script:
            if step == "make":
                calls += [(wire.make(size), size) for _ in range(count)]
            elif step == "carry":
                wire.carry()
            elif len(calls) >= count:
                calls[-count][0].cancel("enough")
        while wire.carry():
            pass
        for number, (exchange, size) in enumerate(calls, 1):
            if exchange.is_cancelled_here:
                assert (number in wire.opened) == (number in wire.cancelled)
            else:
                assert wire.opened[number] == size

    run()


@in_loop
def test_a_call_that_is_cancelled_while_it_waits_to_be_sent_is_never_heard_of():
    wire = Wire()
    full = [wire.make(1 * KIB) for _ in range(100)]
    full[-1].cancel("enough")
    assert wire.carry()
    assert list(wire.opened) == list(range(1, 100))
    assert not wire.cancelled


@in_loop
def test_a_call_does_not_overtake_one_that_waits_for_its_turn():
    wire = Wire()
    for _ in range(70):
        wire.make(1 * KIB)
    for _ in range(8):
        wire.make(200 * KIB)
    assert wire.carry()
    assert 70 < len(wire.opened) < 78
    wire.make(1)
    while wire.carry():
        pass
    assert list(wire.opened) == list(range(1, 80))
