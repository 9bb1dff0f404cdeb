"""Actions of the fault upstream's models: an answer, or one of the faults.

A request that ends with the assistant is continued, as models that know prefill do: what
it has of the text already is not said again.
"""

import asyncio

from tests.faults import wire
from tests.faults.upstream import Action, Exchange, whole_head

TEXT = "One two three four five six seven eight."
OTHER = "Something else that nobody began with."


def answers(text: str = TEXT, reason: str = "") -> Action:
    """Answer well, in the form that was asked for."""

    async def action(exchange: Exchange) -> None:
        _answer(exchange, text, reason)

    return action


def refuses_prefill(text: str = TEXT) -> Action:
    """Answer well, but take no request that ends with the assistant."""

    async def action(exchange: Exchange) -> None:
        if exchange.prefill:
            words = "This model does not support assistant message prefill."
            exchange.answer(wire.error(exchange.dialect, 400, words), 400)
        else:
            _answer(exchange, text)

    return action


def refuses_white_space(text: str = TEXT) -> Action:
    """Answer well, but take no text to continue that ends in white space."""

    async def action(exchange: Exchange) -> None:
        if exchange.prefill != exchange.prefill.rstrip():
            words = "final assistant content cannot end with trailing whitespace"
            exchange.answer(wire.error(exchange.dialect, 400, words), 400)
        else:
            _answer(exchange, text)

    return action


def fails(status: int, words: str = "no luck", code: str = "", retry_after: str = "") -> Action:
    """Answer with a failure."""

    async def action(exchange: Exchange) -> None:
        headers = f"retry-after: {retry_after}\r\n" if retry_after else ""
        exchange.answer(wire.error(exchange.dialect, status, words, code), status, headers)

    return action


def too_long() -> Action:
    """Refuse a conversation that does not fit the model."""
    return fails(400, "prompt is too long: 9 tokens > 8 maximum", "context_length_exceeded")


def filters() -> Action:
    """Refuse a request for what it says."""
    return fails(400, "Our content policy does not allow this.", "content_filter")


def resets() -> Action:
    """Break the connection before a byte of the answer."""

    async def action(exchange: Exchange) -> None:
        exchange.reset()

    return action


def says_nothing() -> Action:
    """Take the request and never answer."""

    async def action(exchange: Exchange) -> None:
        await exchange.left.wait()

    return action


def opens_and_stalls() -> Action:
    """Open the answer and say no word of it."""

    async def action(exchange: Exchange) -> None:
        _open(exchange)
        await exchange.left.wait()

    return action


def answers_after(seconds: float, text: str = TEXT) -> Action:
    """Open a stream at once; say the first word after a while."""

    async def action(exchange: Exchange) -> None:
        if exchange.streams:
            exchange.open_stream()
        if not await _left_within(exchange, seconds):
            _answer(exchange, text, opened=True)

    return action


def dawdles(seconds: float, text: str = TEXT) -> Action:
    """Say a word, think for a while, say the rest, think again, end; whole answers alike."""

    async def action(exchange: Exchange) -> None:
        if exchange.streams:
            exchange.open_stream()
            pieces = list(wire.events(exchange.dialect, exchange.model, _missing(exchange, text)))
            parts = [pieces[:2], pieces[2:-2], pieces[-2:]]
            for part in parts:
                for event in part:
                    exchange.chunk(event)
                if await _left_within(exchange, seconds):
                    return
            exchange.end_stream()
        elif not await _left_within(exchange, 2 * seconds):
            _answer(exchange, text)

    return action


def pauses(*seconds: float, text: str = TEXT) -> Action:
    """Say a word, pause, say the next, and so on; then say the rest."""

    async def action(exchange: Exchange) -> None:
        exchange.open_stream()
        pieces = list(wire.events(exchange.dialect, exchange.model, _missing(exchange, text)))
        exchange.chunk(b"".join(pieces[:2]))
        for piece, pause in zip(pieces[2:], seconds, strict=False):
            if await _left_within(exchange, pause):
                return
            exchange.chunk(piece)
        exchange.chunk(b"".join(pieces[2 + len(seconds) :]))
        exchange.end_stream()

    return action


def pings(seconds: float, text: str = TEXT) -> Action:
    """Say a word, then send a ping and a comment every five seconds for a while, then the rest."""

    async def action(exchange: Exchange) -> None:
        exchange.open_stream()
        pieces = list(wire.events(exchange.dialect, exchange.model, _missing(exchange, text)))
        exchange.chunk(b"".join(pieces[:2]))
        for _ in range(int(seconds / 5)):
            if await _left_within(exchange, 5):
                return
            exchange.chunk(b': still here\n\nevent: ping\ndata: {"type": "ping"}\n\n')
        exchange.chunk(b"".join(pieces[2:]))
        exchange.end_stream()

    return action


