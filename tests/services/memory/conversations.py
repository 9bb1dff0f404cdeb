"""Conversations to test with: messages in few words, a memory, clients, and random scripts."""

import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby, zip_longest

from hypothesis import strategies as st

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message, Thinking, ToolUse
from services.memory.storage import stored_turns
from services.memory.storage.messages import (
    has_results,
    is_ignored,
    merge_messages,
    message_key,
    normalize,
)
from services.memory.storage.stored_turns import StoredTurn
from services.memory.turns import transcript_merge
from services.memory.turns.transcript_merge import MergePoint, StoredTranscript

USER = conversation.ROLE_USER
ASSISTANT = conversation.ROLE_ASSISTANT


def text(words: str) -> Block:
    return Block(text=words)


def thought(words: str) -> Block:
    return Block(thinking=Thinking(text=words, signature="signed"))


def image(data: bytes = b"png", description: str = "") -> Block:
    kind = conversation.MEDIA_KIND_IMAGE
    return Block(media=Media(kind=kind, data=data, mime_type="image/png", description=description))


def call(call_id: str, name: str = "weather", given: str = "{}") -> Block:
    return Block(tool_use=ToolUse(id=call_id, name=name, input=given))


def result(call_id: str, *content: str | Block) -> Block:
    block = Block()
    block.tool_result.tool_use_id = call_id
    block.tool_result.blocks.extend(_blocks(content))
    return block


def _blocks(content: Iterable[str | Block]) -> list[Block]:
    return [text(part) if isinstance(part, str) else part for part in content]


def user(*content: str | Block, name: str = "") -> Message:
    return Message(role=USER, blocks=_blocks(content), name=name)


def model(*content: str | Block, name: str = "") -> Message:
    return Message(role=ASSISTANT, blocks=_blocks(content), name=name)


def keys(messages: Iterable[Message]) -> list[bytes]:
    return [message_key(message) for message in messages]


@dataclass
class Memory:
    """A store that keeps to the rules and does nothing else."""

    turns: list[StoredTurn] = field(default_factory=list)
    now_ms: int = 0

    @property
    def messages(self) -> list[Message]:
        return [message for turn in self.turns for message in turn.messages]

    def join(self, sent: Sequence[Message]) -> MergePoint:
        """Join messages in normal form; the keys are read only where they must be."""
        stored = self.messages
        is_open = bool(self.turns) and self.turns[-1].open
        waiting = stored_turns.pending_call_ids(self.turns[-1].messages) if is_open else frozenset()
        needed = transcript_merge.needs_keys(sent, len(stored), waiting)
        read = b"".join(keys(stored)) if needed else b""
        return transcript_merge.find_merge_point(sent, StoredTranscript(len(stored), waiting, read))

    def begin(self, messages: Sequence[Message]) -> list[StoredTurn]:
        """Return the turns that come of what a client sends; the last is the present one."""
        sent = normalize(messages)
        joined = self.join(sent)
        before = next((t for t in reversed(self.turns) if t.first_message < joined.keep), None)
        self.now_ms += 1
        return stored_turns.extend_turns(before, joined.keep, sent[joined.known :], self.now_ms)

    def commit(self, begun: Sequence[StoredTurn], answer: Message) -> None:
        written = stored_turns.complete_turns(begun, answer)
        self.turns[written[0].number - 1 :] = written

    def take(self, messages: Sequence[Message], answer: Message) -> None:
        self.commit(self.begin(messages), answer)

    def shown(self, begun: Sequence[StoredTurn]) -> list[Message]:
        """Return what a provider would see of the whole conversation."""
        earlier = self.turns[: begun[0].number - 1]
        return [
            message
            for turn in (*earlier, *begun)
            for message in stored_turns.to_model_messages(turn.messages)
        ]

    def content(self) -> list[tuple[int, int, bool, list[bytes]]]:
        """Return all that must be the same however a client sends: everything but times."""
        return [
            (
                turn.number,
                turn.first_message,
                turn.open,
                [message.SerializeToString(deterministic=True) for message in turn.messages],
            )
            for turn in self.turns
        ]


def check_memory(memory: Memory) -> None:
    """Check what holds for every store."""
    messages = memory.messages
    assert normalize(messages) == messages
    first = 0
    for number, turn in enumerate(memory.turns, start=1):
        assert (turn.number, turn.first_message) == (number, first)
        assert turn.messages
        assert turn.open == (
            turn is memory.turns[-1] and bool(stored_turns.pending_call_ids(turn.messages))
        )
        first += len(turn.messages)


