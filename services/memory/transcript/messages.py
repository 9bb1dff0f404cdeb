"""One message: what of it is kept, by what it is recognised, and the normal form for both.

Clients write one and the same conversation in many ways: results of tools in one message
or in several, a prefill apart from what continued it, thoughts sent back or not. In the
normal form all of these are equal, so that counting messages and comparing them by their
keys is enough to find where a client's transcript meets the stored one.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b, sha256
from itertools import groupby

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message
from services.common.texts import normalized

KEY_SIZE = 8

_USER = conversation_pb2.ROLE_USER
_ASSISTANT = conversation_pb2.ROLE_ASSISTANT
# Kinds that say nothing; of texts only empty ones get there. What the gateway's own tools found
# is as good as what the answer says of it, and can be found again.
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


def is_ignored(block: Block) -> bool:
    """Return whether a block is neither kept nor compared.

    Those are thoughts, blank text, and calls of the gateway's own tools with their results.

    Some providers refuse blank text, also where a model wrote it.
    """
    if text := block.text or block.refusal:
        return text.isspace()
    return block.WhichOneof("kind") in _IGNORED_KINDS


def is_user_turn_start(message: Message) -> bool:
    """Return whether the user speaks in a message: results of tools alone open no turn."""
    return message.role == _USER and any(not b.HasField("tool_result") for b in message.blocks)


def has_results(message: Message) -> bool:
    """Return whether a message answers calls of tools."""
    return message.role == _USER and any(b.HasField("tool_result") for b in message.blocks)


def continues_message(message: Message, following: Message) -> bool:
    """Return whether a message goes on where the one before ends: both the same assistant's."""
    if message.role != _ASSISTANT or following.role != _ASSISTANT:
        return False
    return not (message.name and following.name) or message.name == following.name


def merge_messages(messages: Sequence[Message]) -> Message:
    """Make one message of neighbours in the same voice; a single one stays as it is."""
    if len(messages) == 1:
        return messages[0]
    one = Message(role=messages[0].role)
    for message in messages:
        one.blocks.extend(message.blocks)
        one.name = one.name or message.name
        if message.HasField("extra") and not one.HasField("extra"):
            one.extra.CopyFrom(message.extra)
    return one


def normalize(messages: Iterable[Message]) -> list[Message]:
    """Return the messages of users and assistants in normal form; applied twice it changes nothing.

    Neighbours of an assistant are one message; each result of a tool is a message of its
    own, before what the user says beside it; a message of which nothing would be kept is
    left out. What is in the blocks stays as it is.
    """
    made: list[Message] = []
    telling = (m for m in messages if not all(is_ignored(block) for block in m.blocks))
    for role, neighbours in groupby(telling, key=lambda message: message.role):
        run = list(neighbours)
        made += _merge_assistant_run(run) if role == _ASSISTANT else _split_user_run(run)
    return made


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
            rest = [block for block in message.blocks if not block.HasField("tool_result")]
            results += [
                Message(role=message.role, blocks=[block])
                for block in message.blocks
                if block.HasField("tool_result")
            ]
            if not all(is_ignored(block) for block in rest):
                extra = message.extra if message.HasField("extra") else None
                spoken.append(
                    Message(role=message.role, name=message.name, extra=extra, blocks=rest)
                )
    return results + spoken


def to_storable(message: Message) -> Message | None:
    """Return what is kept of a message, or None when that is nothing; its key stays the same.

    Thoughts go, and with the bytes of media all but their hash. Marks of the provider's
    cache go, since a provider takes few of them and a history would gather many; so do
    citations, whose documents may be gone when the text is sent again.
    """
    kept = Message(role=message.role, name=message.name)
    if message.HasField("extra"):
        kept.extra.CopyFrom(message.extra)
    _copy_content(_content(message.blocks, runs_on=message.role == _ASSISTANT), kept.blocks.add)
    return kept if kept.blocks else None


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
    """Yield what blocks say: texts that are not blank, and the other blocks but thoughts.

    Args:
        blocks: of a message, or of what a tool answered.
        runs_on: whether neighbouring texts are pieces of one, as a model's are.
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
    """Return the 8 bytes by which a message is recognised: a hash of its role and content.

    Equal are: texts of one Unicode normal form, whatever white space is around them and
    in how many parts they come (an assistant's also when other blocks lie between, for
    not every dialect can tell where); arguments of tools that are the same JSON; media of
    the same bytes, address or file. Thoughts, names and ids of calls do not count.
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
            given = call.input.encode() if call.freeform else _canonical(call.input or "{}")
            return _frame(b"c", call.name.encode()) + _frame(b"a", given)
        case "tool_result":
            answered = _content(block.tool_result.blocks, runs_on=False)
            return _frame(b"r", _identity(answered))
        case _:
            return _frame(b"o", _canonical(block.opaque.json))


def _frame(tag: bytes, content: bytes) -> bytes:
    # The length keeps the end of one part from passing for the beginning of the next.
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
        # What a model wrote need not be JSON.
        return text.encode() if isinstance(text, str) else text


def _number(written: str) -> float | int:
    # JavaScript writes 1.0 as 1.
    value = float(written)
    return int(value) if value.is_integer() else value


def media_placeholder(media: Media) -> Block:
    """Return the text that stands for a medium whose bytes are not at hand."""
    title = ", ".join(
        filter(None, (_MEDIA_NAMES.get(media.kind, "medium"), media.name, media.mime_type))
    )
    return Block(text=f"[{title}: {media.description or 'no longer kept'}]")
