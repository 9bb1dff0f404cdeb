"""Asks made-up conversations what was planted in them, and counts what is found."""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from services.common.clock import Clock
from services.common.settings import Storage
from services.common.storage.database import open_engine, writing
from services.common.storage.migrations.runner import migrate
from services.common.text.tokens import estimate_tokens
from services.memory.archive.archive import LIMIT, MAX_TOKENS, Archive, QuestionVector, Snippet
from tests.bench.load import percentile
from tests.bench.memory.conversations import NOW_MS, TURNS, Conversation, Question
from tests.bench.memory.embedder import Embedder

OWNER = "usr_bench"
_FEW_TOKENS = 800


@dataclass
class Found:
    """Recall for the questions of a kind.

    Attributes:
        at_5: for each question, which share of its parts was among the first five.
        at_10: the same for the first ten.
        at_800_tokens: the same for those that fit in as many tokens, of the usual count.
    """

    at_5: list[float] = field(default_factory=list)
    at_10: list[float] = field(default_factory=list)
    at_800_tokens: list[float] = field(default_factory=list)


@dataclass
class Quality:
    """Recall and speed of one way to search: by words alone, or with vectors too.

    Attributes:
        kinds: by the kind of question.
        ms: how long each search took that gives what a model is given.
        tokens: how many tokens each of these gave.
    """

    kinds: dict[str, Found] = field(default_factory=lambda: defaultdict(Found))
    ms: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """Return the figures."""
        kinds = {kind: self._recall([recall]) for kind, recall in sorted(self.kinds.items())}
        return {
            "kinds": {**kinds, "all": self._recall(list(self.kinds.values()))},
            "p50_ms": round(percentile(self.ms, 0.5), 2),
            "p95_ms": round(percentile(self.ms, 0.95), 2),
            "tokens_mean": round(fmean(self.tokens)),
            "tokens_most": max(self.tokens),
        }

    @staticmethod
    def _recall(recalls: Sequence[Found]) -> dict[str, float]:
        at_5 = [hit for one in recalls for hit in one.at_5]
        at_10 = [hit for one in recalls for hit in one.at_10]
        at_800_tokens = [hit for one in recalls for hit in one.at_800_tokens]
        return {
            "questions": len(at_5),
            "recall_at_5": round(fmean(at_5), 3),
            "recall_at_10": round(fmean(at_10), 3),
            "recall_at_800_tokens": round(fmean(at_800_tokens), 3),
        }


async def measure(
    conversations: Sequence[Conversation], embedder: Callable[[Sequence[str]], Embedder]
) -> dict[str, Quality]:
    """Ask every question in both ways; all conversations are archived side by side."""
    qualities = {"lexical": Quality(), "fused": Quality()}
    with TemporaryDirectory(prefix="gw-") as folder:
        engine = open_engine(Storage(data_dir=Path(folder)))
        await migrate(engine)
        archive = Archive(engine, Clock(now=lambda: NOW_MS / 1000))
        asked = []
        for place, conversation in enumerate(conversations):
            embed = embedder([turn.text for turn in conversation.turns])
            vectors = {turn.number: embed(turn.text) for turn in conversation.turns}
            async with writing(engine) as connection:
                await archive.add(connection, OWNER, f"mem_{place}", conversation.turns)
                await archive.add_vectors(connection, f"mem_{place}", embed.name, vectors)
            asked += [
                (
                    f"mem_{place}",
                    question,
                    QuestionVector(embed.name, embed(question.text, is_query=True)),
                )
                for question in conversation.questions
            ]
        for memory, question, embedded in asked:
            await _ask(archive, memory, question, None, qualities["lexical"])
            await _ask(archive, memory, question, embedded, qualities["fused"])
        await engine.dispose()
    return qualities


async def _ask(
    archive: Archive,
    memory: str,
    question: Question,
    embedded: QuestionVector | None,
    quality: Quality,
) -> None:
    async def search(limit: int, max_tokens: int = MAX_TOKENS) -> list[Snippet]:
        return await archive.search(
            OWNER,
            memory,
            question.text,
            before_turn=TURNS + 1,
            limit=limit,
            max_tokens=max_tokens,
            vector=embedded,
        )

    began = time.perf_counter()
    snippets = await search(LIMIT)
    quality.ms.append((time.perf_counter() - began) * 1000)
    quality.tokens.append(sum(estimate_tokens(snippet.text) for snippet in snippets))
    turns = [snippet.turn for snippet in await search(10)]
    kind = quality.kinds[question.kind]
    kind.at_5.append(question.recall(turns[:5]))
    kind.at_10.append(question.recall(turns))
    fitting = {snippet.turn for snippet in await search(LIMIT, _FEW_TOKENS)}
    kind.at_800_tokens.append(question.recall(fitting))
