"""Makes long conversations with planted facts, and questions with the turns that answer them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import NamedTuple, TypeVar

from services.memory.archive.index import ArchivedTurn
from tests.bench.memory import material

TURNS = 600
NOW_MS = int(datetime(2026, 2, 18, 12, tzinfo=UTC).timestamp() * 1000)
_BEGAN_MS = int(datetime(2025, 4, 1, 9, tzinfo=UTC).timestamp() * 1000)
_MINUTE_MS = 60_000
_A_SESSION = (4, 14)
_TIMES_UPDATED = 3
_TIMES_DATED = 14
# How the question about a date names it, and the days that are meant.
_WEEK = [date(2026, 2, 9) + timedelta(days) for days in range(7)]

One = TypeVar("One")


class Question(NamedTuple):
    """A question, and the turns that answer it.

    Attributes:
        kind: which kind of question.
        text: what is asked.
        parts: what is needed for the answer; of each part every turn has all.
    """

    kind: str
    text: str
    parts: tuple[frozenset[int], ...]

    def recall(self, recalled: Collection[int]) -> float:
        """Return the share of the parts that some turns have."""
        return sum(not part.isdisjoint(recalled) for part in self.parts) / len(self.parts)


@dataclass(frozen=True)
class Conversation:
    """The turns of one memory, all archived, and what is asked about them."""

    turns: list[ArchivedTurn]
    questions: list[Question]


def conversation(seed: int, half: int) -> Conversation:
    """Make a conversation; the same for the same seed.

    Args:
        seed: decides everything.
        half: 0 or 1, which half of the wordings it draws from.
    """
    maker = _Maker(Random(seed), half)
    maker.facts()
    maker.people()
    maker.dated()
    maker.split()
    maker.recommended()
    maker.elsewhere()
    maker.hops()
    maker.across()
    return maker.finished()


class _Maker:
    def __init__(self, random: Random, half: int) -> None:
        self._random = random
        self._half = half
        self._times = _times(random)
        self._texts: dict[int, str] = {}
        self._questions: list[Question] = []

    def facts(self) -> None:
        """Tell a fact of each topic, some of them anew later, among talk about the same."""
        for place, topic in enumerate(self._own(material.TOPICS)):
            updated = place % 3 == 0
            values = self._random.sample(topic.values, _TIMES_UPDATED if updated else 1)
            numbers = self._free(len(values))
            wordings = [self._random.choice(topic.told) for _ in values]
            for number, value, wording in zip(numbers, values, wordings, strict=True):
                statement = wording.format(v=value)
                self._say(
                    number, statement if number == numbers[0] else f"Things changed: {statement}"
                )
            for noise in topic.noise * 2:
                self._say(self._free(1)[0], noise)
            answers = frozenset(numbers[-1:])
            same = wordings[-1] == topic.told[0]
            label = "in the same words" if same else "partly in other words"
            for how, text in ((label, topic.plain), ("wholly in other words", topic.reworded)):
                self._ask(f"{'updated' if updated else 'told'}, {how}", text, answers)

    def people(self) -> None:
        """Tell the same of many people; ask about one of them."""
        for statement, asked, values in self._own(material.ABOUT_PEOPLE):
            people = self._random.sample(material.PEOPLE, min(8, len(values)))
            chosen = zip(people, values, self._free(len(people)), strict=False)
            for count, (who, value, number) in enumerate(chosen):
                self._say(number, _capital(statement.format(who=who, v=value)))
                if count < 2:
                    self._ask("one of many", asked.format(who=who), frozenset([number]))

    def dated(self) -> None:
        """Return for the same again and again; ask by the date, and for the last time."""
        for statement, asked, values in self._own(material.DATED):
            days: dict[int, date] = {}
            for number in self._free(_TIMES_DATED):
                self._say(number, statement.format(v=self._random.choice(values)))
                days[number] = _day(self._times[number - 1])
            last = max(days)
            self._ask("the last time", asked.format(when="most recently"), frozenset([last]))
            first = self._random.choice(sorted(days))
            self._ask_when(asked, f"on {days[first]:%B} {days[first].day}", days, [days[first]])
            month = [day for day in days.values() if day.month == days[first].month]
            self._ask_when(asked, f"in {days[first]:%B}", days, month)
            self._ask_when(asked, "last week", days, _WEEK)
            self._ask_when(asked, "last month", days, [d for d in days.values() if d.month == 1])

    def split(self) -> None:
        """Tell a thing in two turns that follow each other."""
        for opened, reply, statement, asked, values in self._own(material.SPLIT):
            number = self._random.choice(
                [n for n in range(1, TURNS) if not {n, n + 1} & self._texts.keys()]
            )
            self._texts[number] = f"{opened}\n{reply}"
            self._say(number + 1, statement.format(v=self._random.choice(values)))
            self._ask("told in two turns", asked, frozenset([number + 1]))

    def recommended(self) -> None:
        """Have the assistant say what is asked for."""
        for opened, statement, asked, values in self._own(material.RECOMMENDED):
            [number] = self._free(1)
            answer = f"{statement.format(v=self._random.choice(values))} {self._reply()}"
            self._texts[number] = f"{opened}\n{answer}"
            self._ask("said by the assistant", asked, frozenset([number]))

    def elsewhere(self) -> None:
        """Add turns and questions in other languages."""
        for statement, asked, values in self._own(material.ELSEWHERE):
            [number] = self._free(1)
            self._say(number, statement.format(v=self._random.choice(values)))
            self._ask("other languages", asked, frozenset([number]))

    def hops(self) -> None:
        """Add questions whose answer lies in two turns far apart."""
        for first, second, asked, names, values in self._own(material.HOPS):
            a, b = self._random.choice(names), self._random.choice(values)
            numbers = self._free(2)
            for number, statement in zip(numbers, (first, second), strict=True):
                self._say(number, statement.format(a=a, b=b))
            self._ask("multi-hop", asked, *(frozenset([number]) for number in numbers))

    def across(self) -> None:
        """Add turns in one language and questions on them in another."""
        for statement, asked, values in self._own(material.ACROSS):
            [number] = self._free(1)
            self._say(number, statement.format(v=self._random.choice(values)))
            self._ask("across languages", asked, frozenset([number]))

    def finished(self) -> Conversation:
        """Fill the rest with small talk."""
        for number in range(1, TURNS + 1):
            if number not in self._texts:
                opener = self._random.choice(material.OPENERS)
                opened = opener.format(x=self._random.choice(material.THINGS))
                self._texts[number] = f"{opened}\n{self._reply()}"
        turns = [
            ArchivedTurn(number, self._texts[number], at_ms)
            for number, at_ms in enumerate(self._times, start=1)
        ]
        return Conversation(turns, self._questions)

    def _own(self, everything: Sequence[One]) -> Sequence[One]:
        return everything[self._half :: 2]

    def _free(self, count: int) -> list[int]:
        free = [number for number in range(1, TURNS + 1) if number not in self._texts]
        return sorted(self._random.sample(free, count))

    def _say(self, number: int, statement: str) -> None:
        """Let the user tell something, at times with more around it."""
        parts = [statement]
        if self._random.random() < 0.4:
            opener = self._random.choice(material.OPENERS)
            parts.append(opener.format(x=self._random.choice(material.THINGS)))
            self._random.shuffle(parts)
        answer = self._random.choice(material.ANSWERS)
        more = f" {self._reply()}" if len(parts) > 1 else ""
        self._texts[number] = f"{' '.join(parts)}\n{answer}{more}"

    def _reply(self) -> str:
        return " ".join(self._random.sample(material.REPLIES, self._random.randint(2, 7)))

    def _ask(self, kind: str, text: str, *parts: frozenset[int]) -> None:
        self._questions.append(Question(kind, text, parts))

    def _ask_when(
        self, asked: str, when: str, days: dict[int, date], meant: Sequence[date]
    ) -> None:
        answers = frozenset(number for number, day in days.items() if day in meant)
        if answers:
            self._ask("by its date", asked.format(when=when), answers)


def _times(random: Random) -> list[int]:
    """Return when each turn was said: sessions of some minutes, over most of a year."""
    lengths: list[int] = []
    while sum(lengths) < TURNS:
        lengths.append(random.randint(*_A_SESSION))
    starts = sorted(random.sample(range(_BEGAN_MS, NOW_MS - 86_400_000, 7_200_000), len(lengths)))
    times: list[int] = []
    for start, length in zip(starts, lengths, strict=True):
        times += [start + place * 5 * _MINUTE_MS for place in range(length)]
    return times[:TURNS]


def _day(at_ms: int) -> date:
    return datetime.fromtimestamp(at_ms / 1000, UTC).date()


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
