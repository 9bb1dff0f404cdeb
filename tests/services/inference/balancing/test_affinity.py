"""Which requests belong to one conversation."""

import orjson

from facade.dialects.anthropic.request import parse_messages
from facade.dialects.openai.request import parse_chat
from facade.dialects.responses.request import parse_request
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest, Memory
from services.inference.balancing.affinity import affinity_of
from tests.lazy_requests import lazy_of

SYSTEM = {"role": "system", "content": "You are an agent."}
USER = {"role": "user", "content": "Mend the build."}
REPLY = {"role": "assistant", "content": "Done."}
NEXT = {"role": "user", "content": "Now the tests."}


def lazy(model: str = "m", user: str = "u", **fields: object) -> bytes:
    """Return what a body in one of the dialects is known by; its fields say in which."""
    body = {"model": model, **fields}
    if "input" in fields:
        parsed = parse_request(orjson.dumps(body), lazily=True)
    elif "system" in fields:
        body["max_tokens"] = 9
        parsed = parse_messages(orjson.dumps(body), betas=(), coding=False, lazily=True)
    else:
        parsed = parse_chat(orjson.dumps(body), lazily=True)
    request = lazy_of(parsed)
    return affinity_of(user, parsed.request if request is None else request.request, request)


def test_a_conversation_that_goes_on_is_the_same():
    first = lazy(messages=[SYSTEM, USER])
    assert lazy(messages=[SYSTEM, USER, REPLY, NEXT]) == first
    parts = [{"type": "text", "text": USER["content"]}]
    assert lazy(messages=[SYSTEM, {**USER, "content": parts}]) == first


def test_another_beginning_model_or_user_is_another():
    first = lazy(messages=[SYSTEM, USER])
    others = [
        lazy(messages=[SYSTEM, NEXT]),
        lazy(messages=[USER]),
        lazy(messages=[SYSTEM, USER], model="n"),
        lazy(messages=[SYSTEM, USER], user="v"),
    ]
    assert len({first, *others}) == 5


def test_dialects_and_complete_requests_are_alike():
    texts = [SYSTEM["content"], USER["content"]]
    request = GenerateRequest(
        model="m",
        messages=[
            Message(role=conversation.ROLE_SYSTEM, blocks=[Block(text=texts[0])]),
            Message(role=conversation.ROLE_USER, blocks=[Block(text=texts[1])]),
            Message(role=conversation.ROLE_ASSISTANT, blocks=[Block(text="Done.")]),
        ],
    )
    complete = affinity_of("u", request, None)
    assert lazy(messages=[SYSTEM, USER, REPLY]) == complete
    parts = [{"type": "text", "text": texts[0], "cache_control": {"type": "ephemeral"}}]
    assert lazy(system=parts, messages=[USER]) == complete
    assert lazy(instructions=texts[0], input=[USER]) == complete
    assert lazy(instructions=texts[0], input=texts[1]) == complete


def test_only_the_beginning_of_a_long_prompt_counts():
    long = "x" * (64 << 10)
    assert lazy(system=long, messages=[USER]) == lazy(system=long, messages=[NEXT])
    assert lazy(system=long[1:], messages=[USER]) != lazy(system=long[1:], messages=[NEXT])


def test_the_billing_line_of_claude_code_does_not_count():
    def of(line: str) -> bytes:
        parts = [{"type": "text", "text": text} for text in (line, "You are an agent.")]
        return lazy(system=parts, messages=[USER])

    changing = [f"x-anthropic-billing-header: cc_version=2.1; cch={code};" for code in ("a1", "b2")]
    assert of(changing[0]) == of(changing[1]) == lazy(system="You are an agent.", messages=[USER])
    assert of(changing[0] + "\nMore.") != of(changing[0])


def test_a_remembered_conversation_is_known_by_its_name():
    def of(memory_id: str, text: str) -> bytes:
        message = Message(role=conversation.ROLE_USER, blocks=[Block(text=text)])
        request = GenerateRequest(model="m", messages=[message], memory=Memory(memory_id=memory_id))
        return affinity_of("u", request, None)

    assert of("mine", "Hi") == of("mine", "And then?") != of("other", "Hi")
