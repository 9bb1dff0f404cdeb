import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Message, Opaque, Thinking
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import BlockStop, Event, GenerateRequest
from services.inference.request.thinking import (
    Signer,
    apply_strategy,
    is_gateway_signature,
    is_provider_signature,
)
from services.inference.stream.sign_thinking import ThinkingSigner
from tests.grid import each_row

OPENAI = conversation_pb2.DIALECT_OPENAI
ANTHROPIC = conversation_pb2.DIALECT_ANTHROPIC
RESPONSES = conversation_pb2.DIALECT_RESPONSES
NONE = conversation_pb2.DIALECT_UNSPECIFIED
GEMINI = conversation_pb2.DIALECT_GEMINI
PRESERVE = inference_pb2.THINKING_BLOCK_STRATEGY_PRESERVE
DISCARD = inference_pb2.THINKING_BLOCK_STRATEGY_DISCARD
FLATTEN = inference_pb2.THINKING_BLOCK_STRATEGY_FLATTEN

SIGNER = Signer({"a": b"k" * 32, "b": b"l" * 32}, "a")
PROVIDERS_OWN = base64.b64encode(b"a provider's own signature").decode()

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def thought(text: str, signature: str = "") -> Block:
    return Block(thinking=Thinking(text=text, signature=signature))


def conversation(*blocks: Block, strategy: int = 0) -> GenerateRequest:
    return GenerateRequest(
        model="m",
        messages=[
            Message(role=conversation_pb2.ROLE_USER, blocks=[Block(text="hi")]),
            Message(role=conversation_pb2.ROLE_ASSISTANT, blocks=blocks),
            Message(role=conversation_pb2.ROLE_USER, blocks=[Block(text="and now?")]),
        ],
        thinking_block_strategy=strategy,
    )


def answer(request: GenerateRequest, *, signs: bool, dialect: int = NONE) -> list[Block]:
    """Return what is left of the assistant's message."""
    treated = apply_strategy(request, target_checks=signs, target_dialect=dialect, signer=SIGNER)
    return [
        block
        for message in treated.messages
        if message.role == conversation_pb2.ROLE_ASSISTANT
        for block in message.blocks
    ]


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_a_signature_of_the_gateway_is_valid_for_its_text(text: str, model: str) -> None:
    signature = SIGNER.sign(text, model)
    assert SIGNER.carried(signature, text) is not None
    assert is_gateway_signature(signature)
    assert not is_provider_signature(signature)


@settings(deadline=None)
@given(TEXTS, TEXTS, TEXTS)
def test_a_signature_gives_back_what_it_carries(text: str, model: str, carried: str) -> None:
    signature = SIGNER.sign(text, model, carried)
    assert SIGNER.carried(signature, text) == carried
    assert SIGNER.carried(signature, text + "x") is None
    assert not is_provider_signature(signature)


@settings(deadline=None)
@given(TEXTS, TEXTS, TEXTS.filter(bool))
def test_what_is_carried_cannot_be_changed(text: str, model: str, carried: str) -> None:
    *head, packed, code = SIGNER.sign(text, model, carried).split(".")
    assert SIGNER.carried(".".join((*head, code)), text) is None
    other = base64.urlsafe_b64encode(b"other").decode().rstrip("=")
    forged = ".".join((*head, other, code))
    assert SIGNER.carried(forged, text) == (carried if packed == other else None)


@pytest.mark.parametrize(
    ("state", "readers"),
    [
        ("own", {ANTHROPIC}),
        ("gAAAAA", {ANTHROPIC}),
        ("thought:AAAA", {GEMINI, OPENAI}),
        ("call:AAAA", {GEMINI, OPENAI}),
        ("details:[]", {OPENAI}),
    ],
)
def test_carried_state_goes_to_its_own_kind_of_provider(state: str, readers: set[int]) -> None:
    thinking = thought("a", SIGNER.sign("a", "m", state))
    redacted = Block(redacted_thinking=SIGNER.sign("", "m", state))
    silent = thought("", SIGNER.sign("", "m", state))
    request = conversation(thinking, redacted, silent, strategy=PRESERVE)
    for dialect in (ANTHROPIC, OPENAI, GEMINI, NONE):
        if dialect in readers:
            blocks = [thought("a", state), Block(redacted_thinking=state), thought("", state)]
        else:
            blocks = [thinking]
        assert answer(request, signs=False, dialect=dialect) == blocks
    assert answer(request, signs=True, dialect=ANTHROPIC) == []


