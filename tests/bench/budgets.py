"""Which figures are shown, against what, and what each must reach."""

from collections.abc import Mapping, Sequence

from tests.bench import wire
from tests.bench.lag import NEIGHBOURS
from tests.bench.large import MESSAGES
from tests.bench.report import Budget, Line, line

# A native response costs what a chat does, one that is translated at most 1.2 times as much as a
# translated chat.
_NATIVE = Budget(0.95, True)
_TRANSLATED = Budget(0.83, True)
# Other bodies than those of chats cost the proxy, too, more or less.
_SAME_BYTES = "    against the proxy with the same bytes"


def lines_of(samples: Mapping[str, Sequence[float]]) -> Sequence[Line]:
    """Return the table's rows from the figures of all rounds."""

    def of(name: str) -> Sequence[float]:
        return samples[name]

    def added(name: str, what: str) -> Sequence[float]:
        pairs = zip(of(f"{name} {what}"), of(f"direct {what}"), strict=True)
        return [via - direct for via, direct in pairs]

    same, cross = "gateway openai→openai", "gateway anthropic→openai"
    ours, theirs = "gateway anthropic→anthropic", "gateway openai→anthropic"
    lags = [
        (name, list(zip(of(f"lag {name}"), of("lag alone"), strict=True))) for name in NEIGHBOURS
    ]
    p50, p99 = added("gateway", "p50"), added("gateway", "p99")
    return [
        line("whole answers", "req/CPU-s", of(same), of("proxy openai→openai"), Budget(0.85, True)),
        line(
            "  the same by the clock",
            "req/s",
            of(f"{same} by the clock"),
            of("proxy openai→openai by the clock"),
        ),
        line(
            "  messages to openai, against chat",
            "req/CPU-s",
            of(cross),
            of(same),
            Budget(0.75, True),
        ),
        line(
            "  messages to anthropic",
            "req/CPU-s",
            of(ours),
            of("proxy openai→openai"),
            Budget(0.85, True),
        ),
        line(_SAME_BYTES, "req/CPU-s", of(ours), of("proxy anthropic→anthropic")),
        line(
            "  chat to anthropic, against messages",
            "req/CPU-s",
            of(theirs),
            of(ours),
            Budget(0.75, True),
        ),
        *(
            line(
                f"a coding agent's body of 55 KB, {dialect}",
                "req/CPU-s",
                of(f"gateway agent {dialect}"),
                of(f"proxy agent {dialect}"),
                Budget(0.3, True),
            )
            for dialect in wire.DIALECTS
        ),
        line(
            "added latency, 1 connection, p50", "ms", p50, added("proxy", "p50"), Budget(1.2, False)
        ),
        line("added latency, 1 connection, p99", "ms", p99, added("proxy", "p99")),
        line("  p99 against p50", "ms", p99, p50, Budget(2, False)),
        line("  the same of the proxy", "ms", added("proxy", "p99"), added("proxy", "p50")),
        line(
            "streams, all at once",
            "events/CPU-s",
            of("gateway burst"),
            of("proxy burst"),
            Budget(0.7, True),
        ),
        line(
            "streams, an event a ms",
            "events/CPU-s",
            of("gateway paced"),
            of("proxy paced"),
            Budget(0.55, True),
        ),
        *_responses(samples),
        line(
            "embeddings of 100 texts, in base64",
            "req/CPU-s",
            of("gateway embeddings"),
            of("proxy embeddings"),
            Budget(0.25, True),
        ),
        line(
            "added time to the first event",
            "ms",
            added("gateway", "first"),
            added("proxy", "first"),
            Budget(1.3, False),
        ),
        line(
            "streams with a fallback at hand, against none",
            "events/CPU-s",
            of("gateway burst with a spare"),
            of("gateway burst"),
            Budget(0.97, True),
        ),
        line(
            "whole answers of a chain, against one model",
            "req/CPU-s",
            of("gateway chain"),
            of("gateway alone"),
            Budget(0.97, True),
        ),
        line(
            "  by auto with a fallback, read as streams",
            "req/CPU-s",
            of("gateway with a spare"),
            of("gateway alone"),
        ),
        line(
            "two workers on two cores, of one",
            "req/s",
            [2 * rate for rate in of("two workers openai→openai")],
            of(same),
            Budget(1.8, True),
        ),
        line(
            "memory idle, one worker (RSS)",
            "MB",
            of("idle worker"),
            budget=Budget(100, False, on_ratio=False),
        ),
        line("memory idle, all processes (RSS)", "MB", of("idle")),
        line("  shared pages once (PSS)", "MB", of("idle pss")),
        line("memory after the rounds (RSS)", "MB", of("after"), of("idle")),
        line("  growth over many more requests", "MB", of("growth")),
        line(
            "start-up to the first answer",
            "s",
            of("start-up"),
            budget=Budget(1.7, False, on_ratio=False),
        ),
        *(
            line(
                f"{MESSAGES:,} messages, {caller} to {upstream}, to the first byte",
                "s",
                of(f"large {caller}→{upstream}"),
                budget=Budget(1.5, False, on_ratio=False),
            )
            for caller, upstream in wire.PAIRS
        ),
        line("  CPU time of the gateway, for any of them", "s", of("large cpu")),
        line(
            "  memory of all processes, against the body",
            "MB",
            of("large memory"),
            of("large body"),
            Budget(12, False),
        ),
        *(
            line(
                f"small requests beside {name}, p99 above alone",
                "ms",
                [beside - alone for beside, alone in pairs],
                budget=Budget(50, False, on_ratio=False),
            )
            for name, pairs in lags
        ),
        line(
            "upload of 50 MB, against bytes thrown away",
            "MB/s",
            of("upload"),
            of("upload bare"),
            Budget(250, True, on_ratio=False),
        ),
        line("  against the disk alone", "MB/s", of("upload"), of("disk")),
        line(
            "download of 50 MB, against bytes from memory",
            "MB/s",
            of("download"),
            of("download bare"),
            Budget(250, True, on_ratio=False),
        ),
        line(
            "descriptions of a file",
            "calls/CPU-s",
            of("descriptions"),
            budget=Budget(1_000, True, on_ratio=False),
        ),
        line(
            "page of 20 files of many, against 1,000",
            "ms",
            of("page of many"),
            of("page of few"),
            Budget(3, False),
        ),
    ]