def cuts(words: int = 3, text: str = TEXT, reset: bool = True) -> Action:
    """Break off after some words, inside the body that was promised."""

    async def action(exchange: Exchange) -> None:
        await _begin(exchange, words, text)
        if reset:
            exchange.reset()
        else:
            exchange.close()

    return action


def stalls(words: int = 3, text: str = TEXT) -> Action:
    """Fall silent after some words, with the connection open."""

    async def action(exchange: Exchange) -> None:
        await _begin(exchange, words, text)
        await exchange.left.wait()

    return action


def malforms(words: int = 3, text: str = TEXT) -> Action:
    """Send an event among good ones that is no JSON; a whole answer is none as a whole."""

    async def action(exchange: Exchange) -> None:
        if not exchange.streams:
            exchange.answer(wire.whole(exchange.dialect, exchange.model, text)[:-9])
            return
        good = wire.events(exchange.dialect, exchange.model, _missing(exchange, text))
        exchange.open_stream()
        for event in (*good[: words + 1], wire.malformed(exchange.dialect), *good[words + 1 :]):
            exchange.chunk(event)
        exchange.end_stream()

    return action


def breaks_in_band(words: int = 3, text: str = TEXT, status: int = 500) -> Action:
    """Tell a failure inside the answer, whose status was 200."""

    async def action(exchange: Exchange) -> None:
        if not exchange.streams:
            exchange.answer(wire.error(exchange.dialect, status, "it broke"))
            return
        await _begin(exchange, words, text)
        exchange.chunk(wire.error_event(exchange.dialect, status, "it broke"))
        exchange.end_stream()

    return action


def ends_early(words: int = 3, text: str = TEXT) -> Action:
    """End well as far as HTTP goes, without a reason to stop and the terminal marker."""

    async def action(exchange: Exchange) -> None:
        if exchange.streams:
            await _begin(exchange, words, text)
            exchange.end_stream()
        else:
            exchange.answer(b"")

    return action


def forgets_marker(text: str = TEXT) -> Action:
    """Say all, the reason to stop too, and leave out the terminal marker alone."""

    async def action(exchange: Exchange) -> None:
        if not exchange.streams:
            _answer(exchange, text)
            return
        exchange.open_stream()
        for event in wire.events(exchange.dialect, exchange.model, _missing(exchange, text))[:-1]:
            exchange.chunk(event)
        exchange.end_stream()

    return action


def cuts_the_end(text: str = TEXT) -> Action:
    """Say all and why it stopped, then break the connection."""

    async def action(exchange: Exchange) -> None:
        exchange.open_stream()
        # The reason is two events before the end in one dialect, one in the other.
        after = 2 if exchange.dialect == "openai" else 1
        good = wire.events(exchange.dialect, exchange.model, _missing(exchange, text))
        for event in good[:-after]:
            exchange.chunk(event)
        await asyncio.sleep(0.005)
        exchange.reset()

    return action


def babbles() -> Action:
    """Answer with bytes that are not HTTP."""

    async def action(exchange: Exchange) -> None:
        exchange.send(b"\x00\xff\x13 \r\n\r\n" * 9)
        exchange.close()

    return action


def shows_a_page() -> Action:
    """Answer 200 with a page for people, as proxies before providers do."""

    async def action(exchange: Exchange) -> None:
        page = b"<html>Back soon</html>"
        head = f"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {len(page)}\r\n\r\n"
        exchange.send(head.encode() + page)

    return action


def _answer(exchange: Exchange, text: str, reason: str = "", *, opened: bool = False) -> None:
    text = _missing(exchange, text)
    if not exchange.streams:
        exchange.answer(wire.whole(exchange.dialect, exchange.model, text, reason))
        return
    if not opened:
        exchange.open_stream()
    for event in wire.events(exchange.dialect, exchange.model, text, reason):
        exchange.chunk(event)
    exchange.end_stream()


def _open(exchange: Exchange) -> None:
    if exchange.streams:
        exchange.open_stream()
    else:
        exchange.send(whole_head(100))


async def _begin(exchange: Exchange, words: int, text: str) -> None:
    """Send the beginning of an answer, in as many packets as it has words."""
    text = _missing(exchange, text)
    if exchange.streams:
        exchange.open_stream()
        pieces = wire.events(exchange.dialect, exchange.model, text)[: words + 1]
        for piece in pieces:
            exchange.chunk(piece)
            await asyncio.sleep(0)
    else:
        body = wire.whole(exchange.dialect, exchange.model, text)
        exchange.send(whole_head(len(body)) + body[: len(body) // 2])
    # A reset throws away what the other side has not read; let it read.
    await asyncio.sleep(0.005)


async def _left_within(exchange: Exchange, seconds: float) -> bool:
    """Wait; tell whether the gateway has closed the connection meanwhile."""
    try:
        async with asyncio.timeout(seconds):
            await exchange.left.wait()
    except TimeoutError:
        return False
    return True


def _missing(exchange: Exchange, text: str) -> str:
    prefill = exchange.prefill
    return text.removeprefix(prefill) if prefill != text else "."