def test_responses_take_back_what_the_gateway_has_not_signed() -> None:
    encrypted, unsigned = thought("a", "gAAAAA-_x"), thought("b")
    own = thought("c", SIGNER.sign("c", "m", "gAAAA"))
    request = conversation(encrypted, unsigned, own, strategy=PRESERVE)
    request.dialect = RESPONSES
    assert answer(request, signs=True, dialect=RESPONSES) == [encrypted, unsigned]
    assert answer(request, signs=True, dialect=ANTHROPIC) == []
    assert answer(request, signs=False, dialect=OPENAI) == [own]
    request.dialect = ANTHROPIC
    assert answer(request, signs=True, dialect=RESPONSES) == []


@pytest.mark.parametrize("data", [SIGNER.sign("", "m"), "gw1.a.b.c", "gw1.", PROVIDERS_OWN])
def test_redacted_thinking_that_carries_nothing_goes(data: str) -> None:
    request = conversation(Block(redacted_thinking=data), strategy=PRESERVE)
    assert answer(request, signs=False) == []


@settings(deadline=None)
@given(TEXTS, TEXTS, TEXTS)
def test_a_signature_is_valid_for_no_other_text(text: str, other: str, model: str) -> None:
    signature = SIGNER.sign(text, model)
    assert (SIGNER.carried(signature, other) is not None) == (text == other)


@settings(deadline=None)
@given(st.data())
def test_a_signature_with_one_character_changed_is_not_valid(data: st.DataObject) -> None:
    signature = SIGNER.sign("thought", "model")
    place = data.draw(st.integers(0, len(signature) - 1))
    changed = data.draw(st.characters(exclude_categories=["Cs"]))
    forged = signature[:place] + changed + signature[place + 1 :]
    assert (SIGNER.carried(forged, "thought") is not None) == (forged == signature)


def test_a_signature_is_valid_in_one_spelling_alone() -> None:
    signature = SIGNER.sign("thought", "model")
    # The last character of the name holds two bits that decoding ignores.
    assert ".bW9kZWw." in signature
    forged = signature.replace(".bW9kZWw.", ".bW9kZWx.")
    assert SIGNER.carried(forged, "thought") is None


def test_signed_model_names_and_texts_are_delimited() -> None:
    prefix, key_id, _, code = SIGNER.sign("thought", "model-x").split(".")
    name = base64.urlsafe_b64encode(b"model-").rstrip(b"=").decode()
    assert SIGNER.carried(".".join((prefix, key_id, name, code)), "xthought") is None


def test_old_keys_stay_valid_and_unknown_ones_are_not() -> None:
    by_b = Signer({"b": b"l" * 32}, "b").sign("thought", "model")
    assert SIGNER.carried(by_b, "thought") is not None
    assert Signer({"a": b"k" * 32}, "a").carried(by_b, "thought") is None
    assert Signer({"b": b"x" * 32}, "b").carried(by_b, "thought") is None


@pytest.mark.parametrize(
    "signature", ["", "gw1.", "gw1.a", "gw1.a.b.c", "gw1.a.!.c", PROVIDERS_OWN]
)
def test_what_is_no_signature_of_the_gateway_is_not_valid(signature: str) -> None:
    assert SIGNER.carried(signature, "thought") is None


def test_the_current_key_exists_and_ids_have_no_dot() -> None:
    with pytest.raises(ValueError, match="current key"):
        Signer({"a": b"k"}, "b")
    with pytest.raises(ValueError, match="no id may hold a dot"):
        Signer({"a.b": b"k"}, "a.b")


@each_row(
    ("signature", "is_one"),
    [
        (PROVIDERS_OWN, True),
        ("", False),
        ("no base64!", False),
        ("YQ", False),
        ("YQ==\n", False),
        ("gw1.a.b.c", False),
        ("gAAAAABo", False),
        ("ä", False),
    ],
)
def test_a_providers_signature_is_base64(signature: str, is_one: bool) -> None:
    assert is_provider_signature(signature) is is_one


def test_a_request_without_thinking_is_given_back_itself() -> None:
    request = conversation(Block(text="hello"), strategy=DISCARD)
    assert (
        apply_strategy(request, target_checks=True, target_dialect=NONE, signer=SIGNER) is request
    )


