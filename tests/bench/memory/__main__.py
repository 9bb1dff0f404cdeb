"""Measure what memory finds again, and how fast: `python -m tests.bench.memory`.

Conversations are made up from fixed seeds, with facts planted in them that questions ask
for. Whoever changes how turns are ranked looks at `--tuning`, which draws on other
wordings and other conversations than those that are reported.
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from services.common.process.allocator import set_up_allocator
from tests.bench.memory import engines, latency, quality
from tests.bench.memory.conversations import TURNS, Conversation, conversation
from tests.bench.memory.embedder import EmbeddedModel, SemanticAnalysis

_TUNING, _REPORTED = 0, 1
_CONVERSATIONS = 12
_SEEDS_APART = 1000
_BUDGET_MS = 20.0
_BUDGET_TURNS = 100_000
_RECALLS = ("recall_at_5", "recall_at_10", "recall_at_800_tokens")


def main() -> None:
    """Measure, print a table, and write the figures where they are wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tuning", action="store_true", help="measure the half to tune on")
    parser.add_argument("--conversations", type=int, default=_CONVERSATIONS)
    parser.add_argument("--sizes", type=int, nargs="*", help="turns of the archives to time")
    parser.add_argument("--database-url", default="", help="time on PostgreSQL instead of SQLite")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument(
        "--embedded", action="store_true", help="use the embedded model, which takes minutes"
    )
    parser.add_argument(
        "--engines", action="store_true", help="compare the postings with the engine's own index"
    )
    chosen = parser.parse_args()
    # As in a worker: left to itself, malloc returns what a search frees to the system each time.
    set_up_allocator()
    half = _TUNING if chosen.tuning else _REPORTED
    made = [conversation(half * _SEEDS_APART + seed, half) for seed in range(chosen.conversations)]
    chosen_embedder = EmbeddedModel if chosen.embedded else SemanticAnalysis
    if chosen.engines:
        sizes = chosen.sizes or engines.SIZES
        _print_engines(asyncio.run(engines.compare(made, chosen.database_url, sizes)))
        return
    qualities = asyncio.run(quality.measure(made, chosen_embedder))
    ways = {way: one.as_json() for way, one in qualities.items()}
    _print_quality(ways, made, "tuned on" if chosen.tuning else "reported")
    print(f"\n* with vectors of {chosen_embedder.name}\n")
    timed = []
    if chosen.sizes != []:
        timed = asyncio.run(latency.measure(chosen.database_url, chosen.sizes or latency.SIZES))
        _print_latency(timed)
    if chosen.json:
        figures = {"quality": ways, "latency": [asdict(one) for one in timed]}
        chosen.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")


def _print_quality(ways: dict[str, Any], made: Sequence[Conversation], half: str) -> None:
    lexical, fused = ways["lexical"]["kinds"], ways["fused"]["kinds"]
    print(f"{len(made)} conversations of {TURNS} turns, the half that is {half}\n")
    print(f"{'':34}{'':>10}   lexical             fused*")
    columns = "@5    @10   800t"
    print(f"{'kind of question':34}{'questions':>10}   {columns}    {columns}")
    for kind, own in lexical.items():
        both = (own, fused[kind])
        recalls = "   ".join("  ".join(f"{r[name]:.2f}" for name in _RECALLS) for r in both)
        print(f"{kind:34}{own['questions']:>10}   {recalls}")
    for way, one in ways.items():
        print(
            f"\n{way}: p50 {one['p50_ms']} ms, p95 {one['p95_ms']} ms; "
            f"{one['tokens_mean']} tokens on average, {one['tokens_most']} at most"
        )


def _print_latency(timed: list[latency.Latency]) -> None:
    print(f"{'turns':>8}  {'way':8}{'p50 ms':>8}{'p95 ms':>8}{'CPU p95':>9}{'RSS MB':>8}")
    for one in timed:
        budget = f"   CPU p95 ≤ {_BUDGET_MS:g}" if one.turns == _BUDGET_TURNS else ""
        figures = f"{one.p50_ms:8.1f}{one.p95_ms:8.1f}{one.cpu_p95_ms:9.1f}{one.rss_mb:8.0f}"
        print(f"{one.turns:8}  {one.way:8}{figures}{budget}")


def _print_engines(compared: list[engines.EngineFigures]) -> None:
    for one in compared:
        print(
            f"{one.way}: recall@5 {one.recall_at_5:.3f}, @10 {one.recall_at_10:.3f}; "
            f"{one.write_ms:.1f} ms to archive five turns, {one.bytes_a_turn:.0f} bytes a turn"
        )
        for size, (median, p95) in one.ms.items():
            print(
                f"{size:>10} turns: p50 {median:.1f} ms, p95 {p95:.1f} ms; "
                f"{one.cpu_ms[size]:.1f} ms of this process's CPU"
            )


if __name__ == "__main__":
    main()