def _responses(samples: Mapping[str, Sequence[float]]) -> Sequence[Line]:
    """Return the rows of responses: native ones against chats, others against translated ones.

    A native response has more bytes than a chat that says the same: beside it stands its ratio to
    the proxy that passes the same bytes on, to be compared with that of chats.
    """
    native, over, messages = "responses→responses", "responses→openai", "anthropic→openai"
    rows = [
        ("responses, against chat", native, "gateway openai→openai", _NATIVE),
        (_SAME_BYTES, native, f"proxy {native}", None),
        ("  stored, against not", "responses stored", f"gateway {native}", None),
        ("  over chat, against messages", over, f"gateway {messages}", _TRANSLATED),
        (
            "  to anthropic, against chat",
            "responses→anthropic",
            "gateway openai→anthropic",
            _TRANSLATED,
        ),
    ]
    streams = [
        row
        for kind, how in (("burst", "all at once"), ("paced", "an event a ms"))
        for row in (
            (f"  streams, {how}, against chat", f"{kind} {native}", f"gateway {kind}", _NATIVE),
            (_SAME_BYTES, f"{kind} {native}", f"proxy {kind} {native}", None),
            (
                "    over chat, against messages",
                f"{kind} {over}",
                f"gateway {kind} {messages}",
                _TRANSLATED,
            ),
        )
    ]
    return [
        line(name, unit, samples[f"gateway {ours}"], samples[theirs], budget)
        for unit, group in (("req/CPU-s", rows), ("events/CPU-s", streams))
        for name, ours, theirs, budget in group
    ]