def test_the_request_itself_is_never_changed() -> None:
    request = conversation(thought("x"), Block(text="hello"), strategy=DISCARD)
    before = GenerateRequest()
    before.CopyFrom(request)
    assert answer(request, signs=True) == [Block(text="hello")]
    assert request == before


@each_row("strategy", [0, PRESERVE])
@each_row(
    ("signature", "signs", "dialect", "kept"),
    [
        (PROVIDERS_OWN, True, ANTHROPIC, True),
        (PROVIDERS_OWN, True, NONE, True),
        (PROVIDERS_OWN, True, OPENAI, False),
        (PROVIDERS_OWN, False, OPENAI, False),
        (SIGNER.sign("x", "model"), True, ANTHROPIC, False),
        (SIGNER.sign("x", "model"), True, NONE, False),
        (SIGNER.sign("x", "model"), False, OPENAI, True),
        (SIGNER.sign("another", "model"), False, OPENAI, False),
        ("", True, ANTHROPIC, False),
        ("", False, OPENAI, False),
        ("malformed", True, ANTHROPIC, False),
    ],
)
def test_preserve_keeps_what_is_signed_for_the_target(
    strategy: int, signature: str, signs: bool, dialect: int, kept: bool
) -> None:
    request = conversation(thought("x", signature), Block(text="hello"), strategy=strategy)
    expected = [thought("x", signature)] if kept else []
    assert answer(request, signs=signs, dialect=dialect) == [*expected, Block(text="hello")]


@pytest.mark.parametrize(("signs", "dialect", "kept"), [(True, ANTHROPIC, 1), (False, OPENAI, 0)])
def test_preserve_keeps_readable_redacted_thinking(signs: bool, dialect: int, kept: int) -> None:
    request = conversation(Block(redacted_thinking="AAAA"), Block(text="hello"))
    assert len(answer(request, signs=signs, dialect=dialect)) == 1 + kept


def test_preserve_keeps_the_order_of_blocks() -> None:
    blocks = [thought("a", PROVIDERS_OWN), Block(redacted_thinking="AA=="), Block(text="b")]
    blocks += [thought("c", PROVIDERS_OWN), Block(text="d")]
    assert answer(conversation(*blocks), signs=True, dialect=ANTHROPIC) == blocks


def test_discard_takes_every_thought() -> None:
    blocks = [thought("a", PROVIDERS_OWN), Block(redacted_thinking="AA=="), Block(text="b")]
    request = conversation(*blocks, strategy=DISCARD)
    assert answer(request, signs=True, dialect=ANTHROPIC) == [Block(text="b")]


def test_flatten_makes_text_of_readable_thinking() -> None:
    blocks = [thought("a"), Block(redacted_thinking="AA=="), thought("", PROVIDERS_OWN)]
    request = conversation(*blocks, Block(text="b"), strategy=FLATTEN)
    assert answer(request, signs=True, dialect=ANTHROPIC) == [
        Block(text="<thinking>a</thinking>"),
        Block(text="b"),
    ]


def test_a_message_that_was_thinking_alone_goes() -> None:
    request = conversation(thought("a"), strategy=DISCARD)
    treated = apply_strategy(request, target_checks=False, target_dialect=OPENAI, signer=SIGNER)
    assert [message.blocks[0].text for message in treated.messages] == ["hi", "and now?"]


def test_everything_else_of_a_message_and_request_stays() -> None:
    request = conversation(thought("a"), Block(text="b"), strategy=DISCARD)
    request.temperature = 0.5
    request.messages[1].name = "bob"
    request.messages[1].extra.CopyFrom(Opaque(dialect=OPENAI, json=b"{}"))
    expected = GenerateRequest()
    expected.CopyFrom(request)
    del expected.messages[1].blocks[0]
    assert (
        apply_strategy(request, target_checks=False, target_dialect=OPENAI, signer=SIGNER)
        == expected
    )


def test_a_long_conversation_is_treated_in_linear_time() -> None:
    request = GenerateRequest(
        messages=[
            Message(role=conversation_pb2.ROLE_ASSISTANT, blocks=[thought("x"), Block(text="y")])
            for _ in range(20_000)
        ]
    )
    treated = apply_strategy(request, target_checks=True, target_dialect=ANTHROPIC, signer=SIGNER)
    assert len(treated.messages) == 20_000
    assert all(len(message.blocks) == 1 for message in treated.messages)


