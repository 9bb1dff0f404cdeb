"""Messages: their normal form, their stored form, and the keys that identify them. Pure.

Clients represent one conversation in many ways: tool results in one message or in several, a
prefill separate from its continuation, thinking sent back or not. In the normal form all of these
are equal, so that counting messages and comparing their keys is enough to find where a client's
transcript continues the stored one.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from hashlib import blake2b, sha256
from itertools import accumulate, groupby
from operator import attrgetter

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message
from services.common.text.texts import normalized

KEY_SIZE = 8

# Bounds beyond which work on messages takes long: about 5 µs a message, 1 ms a megabyte.
_MANY = 2_000
_LARGE = 1 << 20  # bytes

_USER = conversation_pb2.ROLE_USER
_ASSISTANT = conversation_pb2.ROLE_ASSISTANT
# Kinds of blocks that are ignored; texts and refusals only if they are empty. The results of the
# gateway's own tools are ignored, since the answer contains what matters of them.
_IGNORED_KINDS = (
    *("thinking", "redacted_thinking", "text", "refusal", None),
    *("server_tool_use", "server_tool_result"),
)
_MEDIA_NAMES = {
    conversation_pb2.MEDIA_KIND_IMAGE: "image",
    conversation_pb2.MEDIA_KIND_DOCUMENT: "document",
    conversation_pb2.MEDIA_KIND_AUDIO: "recording",
    conversation_pb2.MEDIA_KIND_VIDEO: "film",
}


def has_many_messages(messages: Collection[Message]) -> bool:
    """Return whether work on each message takes long."""
    return len(messages) > _MANY


def has_large_messages(messages: Collection[Message]) -> bool:
    """Return whether work on the content of messages takes long."""
    # Measuring a message serializes it, so no more messages are measured than needed.
    sizes = accumulate(message.ByteSize() for message in messages)
    return has_many_messages(messages) or any(size > _LARGE for size in sizes)


def is_ignored(block: Block) -> bool:
    """Return whether a block is neither stored nor compared.

    Thinking, blank text, and calls of the gateway's own tools with their results are ignored.
    Some providers refuse blank text even where a model wrote it.
    """
    if text := block.text or block.refusal:
        return text.isspace()
    return block.WhichOneof("kind") in _IGNORED_KINDS


def is_user_turn_start(message: Message) -> bool:
    """Return whether a message of the user starts a turn: tool results alone do not."""
    return message.role == _USER and any(not b.HasField("tool_result") for b in message.blocks)


def has_results(message: Message) -> bool:
    """Return whether a message holds tool results."""
    return message.role == _USER and any(b.HasField("tool_result") for b in message.blocks)


def continues_message(message: Message, following: Message) -> bool:
    """Return whether two neighbours are one message of the same assistant."""
    if message.role != _ASSISTANT or following.role != _ASSISTANT:
        return False
    return not (message.name and following.name) or message.name == following.name


def merge_messages(messages: Sequence[Message]) -> Message:
    """Merge neighbours of the same assistant; a single message is returned as it is."""
    if len(messages) == 1:
        return messages[0]
    merged = Message(role=messages[0].role)
    for message in messages:
        merged.blocks.extend(message.blocks)
        merged.name = merged.name or message.name
        if message.HasField("extra") and not merged.HasField("extra"):
            merged.extra.CopyFrom(message.extra)
    return merged


def normalize(messages: Iterable[Message]) -> list[Message]:
    """Return messages of users and assistants in normal form; idempotent.

    Neighbours of one assistant are merged; each tool result becomes a message of its own, before
    the user's other blocks; messages with nothing to store are left out. The content of blocks
    is not changed.
    """
    normal: list[Message] = []
    kept = (m for m in messages if not all(is_ignored(block) for block in m.blocks))
    for role, neighbours in groupby(kept, key=attrgetter("role")):
        run = list(neighbours)
        normal += _merge_assistant_run(run) if role == _ASSISTANT else _split_user_run(run)
    return normal


def _merge_assistant_run(run: Iterable[Message]) -> Iterator[Message]:
    voice: list[Message] = []
    named: Message | None = None
    for message in run:
        if named is not None and not continues_message(named, message):
            yield merge_messages(voice)
            voice, named = [], None
        voice.append(message)
        if named is None or not named.name:
            named = message
    yield merge_messages(voice)


def _split_user_run(run: Iterable[Message]) -> list[Message]:
    results: list[Message] = []
    spoken: list[Message] = []
    for message in run:
        if not any(block.HasField("tool_result") for block in message.blocks):
            spoken.append(message)
        elif len(message.blocks) == 1:
            results.append(message)
        else:
            other_blocks = [block for block in message.blocks if not block.HasField("tool_result")]
            results += [
                Message(role=message.role, blocks=[block])
                for block in message.blocks
                if block.HasField("tool_result")
            ]
            if not all(is_ignored(block) for block in other_blocks):
                extra = message.extra if message.HasField("extra") else None
                spoken.append(
                    Message(role=message.role, name=message.name, extra=extra, blocks=other_blocks)
                )
    return results + spoken


def to_storable(message: Message) -> Message | None:
    """Return the stored form of a message, which has the same key; None when it is empty.

    Thinking is dropped, and media keep a hash in place of their bytes. Cache marks are dropped,
    since providers accept few of them and a history would collect many; so are citations, whose
    documents may be gone when the text is sent again.
    """
    stored = Message(role=message.role, name=message.name)
    if message.HasField("extra"):
        stored.extra.CopyFrom(message.extra)
    _copy_content(_content(message.blocks, runs_on=message.role == _ASSISTANT), stored.blocks.add)
    return stored if stored.blocks else None


def _copy_content(content: Iterable[str | Block], add: Callable[..., Block]) -> None:
    for part in content:
        if isinstance(part, str):
            add(text=part)
            continue
        block = add()
        block.CopyFrom(part)
        block.ClearField("cache_control")
        if block.HasField("media") and block.media.HasField("data"):
            block.media.sha256 = sha256(block.media.data).digest()
        elif block.HasField("tool_result"):
            del block.tool_result.blocks[:]
            _copy_content(
                _content(part.tool_result.blocks, runs_on=False), block.tool_result.blocks.add
            )


def _content(blocks: Iterable[Block], *, runs_on: bool) -> Iterator[str | Block]:
    """Yield the content of blocks: texts that are not blank, and blocks that are not ignored.

    Args:
        blocks: the blocks of a message or of a tool result.
        runs_on: whether neighbouring texts are pieces of one, as those of a model are.
    """
    pieces: list[str] = []
    for block in blocks:
        kind = block.WhichOneof("kind")
        if kind == "text":
            if runs_on:
                pieces.append(block.text)
            elif block.text.strip():
                yield block.text
        elif not is_ignored(block):
            if (text := "".join(pieces)).strip():
                yield text
            pieces.clear()
            yield block
    if (text := "".join(pieces)).strip():
        yield text


def message_key(message: Message) -> bytes:
    """Return the key of a message: an 8-byte hash of its role and content.

    Two messages have the same key when their texts are equal in Unicode normal form C, without
    surrounding white space and however they are divided into blocks (an assistant's also when
    other blocks lie between, as not every dialect keeps their order); when tool arguments are
    the same JSON; and when media have the same bytes, URL or file. Thinking, names and call ids
    are not compared.
    """
    hashed = blake2b(b"%d" % message.role, digest_size=KEY_SIZE)
    blocks = message.blocks
    if len(blocks) == 1 and (text := blocks[0].text.strip()):
        # Nearly all messages are like this, and there may be 100,000 of them.
        hashed.update(_frame(b"t", _normal_text(text)))
        return hashed.digest()
    from_model = message.role == _ASSISTANT
    parts = list(_content(blocks, runs_on=from_model))
    if from_model:
        parts.sort(key=_is_no_text)
    hashed.update(_identity(parts))
    return hashed.digest()


def _is_no_text(part: str | Block) -> bool:
    return not isinstance(part, str) and not part.refusal


def _identity(parts: Iterable[str | Block]) -> bytes:
    pieces: list[bytes] = []
    for is_no_text, run in groupby(parts, key=_is_no_text):
        if is_no_text:
            pieces += [_block_identity(part) for part in run if not isinstance(part, str)]
        else:
            text = "".join([part if isinstance(part, str) else part.refusal for part in run])
            pieces.append(_frame(b"t", _normal_text(text)))
    return b"".join(pieces)


def _block_identity(block: Block) -> bytes:
    match block.WhichOneof("kind"):
        case "media":
            return _frame(b"m", _source(block.media))
        case "tool_use":
            call = block.tool_use
            arguments = call.input.encode() if call.freeform else _canonical(call.input or "{}")
            return _frame(b"c", call.name.encode()) + _frame(b"a", arguments)
        case "tool_result":
            answered = _content(block.tool_result.blocks, runs_on=False)
            return _frame(b"r", _identity(answered))
        case _:
            return _frame(b"o", _canonical(block.opaque.json))


def _frame(tag: bytes, content: bytes) -> bytes:
    # The length separates one part from the next.
    return b"%b%d:%b" % (tag, len(content), content)


def _normal_text(text: str) -> bytes:
    return normalized("NFC", text).strip().encode()


def _source(media: Media) -> bytes:
    if media.HasField("data"):
        return sha256(media.data).digest()
    return media.sha256 or media.file_id.encode() or media.url.encode()


def _canonical(text: str | bytes) -> bytes:
    try:
        value = json.loads(text, parse_float=_number)
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        # Models may write invalid JSON.
        return text.encode() if isinstance(text, str) else text


def _number(written: str) -> float | int:
    # JavaScript writes 1.0 as 1.
    value = float(written)
    return int(value) if value.is_integer() else value


def media_placeholder(media: Media) -> Block:
    """Return a text block in place of a medium whose bytes are not available."""
    title = ", ".join(
        filter(None, (_MEDIA_NAMES.get(media.kind, "medium"), media.name, media.mime_type))
    )
    return Block(text=f"[{title}: {media.description or 'no longer kept'}]")
