"""How many tokens something has, guessed without a tokenizer, and rather too many.

Every provider cuts text in its own way and most keep that to themselves, so this
counts kinds of UTF-8 bytes and gives each kind about the worst rate that common
tokenizers show for it. What to expect: for English prose about 1.3 to 1.6 times the
true number of OpenAI's newer tokenizers, less above those of newer Claude models,
which cut finer; for JSON and numbers up to twice; for indented code up to three
times; for Cyrillic, Chinese and Japanese up to twice. It can come out too low for
scripts that a tokenizer hardly knows (each byte a token), for images at a provider
that charges more for them, and for documents, whose pages are guessed.
The figures are rules of thumb; none was measured against a provider.
"""

from collections.abc import Iterable

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Media
from gateway.inference.v1.inference_pb2 import GenerateRequest

# Hundredths of a token for each byte of a kind: words of small letters have 3 to 5
# letters a token, capitals break words up, digits and signs often stand alone, and a
# character outside of ASCII has 2 to 4 bytes and half to two tokens.
_SMALL, _CAPITAL, _HIGH, _OTHER = 35, 70, 50, 100
_SMALL_BYTES = bytes(range(ord("a"), ord("z") + 1)) + b" \n\r\t"
_CAPITAL_BYTES = bytes(range(ord("A"), ord("Z") + 1))
_HIGH_BYTES = bytes(range(0x80, 0x100))

# What the dialects put around the parts of a request.
_REQUEST = 10
_MESSAGE = 6
_CALL = 20
_TOOL = 20
# Providers explain the use of tools to the model once, in their own words.
_TOOLS = 500

# The most that Claude models up to 4.6 count for an image, above most of OpenAI's.
_IMAGE = 1_600
# A page of a document is read as its text and as an image.
_PAGE = 1_500 + _IMAGE
_BYTES_A_PAGE = 20_000
_PAGES_UNSEEN = 10
# A recording or film has some tens to hundreds of tokens for each second.
_BYTES_A_TOKEN = 500
_RECORDING_UNSEEN = 10_000


def estimate_output_tokens(text: str) -> int:
    """Guess the tokens of a text; see the module for how well."""
    return _count(text.encode())


def estimate_input_tokens(request: GenerateRequest) -> int:
    """Guess the tokens that a request reads; see the module for how well."""
    total = _REQUEST + _MESSAGE * len(request.messages)
    for message in request.messages:
        total += _blocks(message.blocks)
    if request.tools:
        total += _TOOLS
    for tool in request.tools:
        total += _TOOL + _count(tool.name.encode()) + _count(tool.description.encode())
        total += _count(tool.input_schema) + _count(tool.extra.json)
    return total + _count(request.output_format.schema)


def _blocks(blocks: Iterable[Block]) -> int:
    total = 0
    for block in blocks:
        kind = block.WhichOneof("kind")
        total += _count(block.text.encode()) if kind == "text" else _other(kind, block)
        if block.HasField("extra"):
            total += _count(block.extra.json)
    return total


def _other(kind: str | None, block: Block) -> int:
    match kind:
        case "media":
            return _media(block.media)
        case "thinking":
            return _count(block.thinking.text.encode())
        case "redacted_thinking":
            # Encrypted and in base64, so longer than what it stands for.
            return len(block.redacted_thinking) // 3
        case "tool_use":
            call = block.tool_use
            return _CALL + _count(call.name.encode()) + _count(call.input.encode())
        case "tool_result":
            return _CALL + _blocks(block.tool_result.blocks)
        case "refusal":
            return _count(block.refusal.encode())
        case _:
            return _count(block.opaque.json)


def _media(media: Media) -> int:
    if media.kind == conversation_pb2.MEDIA_KIND_IMAGE:
        return _IMAGE
    seen = media.WhichOneof("source") == "data"
    if media.kind != conversation_pb2.MEDIA_KIND_DOCUMENT:
        return len(media.data) // _BYTES_A_TOKEN + 1 if seen else _RECORDING_UNSEEN
    if not seen:
        return _PAGE * _PAGES_UNSEEN
    if media.mime_type.startswith("text/"):
        return _count(media.data)
    # Most PDF files name each of their pages in the open; else their size must do.
    named = media.data.count(b"/Type /Page") + media.data.count(b"/Type/Page")
    return _PAGE * (named or len(media.data) // _BYTES_A_PAGE + 1)


def _count(data: bytes) -> int:
    if not data:
        return 0
    # Deleting a kind of byte counts it at the speed of C.
    no_small = data.translate(None, _SMALL_BYTES)
    no_letter = no_small.translate(None, _CAPITAL_BYTES)
    other = len(no_letter.translate(None, _HIGH_BYTES))
    hundredths = (
        (len(data) - len(no_small)) * _SMALL
        + (len(no_small) - len(no_letter)) * _CAPITAL
        + (len(no_letter) - other) * _HIGH
        + other * _OTHER
    )
    return hundredths // 100 + 1