def thinking_events(*texts: str, choice: int = 0, signature: str = "") -> list[Event]:
    events = [Event(choice=choice, block_start=thought(""))]
    events += [Event(choice=choice, thinking=text) for text in texts]
    if signature:
        events.append(Event(choice=choice, signature=signature))
    return [*events, Event(choice=choice, block_stop=BlockStop())]


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=5), st.data())
def test_unsigned_thinking_is_signed_before_its_block_ends(
    texts: list[str], data: st.DataObject
) -> None:
    events = thinking_events(*texts)
    cut = data.draw(st.integers(0, len(events)))
    signing = ThinkingSigner(SIGNER, "model")
    out = [*signing.feed(events[:cut]), *signing.feed(events[cut:])]
    signature = SIGNER.sign("".join(texts), "model")
    assert out == [*events[:-1], Event(signature=signature), events[-1]]


def test_thinking_that_begins_with_text_is_signed_whole() -> None:
    events = [Event(block_start=thought("all of it")), Event(block_stop=BlockStop())]
    signed = ThinkingSigner(SIGNER, "model").feed(events)
    assert signed[1] == Event(signature=SIGNER.sign("all of it", "model"))


def test_content_other_than_thinking_stays_unchanged() -> None:
    events = [Event(block_start=Block(text="a")), Event(text="b"), Event(block_stop=BlockStop())]
    assert ThinkingSigner(SIGNER, "model").feed(events) is events


@pytest.mark.parametrize(
    "events",
    [
        thinking_events("a", signature="own"),
        [Event(block_start=thought("a", "own")), Event(block_stop=BlockStop())],
    ],
)
def test_the_gateways_signature_carries_the_providers_own(events: list[Event]) -> None:
    signed = ThinkingSigner(SIGNER, "model").feed(events)
    signatures = [event.signature for event in signed if event.signature]
    assert signatures == [SIGNER.sign("a", "model", "own")]
    assert not any(event.block_start.thinking.signature for event in signed)


def test_redacted_thinking_is_carried_by_a_signature() -> None:
    events = [Event(block_start=Block(redacted_thinking="own")), Event(block_stop=BlockStop())]
    signed = ThinkingSigner(SIGNER, "model").feed(events)
    assert signed[0].block_start.redacted_thinking == SIGNER.sign("", "model", "own")
    assert signed[1:] == events[1:]
    assert events[0].block_start.redacted_thinking == "own"


def test_choices_that_think_at_once_are_signed_each_for_itself() -> None:
    first, second = thinking_events("a", "b"), thinking_events("c", "d", choice=1)
    mixed = [event for pair in zip(first, second, strict=True) for event in pair]
    signed = ThinkingSigner(SIGNER, "model").feed(mixed)
    assert [(event.choice, event.signature) for event in signed if event.signature] == [
        (0, SIGNER.sign("ab", "model")),
        (1, SIGNER.sign("cd", "model")),
    ]


@pytest.mark.parametrize(
    "signature", ["0b6a2c1e-7d1f-4b0e-9a55-0c9d7f1c2a3b", PROVIDERS_OWN, "x y"]
)
def test_unchecking_servers_get_signatures_of_unknown_origin(signature: str) -> None:
    own = thought("a", signature)
    request = conversation(own, Block(redacted_thinking="r"), Block(text="b"))
    kept = answer(request, signs=False, dialect=ANTHROPIC)
    assert kept == [own, Block(redacted_thinking="r"), Block(text="b")]
    assert answer(request, signs=False, dialect=OPENAI) == [Block(text="b")]


def test_unchecking_servers_get_nothing_that_openai_encrypted() -> None:
    request = conversation(thought("a", "gAAAAABo"), Block(text="b"))
    assert answer(request, signs=False, dialect=ANTHROPIC) == [Block(text="b")]


def test_unchecking_servers_get_no_unsigned_or_forged_blocks() -> None:
    signed = thought("a", SIGNER.sign("a", "model"))
    request = conversation(signed, thought("b"), thought("c", signed.thinking.signature))
    assert answer(request, signs=False, dialect=ANTHROPIC) == [signed]
    request.has_unsigned_thinking = True
    assert len(answer(request, signs=False, dialect=ANTHROPIC)) == 3
