"""The guess at tokens: above what tokenizers count, below nonsense, and quick."""

import json

import pytest

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Media,
    Message,
    Opaque,
    Thinking,
    ToolResult,
    ToolUse,
)
from gateway.inference.v1.inference_pb2 import GenerateRequest, OutputFormat, Tool
from services.common.text.tokens import estimate_tokens
from services.inference.request.estimate import estimate_input_tokens

IMAGE = conversation.MEDIA_KIND_IMAGE
DOCUMENT = conversation.MEDIA_KIND_DOCUMENT
AUDIO = conversation.MEDIA_KIND_AUDIO


def request(*blocks: Block, messages: int = 1, tools: tuple[Tool, ...] = ()) -> GenerateRequest:
    message = Message(role=conversation.ROLE_USER, blocks=blocks)
    return GenerateRequest(messages=[message] * messages, tools=tools)


def cost(*blocks: Block) -> int:
    """Return the tokens that blocks add to a request without any."""
    return estimate_input_tokens(request(*blocks)) - estimate_input_tokens(request())


# Counts that OpenAI publishes for its tokenizer, or that follow from how it splits.
@pytest.mark.parametrize(
    ("text", "true_count"),
    [
        ("tiktoken is great!", 6),
        ("The quick brown fox jumps over the lazy dog.", 10),
        ("antidisestablishmentarianism", 6),
        ("2 + 2 = 4", 7),
        ("お誕生日おめでとう", 9),
        ("hello world", 2),
        ("", 0),
    ],
)
def test_known_texts_come_out_high_but_not_beyond_all_bounds(text: str, true_count: int) -> None:
    assert true_count <= estimate_tokens(text) <= 2 * true_count + 3


def test_non_latin_characters_count_one_or_two_tokens() -> None:
    for text in ("漢字" * 500, "при" * 333, "🙂" * 1000):
        assert len(text) <= estimate_tokens(text) <= 2 * len(text) + 1


def test_every_part_of_a_conversation_counts() -> None:
    word = "word " * 100
    alone = estimate_tokens(word)
    for block in (
        Block(text=word),
        Block(thinking=Thinking(text=word)),
        Block(refusal=word),
        Block(tool_use=ToolUse(id="t", name="f", input=word)),
        Block(tool_result=ToolResult(tool_use_id="t", blocks=[Block(text=word)])),
        Block(opaque=Opaque(json=json.dumps(word).encode())),
        Block(text="x", extra=Opaque(json=json.dumps(word).encode())),
        Block(redacted_thinking=word),
    ):
        assert alone * 0.9 <= cost(block) <= alone + 60


def test_each_kind_of_character_has_a_rate_of_its_own() -> None:
    kinds = {"az \n": 35, "AZ": 70, "é": 100, "19{~": 100}
    for characters, hundredths in kinds.items():
        for character in characters:
            assert estimate_tokens(character * 100) == hundredths + 1
    mixed = "".join(character * 100 for characters in kinds for character in characters)
    rates = sum(hundredths * len(characters) for characters, hundredths in kinds.items())
    assert estimate_tokens(mixed) == rates + 1


def test_every_message_and_tool_has_a_price_of_its_own() -> None:
    one, two = (estimate_input_tokens(request(Block(text="x"), messages=n)) for n in (1, 2))
    assert two - one >= 5
    schema = json.dumps({"type": "object", "properties": {"city": {"type": "string"}}})
    tool = Tool(name="weather", description="Tells it", input_schema=schema.encode())
    with_tool = estimate_input_tokens(request(Block(text="x"), tools=(tool,)))
    with_two = estimate_input_tokens(request(Block(text="x"), tools=(tool, tool)))
    parts = sum(map(estimate_tokens, ("weather", "Tells it", schema)))
    assert with_tool - one > with_two - with_tool > parts
    own = Tool(opaque=True, extra=Opaque(json=schema.encode()))
    with_own = estimate_input_tokens(request(Block(text="x"), tools=(tool, own)))
    assert with_own - with_tool > estimate_tokens(schema)


def test_the_schema_of_the_answer_counts() -> None:
    asked = request(Block(text="x"))
    before = estimate_input_tokens(asked)
    asked.output_format.CopyFrom(
        OutputFormat(kind=OutputFormat.KIND_JSON_SCHEMA, schema=b'{"type":"object"}')
    )
    assert estimate_input_tokens(asked) - before == estimate_tokens('{"type":"object"}')


def test_an_image_costs_the_same_whatever_its_bytes() -> None:
    small, large = (
        cost(Block(media=Media(kind=IMAGE, data=b"x" * size))) for size in (1, 1_000_000)
    )
    assert small == large == cost(Block(media=Media(kind=IMAGE, url="https://x/y.png"))) == 1_600


def test_a_document_costs_by_its_pages_or_its_size() -> None:
    def document(data: bytes, mime_type: str = "application/pdf") -> int:
        return cost(Block(media=Media(kind=DOCUMENT, data=data, mime_type=mime_type)))

    page = document(b"%PDF")
    assert page >= 3_000
    assert document(b"<< /Type /Page >>" * 3) == 3 * page
    assert document(b"<</Type/Page>>" * 3) == 3 * page
    assert document(b"x" * 100_000) > 4 * page
    assert document(b"word " * 100, "text/plain") == estimate_tokens("word " * 100)
    unseen = cost(Block(media=Media(kind=DOCUMENT, url="https://x/y.pdf")))
    assert unseen > 4 * page


def test_a_recording_costs_by_its_size() -> None:
    minute = cost(Block(media=Media(kind=AUDIO, data=bytes(960_000))))
    assert 600 <= minute <= 6_000
    assert cost(Block(media=Media(kind=AUDIO, url="https://x/y.mp3"))) > minute


def test_a_file_that_is_not_utf_8_is_still_estimated() -> None:
    media = Media(kind=DOCUMENT, data=b"\xff\xfe" * 50, mime_type="text/plain")
    assert cost(Block(media=media)) == 51