def check_valid(messages: Sequence[Message], *, answer_goes_on: bool = False) -> None:
    """Check that every provider takes the messages: calls and results pair up, nobody is silent."""
    for message in messages:
        assert message.blocks
        assert not any(is_ignored(block) for block in message.blocks)
    runs = [(role, list(run)) for role, run in groupby(messages, key=lambda m: m.role)]
    assert runs[0][0] == USER
    assert runs[-1][0] == (ASSISTANT if answer_goes_on else USER)
    waiting: list[str] = []
    for role, run in runs:
        blocks = [block for message in run for block in message.blocks]
        calls = [block.tool_use.id for block in blocks if block.HasField("tool_use")]
        answers = [b.tool_result.tool_use_id for b in blocks if b.HasField("tool_result")]
        assert sorted(answers) == sorted(waiting)
        assert len(set(calls)) == len(calls)
        first_words = next((i for i, b in enumerate(blocks) if not b.HasField("tool_result")), None)
        if role == USER and first_words is not None:
            assert first_words >= len(answers)
        waiting = calls
    assert not waiting


@dataclass(frozen=True)
class Exchange:
    """A request's new messages, possibly none or with a prefill, and the model's answer."""

    sent: tuple[Message, ...]
    answer: Message


@dataclass(frozen=True)
class Step:
    """An exchange that follows the first `keep` ones there were; fewer than all is an edit.

    `trim` chooses how much a client that trims its transcript leaves out.
    """

    keep: int
    exchange: Exchange
    trim: int


@dataclass(frozen=True)
class Habits:
    """How a client writes down what was said."""

    thoughts: bool = False
    texts_joined: bool = False
    prefills_joined: bool = False
    results_together: bool = False
    white_space: bool = False
    decomposed: bool = False
    arguments_read: bool = False
    media_by_hash: bool = False


def transcript(history: Iterable[Exchange], habits: Habits) -> list[Message]:
    """Return the messages of exchanges as a client keeps them."""
    kept: list[Message] = []
    for exchange in history:
        kept += sent(exchange, habits)
        answer = _echoed(exchange.answer, habits)
        if not answer.blocks:
            continue
        if habits.prefills_joined and kept[-1].role == ASSISTANT:
            kept[-1] = _with_texts_joined(merge_messages([kept[-1], answer]))
        else:
            kept.append(answer)
    if habits.white_space:
        _put_white_space_around(kept)
    return kept


def _put_white_space_around(messages: Sequence[Message]) -> None:
    # Not between the pieces of what is one message.
    for message, following in zip_longest(messages, messages[1:]):
        is_last = following is None or following.role == USER
        if is_last and message.role == ASSISTANT and message.blocks[-1].HasField("text"):
            message.blocks[-1].text += "\n "


def sent(exchange: Exchange, habits: Habits) -> list[Message]:
    """Return the new messages of a request as a client groups them."""
    messages = [_with_media(message, habits) for message in exchange.sent]
    results = [m for m in messages if has_results(m)]
    if not habits.results_together or not results:
        return messages
    # In one message, with what the user says first beside them.
    together, others = messages[: len(results) + 1], messages[len(results) + 1 :]
    return [user(*(block for message in together for block in message.blocks)), *others]


def _with_media(message: Message, habits: Habits) -> Message:
    made = Message()
    made.CopyFrom(message)
    for block in made.blocks if habits.media_by_hash else ():
        if block.HasField("media"):
            block.media.sha256 = sha256(block.media.data).digest()
    return made


def _with_texts_joined(message: Message) -> Message:
    # As OpenAI's dialect has it: one text, and the calls behind it.
    others = [block for block in message.blocks if not block.HasField("text")]
    words = "".join(block.text for block in message.blocks)
    return model(*([words] if words else []), *others)


def _echoed(answer: Message, habits: Habits) -> Message:
    made = model(*(b for b in answer.blocks if habits.thoughts or not b.HasField("thinking")))
    if habits.texts_joined:
        made = _with_texts_joined(made)
    for block in made.blocks:
        if block.HasField("text"):
            form = "NFD" if habits.decomposed else "NFC"
            block.text = unicodedata.normalize(form, block.text)
        elif block.HasField("tool_use") and habits.arguments_read:
            read = json.loads(block.tool_use.input)
            block.tool_use.input = json.dumps(dict(reversed(read.items())), indent=1)
    return made


HABITS = st.builds(Habits, *[st.booleans()] * 8)
_WORDS = ("continue", "yes", "And then?", "Qué café?")
_ANSWERS = ("Done.", "It was a café.", "yes", "I went on.")
_ARGUMENTS = ("{}", '{"city": "Köln", "days": 3}', '{"days": 3, "city": "Bonn"}')


