"""W3C trace context: what is read from headers, and what goes out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.process.telemetry.trace_context import TraceContext, parse_trace_context
from tests.grid import each_row

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def hex_id(size: int) -> st.SearchStrategy[str]:
    return st.integers(1, 16**size - 1).map(lambda number: f"{number:0{size}x}")


CONTEXTS = st.builds(
    TraceContext,
    hex_id(32),
    hex_id(16),
    st.booleans(),
    st.one_of(st.just(""), st.from_regex(r"[a-z]{1,9}=[!-+\--<>-~]{1,20}", fullmatch=True)),
)


@given(CONTEXTS)
def test_what_goes_out_is_read_again(context):
    assert parse_trace_context(*[value for _, value in context.pairs()]) == context


@each_row(
    "traceparent",
    [
        "",
        TRACE,
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"01-{TRACE}-{SPAN}-01more",
        f"00-{TRACE}-{SPAN}-01\r\nx: y",
        f"00-{TRACE}-{SPAN}-01, 00-{TRACE}-{SPAN}-01",
    ],
)
def test_an_invalid_traceparent_is_ignored(traceparent):
    assert parse_trace_context(traceparent) is None


@pytest.mark.parametrize(("flags", "is_sampled"), [("00", False), ("01", True), ("03", True)])
def test_the_sampled_flag(flags, is_sampled):
    context = parse_trace_context(f" 00-{TRACE}-{SPAN}-{flags}\t")
    assert context == TraceContext(TRACE, SPAN, is_sampled)


def test_a_later_version_is_read_as_far_as_it_is_known():
    assert parse_trace_context(f"cc-{TRACE}-{SPAN}-01-what-the-future-brings") == (
        TRACE,
        SPAN,
        True,
        "",
    )


@pytest.mark.parametrize("state", ["a=b\r\nx: y", "a=é", "a=" + "b" * 511])
def test_a_state_that_cannot_go_on_is_left_out(state):
    context = parse_trace_context(f"00-{TRACE}-{SPAN}-01", state)
    assert context is not None
    assert context.state == ""