def _user_messages() -> st.SearchStrategy[tuple[Message, ...]]:
    blocks = st.one_of(
        st.sampled_from(_WORDS).map(lambda words: [text(words)]),
        st.sampled_from([b"one", b"two"]).map(lambda data: [text("Look:"), image(data)]),
    )
    message = blocks.map(lambda made: user(*made))
    return st.one_of(message.map(lambda one: (one,)), st.tuples(message, message))


def _calls(draw: st.DrawFn, taken: list[int]) -> Iterator[Block]:
    for place in range(draw(st.integers(1, 3))):
        taken[0] += 1
        # Some servers count calls anew in each message.
        call_id = f"call_{taken[0]}" if draw(st.booleans()) else f"call_{place}_again"
        yield call(call_id, draw(st.sampled_from(["weather", "time"])), draw(_one_of(_ARGUMENTS)))


def _one_of(choices: Sequence[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(choices)


def _answer(draw: st.DrawFn, taken: list[int], *, silent: bool = True) -> Message:
    kinds = ["text", "text", "thoughts", "pieces", "calls", "text and calls"]
    kind = draw(_one_of([*kinds, "nothing", "thoughts alone"] if silent else kinds))
    words = text(draw(_one_of(_ANSWERS)))
    match kind:
        case "text":
            return model(words)
        case "thoughts":
            return model(thought("Hm."), words)
        case "pieces":
            return model(words, thought("Well."), text(" "), text("More."))
        case "calls":
            return model(*_calls(draw, taken))
        case "text and calls":
            return model(words, *_calls(draw, taken))
        case "nothing":
            return model()
        case _:
            return model(thought("Hm."))


def _exchange(draw: st.DrawFn, before: Sequence[Exchange], taken: list[int]) -> Exchange:
    normalized = normalize(transcript(before, Habits()))
    waiting = sorted(stored_turns.pending_call_ids(normalized))
    kinds = ["user", "user", "prefill"]
    if waiting:
        kinds = ["results", "results", "some results", "results and user", "user"]
    elif normalized and normalized[-1].role == ASSISTANT:
        kinds.append("go on")
    kind = draw(_one_of(kinds))
    if kind == "go on":
        return Exchange((), _answer(draw, taken))
    if kind == "user":
        return Exchange(draw(_user_messages()), _answer(draw, taken))
    if kind == "prefill":
        prefill = model(draw(_one_of(["Sure, ", "{"])))
        return Exchange((*draw(_user_messages()), prefill), _answer(draw, taken, silent=False))
    answered = waiting[:1] if kind == "some results" else waiting
    replies = [user(result(call_id, draw(_one_of(["sunny", "rain"])))) for call_id in answered]
    more = draw(_user_messages()) if kind == "results and user" else ()
    return Exchange((*replies, *more), _answer(draw, taken))


@st.composite
def scripts(draw: st.DrawFn, *, edits: bool) -> list[Step]:
    """Draw a conversation, possibly with edits and new answers to what was said before.

    An edit leaves an answer and its question as they are: without, a transcript is taken
    for newest messages.
    """
    steps: list[Step] = []
    history: list[Exchange] = []
    taken = [0]
    for _ in range(draw(st.integers(1, 10))):
        keep = len(history)
        if edits and draw(st.integers(0, 3)) == 0:
            keep = draw(st.sampled_from(_editable(history)))
        if keep < len(history) and draw(st.booleans()):
            exchange = Exchange(history[keep].sent, _answer(draw, taken, silent=False))
        else:
            exchange = _exchange(draw, history[:keep], taken)
        steps.append(Step(keep, exchange, draw(st.integers(0, 30))))
        history = [*history[:keep], exchange]
    return steps


def _editable(history: Sequence[Exchange]) -> list[int]:
    """Return how many exchanges may be kept, all of them first."""
    now = keys(normalize(transcript(history, Habits())))
    places = [len(history)]
    for keep in range(1, len(history)):
        kept = normalize(transcript(history[:keep], Habits()))
        # An answer that went on later is not what was kept of it.
        is_still_there = in_common(now, keys(kept)) == len(kept)
        if is_still_there and any(message.role == ASSISTANT for message in kept):
            places.append(keep)
    return places


def in_common(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Count the keys with which both begin."""
    same = [mine == theirs for mine, theirs in zip(one, other, strict=False)]
    return same.index(False) if False in same else len(same)
